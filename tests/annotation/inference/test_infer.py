"""What is inferred from calls: exact cases, and what must hold for any calls at all."""

import jaxtyping
import pytest
import torch
from beartype.door import is_bearable
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import jaxtyped

from shapetrace.annotation.inference.dtypes import dtype_class
from shapetrace.annotation.inference.infer import Wishes, infer
from shapetrace.annotation.plan.annotation import Plain, Spelling
from shapetrace.annotation.plan.annotation import render_annotation as as_text
from shapetrace.dims import Dim
from shapetrace.records.structure import Structure
from shapetrace.records.trace import Scope, Site, TensorRecord, Trace

FILE = "a.py"
SIZES = {"B": 2, "n": 5, "m": 7, "h": 3, "h_kv": 11, "d_k": 4, "d_model": 12}


def tensor(axes, dtype="float32", **sizes):
    """Axis names and their sizes; an integer is an axis that has no name."""
    known = {**SIZES, **sizes}
    names = [int(a) if a.isdigit() else a for a in axes.split()]
    shape = tuple(a if isinstance(a, int) else eval(a, {}, known) for a in names)
    dims = tuple(Dim(str(a), "literal" if isinstance(a, int) else "probe") for a in names)
    return shape, dims, dtype


def trace_of(calls, line=1, function="f"):
    """A trace of calls; each is a dict of place to tensor, or to tensors by element."""
    scopes, sites, tensors = [Scope(None, "", "function", "run", "", 0, 0, 9)], [], []
    for call in calls:
        scopes.append(Scope(0, "f()", "function", function, FILE, line, 0, 9))
        for name, value in call.items():
            kind = "return" if name == "return" else "argument"
            site = Site(FILE, line, function, name, kind)
            if isinstance(name, tuple):
                site = Site(FILE, name[0], function, name[1], "local")
            sites.append(site)
            for element, (shape, dims, dtype) in (
                value.items() if isinstance(value, dict) else [("", value)]
            ):
                tensors.append(
                    TensorRecord(
                        len(sites) - 1,
                        len(scopes) - 1,
                        0,
                        0,
                        shape,
                        dtype,
                        "cpu",
                        0,
                        None,
                        element,
                        dims=dims,
                    )
                )
    return Trace("t", sites=tuple(sites), scopes=tuple(scopes), tensors=tuple(tensors))


def inferred(source, calls, structures=None, **wishes):
    known = {(FILE, 1, name): tuple(kinds) for name, kinds in (structures or {}).items()}
    result = infer([trace_of(calls)], known, {FILE: source.encode()}, Wishes(**wishes))
    functions = [f for file in result.files for f in file.functions]
    if not functions:
        return {}, result
    function = functions[0]
    found = dict(function.parameters)
    if function.returns is not None:
        found["return"] = function.returns
    return {name: as_text(a, Spelling()) for name, a in found.items()}, result


F = "def f(x, y): return x"
T, N = Structure("tensor"), Structure("none")


def test_the_same_name_where_all_calls_agree():
    calls = [
        {"x": tensor("B n d_model"), "return": tensor("B n")},
        {"x": tensor("B n d_model", B=3, n=9), "return": tensor("B n", B=3, n=9)},
    ]
    found, _ = inferred(F, calls)
    assert found == {"x": 'Float[Tensor, "B n d_model"]', "return": 'Float[Tensor, "B n"]'}


def test_one_axis_has_a_space_and_a_scalar_has_nothing():
    found, _ = inferred(F, [{"x": tensor("n", "int64"), "return": tensor("")}])
    assert found == {"x": 'Int[Tensor, " n"]', "return": 'Float[Tensor, ""]'}


def test_a_name_of_its_own_where_calls_differ_and_the_same_wherever_they_agree():
    calls = [
        {"x": tensor("B h n d_k"), "y": tensor("h"), "return": tensor("B n h")},
        {"x": tensor("B h_kv n d_k"), "y": tensor("h_kv"), "return": tensor("B n h_kv")},
    ]
    found, _ = inferred(F, calls)
    assert found == {
        "x": 'Float[Tensor, "B h_or_h_kv n d_k"]',
        "y": 'Float[Tensor, " h_or_h_kv"]',
        "return": 'Float[Tensor, "B n h_or_h_kv"]',
    }


def test_axes_that_differ_from_each_other_get_different_names():
    calls = [
        {"x": tensor("n m"), "return": tensor("m n")},
        {"x": tensor("m n"), "return": tensor("n m")},
    ]
    found, _ = inferred(F, calls)
    assert found == {
        "x": 'Float[Tensor, "m_or_n m_or_n_2"]',
        "return": 'Float[Tensor, "m_or_n_2 m_or_n"]',
    }


def test_one_name_for_one_thing_though_its_names_are_long():
    long = {"num_attention_heads": 6, "num_key_value_heads": 2}
    calls = [{"x": tensor(name, **long), "return": tensor(name, **long)} for name in long]
    assert inferred(F, calls)[0] == {
        "x": 'Float[Tensor, " x_0"]',
        "return": 'Float[Tensor, " x_0"]',
    }


def test_ranks_that_differ_make_a_run_of_axes():
    calls = [
        {"x": tensor("B n d_model"), "return": tensor("B n")},
        {"x": tensor("n d_model"), "return": tensor("n")},
    ]
    found, _ = inferred(F, calls)
    assert found["x"] == 'Float[Tensor, "*batch n d_model"]'
    assert found["return"] == 'Float[Tensor, "*batch n"]'


def test_a_run_at_the_end_where_only_the_front_agrees():
    calls = [{"x": tensor("B n m")}, {"x": tensor("B d_k")}]
    assert inferred(F, calls)[0] == {"x": 'Float[Tensor, "B *rest"]'}


def test_a_literal_only_without_a_name():
    calls = [{"x": tensor("B 1 3")}, {"x": tensor("B 1 3", B=8)}]
    assert inferred(F, calls)[0] == {"x": 'Float[Tensor, "B 1 3"]'}


def test_a_number_that_changes_gets_the_name_of_its_place():
    calls = [
        {"x": tensor("B 4"), "return": tensor("4")},
        {"x": tensor("B 6"), "return": tensor("6")},
    ]
    assert inferred(F, calls)[0] == {
        "x": 'Float[Tensor, "B x_1"]',
        "return": 'Float[Tensor, " x_1"]',
    }


def test_one_or_a_name():
    calls = [{"x": tensor("1 n")}, {"x": tensor("B n")}]
    assert inferred(F, calls)[0] == {"x": 'Float[Tensor, "B_or_1 n"]'}


def test_an_expression_where_its_names_are_bound_before():
    calls = [{"x": tensor("h d_k"), "return": tensor("h*d_k")}]
    assert inferred(F, calls)[0]["return"] == 'Float[Tensor, " h*d_k"]'


def test_no_expression_where_its_names_come_later_or_perhaps_not():
    calls = [{"x": tensor("h*d_k"), "y": tensor("h d_k"), "return": tensor("h*d_k h*d_model")}]
    found, _ = inferred("def f(x, y): return x", calls)
    assert found["x"] == 'Float[Tensor, " h_x_d_k"]'
    assert found["return"] == 'Float[Tensor, "h*d_k h_x_d_model"]'
    found, _ = inferred("def f(x, y=None): return x", calls)
    assert found["return"] == 'Float[Tensor, "h_x_d_k h_x_d_model"]'


def test_dtypes_widen_no_more_than_needed():
    calls = [{"x": tensor("n", "float32")}, {"x": tensor("n", "bfloat16")}]
    assert inferred(F, calls)[0] == {"x": 'Float[Tensor, " n"]'}
    calls = [{"x": tensor("n", "float32")}, {"x": tensor("n", "bool")}]
    assert inferred(F, calls)[0] == {"x": 'Shaped[Tensor, " n"]'}
    calls = [{"x": tensor("n", "int32")}]
    assert inferred(F, calls, exact_dtype=True)[0] == {"x": 'Int32[Tensor, " n"]'}


@pytest.mark.parametrize(
    ("dtypes", "name"),
    [
        ("int8 int64", "Int"),
        ("int8 uint8", "Integer"),
        ("float16 complex64", "Inexact"),
        ("float16 int8", "Real"),
        ("float16 int8 complex64", "Num"),
        ("bool float32", "Shaped"),
        ("qint8", "Shaped"),
    ],
)
def test_dtype_class(dtypes, name):
    assert dtype_class(dtypes.split()) == name


def test_optional_from_the_default_or_from_a_call():
    calls = [{"x": tensor("n"), "y": tensor("n")}, {"x": tensor("n")}]
    assert inferred(F, calls)[0]["y"] == 'Float[Tensor, " n"] | None'
    calls = [{"x": tensor("n"), "y": tensor("n")}]
    assert inferred("def f(x, y=None): ...", calls)[0]["y"] == 'Float[Tensor, " n"] | None'
    assert inferred("def f(x, y=1.0): ...", calls)[0]["y"] == 'Float[Tensor, " n"] | float'


def test_a_bare_return_is_none_even_where_it_did_not_run():
    source = "def f(x):\n    if x is None:\n        return\n    return x"
    assert inferred(source, [{"return": tensor("n")}])[0]["return"] == 'Float[Tensor, " n"] | None'


def test_containers():
    kinds = Structure(
        "tuple",
        items=(("[0]", T), ("[1]", N), ("[2]", Structure("list", items=(("[0]", T), ("[1]", T))))),
    )
    calls = [{"return": {"[0]": tensor("B n"), "[2][0]": tensor("B h"), "[2][1]": tensor("B h")}}]
    found, _ = inferred(F, calls, {"return": [kinds]})
    assert found["return"] == ('tuple[Float[Tensor, "B n"], None, list[Float[Tensor, "B h"]]]')


def test_a_list_of_different_sizes_has_open_axes():
    kinds = Structure("list", items=(("[0]", T), ("[1]", T)))
    calls = [{"return": {"[0]": tensor("B h"), "[1]": tensor("B m")}}]
    assert inferred(F, calls, {"return": [kinds]})[0]["return"] == 'list[Float[Tensor, "B _"]]'


def test_a_dict_of_different_ranks_has_alternatives():
    kinds = Structure("dict", items=(("['a']", T), ("['b']", T)))
    calls = [{"return": {"['a']": tensor("B h"), "['b']": tensor("B n m")}}]
    assert inferred(F, calls, {"return": [kinds]})[0]["return"] == (
        'dict[str, Float[Tensor, "B h"] | Float[Tensor, "B n m"]]'
    )


def test_tuples_of_different_lengths():
    short = Structure("tuple", items=(("[0]", T),))
    long = Structure("tuple", items=(("[0]", T), ("[1]", T)))
    calls = [
        {"return": {"[0]": tensor("B n")}},
        {"return": {"[0]": tensor("B n"), "[1]": tensor("B n")}},
    ]
    assert inferred(F, calls, {"return": [short, long]})[0]["return"] == (
        'tuple[Float[Tensor, "B n"], ...]'
    )


def test_an_output_class_that_the_file_names():
    kinds = Structure("fields", "Output", "m", ((".logits", T),))
    calls = [{"return": {".logits": tensor("B n")}}]
    source = "from m import Output\ndef f(x): return Output(x)"
    known = {(FILE, 2, "return"): (kinds,)}
    result = infer([trace_of(calls, line=2)], known, {FILE: source.encode()})
    assert result.files[0].functions[0].returns == Plain("Output")
    found, result = inferred("def f(x): return Output(x)", calls, {"return": [kinds]})
    assert found == {}
    assert [one.reason for one in result.left_out] == [
        "may be a Output, which the file does not import"
    ]


@pytest.mark.parametrize("container", ["dict", "list"])
def test_what_stands_in_a_container_and_has_no_name_is_told(container):
    step = "['k']" if container == "dict" else "[0]"
    inner = Structure("class", "sort", "torch.return_types", (("[0]", T),))
    kinds = Structure(container, items=((step, inner),))
    calls = [{"return": {f"{step}[0]": tensor("B n")}}]
    found, result = inferred("def f(x): return [x]", calls, {"return": [kinds]})
    assert found == {}
    assert [one.reason for one in result.left_out] == [
        "holds a sort, which the file does not import"
    ]


def test_a_named_tuple_made_by_a_call():
    kinds = Structure("fields", "Pair", "m", ((".left", T),))
    source = "Pair = namedtuple('Pair', 'left')\ndef f(x): return Pair(x)"
    known = {(FILE, 2, "return"): (kinds,)}
    calls = [{"return": {".left": tensor("B n")}}]
    result = infer([trace_of(calls, line=2)], known, {FILE: source.encode()})
    assert result.files[0].functions[0].returns == Plain("Pair")


def test_what_no_recording_looks_into_is_told():
    source = "def f(x): return x\n\ndef g(x):\n    yield x"
    known = {(FILE, 3, "x"): (T,), (FILE, 1, "x"): (T,)}
    result = infer([trace_of([{"x": tensor("n")}])], known, {FILE: source.encode()})
    assert [(one.line, one.function, one.name) for one in result.left_out] == [(3, "g", "x")]
    assert result.tensors == 2


def test_star_arguments_are_annotated_by_item():
    kinds = Structure("tuple", items=(("[0]", T), ("[1]", T)))
    calls = [{"xs": {"[0]": tensor("B n"), "[1]": tensor("B n")}}]
    found, _ = inferred("def f(*xs): pass", calls, {"xs": [kinds]})
    assert found == {"xs": 'Float[Tensor, "B n"]'}


@pytest.mark.parametrize("parameters", ["*args, **kwargs", "self, *a, **k"])
def test_what_passes_anything_on_promises_nothing(parameters):
    calls = [{"return": tensor("B n")}]
    found, result = inferred(f"def f({parameters}): pass", calls, {"return": [T]})
    assert found == {}
    assert "whatever the function that is called returns" in result.left_out[0].reason


def test_an_implementation_with_overloads_is_left_alone():
    source = "\n\n\nfrom typing import overload\n@overload\ndef f(x: int) -> int: ...\ndef f(x): return x"
    result = infer([trace_of([{"x": tensor("n")}], line=7)], {}, {FILE: source.encode()})
    assert not result.files
    assert [one.reason for one in result.left_out] == ["has overloads, which are its annotations"]


LOCALS = """def f(x):
    y = x
    y = y + 1
    q, k = x, x
    x = y
    if (z := x) is not None: pass
    elif (w := x) is not None: pass
    z: int = 3
"""


@pytest.mark.parametrize(
    ("which", "lines"),
    [
        ("none", []),
        ("first", [(2, "y"), (4, "q"), (4, "k")]),
        ("all", [(2, "y"), (3, "y"), (4, "q"), (4, "k"), (5, "x")]),
    ],
)
def test_which_variables(which, lines):
    n = tensor("n")
    places = [(2, "y"), (3, "y"), (4, "q"), (4, "k"), (5, "x"), (6, "z"), (7, "w")]
    result = infer(
        [trace_of([{"x": n, **dict.fromkeys(places, n)}])],
        {},
        {FILE: LOCALS.encode()},
        Wishes(locals=which),
    )
    assert [(one.line, one.name) for one in result.files[0].functions[0].locals] == lines


@pytest.mark.parametrize("pattern", ["a.py", "f", "*"])
def test_only_what_is_wanted(pattern):
    assert inferred(F, [{"x": tensor("n")}], only=(pattern,))[0]
    assert not inferred(F, [{"x": tensor("n")}], only=("b.py", "g.*"))[0]


# For any calls: what is inferred holds under jaxtyping on the very shapes it came from.

names = st.sampled_from(["B", "n", "h", "h_kv", "n+1", "h*d_k", "1", "4", "9"])
axes = st.lists(names, max_size=4).map(" ".join)
dtypes = st.sampled_from(["float32", "float16", "int64", "bool"])
sizes = st.fixed_dictionaries({name: st.integers(1, 5) for name in ("B", "n", "h", "h_kv", "d_k")})


@st.composite
def a_call(draw):
    at = draw(sizes)

    def one():
        return tensor(draw(axes), draw(dtypes), **at)

    call = {"x": one(), "return": one()}
    if draw(st.booleans()):
        call["y"] = one()
    return call


@settings(max_examples=150, deadline=None)
@given(st.lists(a_call(), min_size=1, max_size=5))
def test_what_is_inferred_holds(calls):
    found, _ = inferred("def f(x, y): return x", calls)
    space = {**vars(jaxtyping), "Tensor": torch.Tensor}
    hints = {name: eval(text, space) for name, text in found.items()}
    for call in calls:
        with jaxtyped("context"):
            for name in ("x", "y", "return"):
                if name in hints:
                    value = None
                    if name in call:
                        shape, _, dtype = call[name]
                        value = torch.empty(shape, dtype=getattr(torch, dtype), device="meta")
                    assert is_bearable(value, hints[name]), (name, found)


KEPT = """def f(
    x: Float[Tensor, "b t c"], y: "Float[Tensor, '*rest s c']" = None, *, z=None
):
    return x, z
"""


def test_names_follow_annotations_that_stay():
    other = {"B": 4, "n": 6}
    calls = [
        {
            "x": tensor("B n d_model", **sizes),
            "y": tensor("B h m d_model", **sizes),
            "z": tensor("m n h", **sizes),
            "return": tensor("B n+1 2*m d_model", **sizes),
        }
        for sizes in ({}, other)
    ]
    kinds = {key: [T] for key in ("x", "y", "z", "return")}
    found, _ = inferred(KEPT, calls, kinds)
    assert found["z"] == 'Float[Tensor, "s t h"] | None'
    assert found["return"] == 'Float[Tensor, "b t+1 s_x_2 c"]'
    replaced, _ = inferred(KEPT, calls, kinds, replace=True)
    assert replaced["return"] == 'Float[Tensor, "B n+1 m_x_2 d_model"]'


def test_a_function_of_several_quantities_follows_its_own_names():
    """Where two calls name an axis differently, a kept name stands for both."""
    source = 'def f(x: Float[Tensor, "rows d"]): return x'
    calls = [
        {"x": tensor("n d_model"), "return": tensor("n n d_model")},
        {"x": tensor("m d_model"), "return": tensor("m m d_model")},
    ]
    found, _ = inferred(source, calls, {"x": [T], "return": [T]})
    assert found["return"] == 'Float[Tensor, "rows rows d"]'


def test_the_methods_of_a_class_follow_one_of_them():
    source = """class A:
    def f(self, x: Float[Tensor, "b t"]): return x
    def g(self, x): return x
"""
    one = trace_of([{"x": tensor("B n")}], line=2, function="A.f")
    other = trace_of([{"x": tensor("n B")}], line=3, function="A.g")
    result = infer([one, other], {}, {FILE: source.encode()})
    (function,) = (f for f in result.files[0].functions if f.qualname == "A.g")
    assert as_text(function.parameters[0][1], Spelling()) == 'Float[Tensor, "t b"]'


def test_a_kept_annotation_that_jaxtyping_refuses_is_no_guide():
    source = 'def f(x: Float[Tensor, "b, t"], y: Float[Tensor, "#b t"]): return x'
    calls = [{"x": tensor("B n"), "y": tensor("B n"), "return": tensor("B n")}]
    found, _ = inferred(source, calls, {key: [T] for key in ("x", "y", "return")})
    assert found["return"] == 'Float[Tensor, "B t"]'


def test_what_is_held_in_a_variable_or_a_field_is_told():
    source = """def f(x):
    y = [x, x]
    return Output(x)
class Output(NamedTuple):
    logits: torch.Tensor
    loss: Float[Tensor, ""]
    name: str = ""
"""
    calls = [
        {
            "x": tensor("B n"),
            (2, "y"): {"[0]": tensor("B n"), "[1]": tensor("B n")},
            "return": {".logits": tensor("B n"), ".loss": tensor("")},
        }
    ]
    output = Structure("fields", "Output", "a", ((".logits", T), (".loss", T), (".name", N)))
    _, result = inferred(source, calls, {"x": [T], "return": [output]}, locals="first")
    assert {(one.function, one.name): one.reason.partition(",")[0] for one in result.left_out} == {
        ("f", "y"): "holds tensors inside a container",
        ("Output", "logits"): "is a field of a class",
        ("f", "return"): "may be a Output",
    }
