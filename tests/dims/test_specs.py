"""Input specs: what they mean, and where the caret stands when they mean nothing."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.dims.specs import (
    DTYPES,
    InputAxis,
    InputSpecs,
    LiteralSpec,
    TensorSpec,
    parse_specs,
)
from shapetrace.errors import ShapetraceError


def test_names_sizes_and_bound():
    specs = parse_specs(["x:float32[B=2,3,H=32,W=32]", "ids:int64[B,n=16]<1000"])
    assert specs.tensors == (
        TensorSpec(
            ("x",),
            "float32",
            (InputAxis(2, "B"), InputAxis(3), InputAxis(32, "H"), InputAxis(32, "W")),
        ),
        TensorSpec(("ids",), "int64", (InputAxis(2, "B"), InputAxis(16, "n")), 1000),
    )
    assert specs.sizes == (("B", 2), ("H", 32), ("W", 32), ("n", 16))


def test_a_name_given_once_holds_before_too():
    specs = parse_specs(["mask:bool[B,n]", "ids:int64[B=2,n=16]"])
    assert specs.tensors[0].shape == (2, 16)
    assert specs.sizes == (("B", 2), ("n", 16))


def test_positions_and_places():
    texts = ["float32[3]", "batch.ids:int64[3]", "images.0:float32[1]", "images.1:float32[2]"]
    specs = parse_specs([*texts, " half [ ] "])
    assert [s.place for s in specs.tensors] == [
        (0,),
        ("batch", "ids"),
        ("images", 0),
        ("images", 1),
        (1,),
    ]
    assert specs.tensors[-1] == TensorSpec((1,), "float16", ())


def test_literals():
    specs = parse_specs(["use_cache=False", "kernel.size=(3, 4)"])
    assert specs.literals == (
        LiteralSpec(("use_cache",), value=False),
        LiteralSpec(("kernel", "size"), (3, 4)),
    )


def test_resized_changes_only_the_named_axes():
    specs = parse_specs(["float32[B=2,2,n=4]"]).resized({"B": 6, "other": 3})
    assert specs.tensors[0].shape == (6, 2, 4)
    assert specs.sizes == (("B", 6), ("n", 4))


@pytest.mark.parametrize(
    ("texts", "caret", "says"),
    [
        (["x:flaot32[2]"], "  ^", "did you mean 'float32'"),
        (["x:float32"], "         ^", "expected ["),
        (["x:float32[2"], "           ^", "expected , or ]"),
        (["x:float32[2;3]"], "           ^", "expected , or ]"),
        (["x:float32[2,]"], "            ^", "expected an axis"),
        (["x:float32[-1]"], "          ^", "expected an axis"),
        (["x:float32[B=]"], "            ^", "the size of `B`"),
        (["x:float32[B=n]"], "            ^", "the size of `B`"),
        (["x:float32[2]!"], "            ^", "nothing may follow"),
        (["x:float32[2]<5"], "             ^", "a bound is for integers"),
        (["x:int64[2]<0"], "           ^", "above 0"),
        (["x:int64[2]<"], "           ^", "above 0"),
        (["x:"], "  ^", "expected a dtype"),
        ([""], "^", "expected a dtype"),
        (["x:float32[n]"], "          ^", "no spec gives a size for `n`"),
        (["float32[n=3]", "float32[n=4]"], "        ^", "`n` is 3 elsewhere"),
        (["x=yes"], "  ^", "not a Python literal"),
        (["x:int64[9999999999999999999]"], "        ^", "too large"),
    ],
)
def test_the_caret_stands_under_the_place(texts, caret, says):
    with pytest.raises(ShapetraceError) as caught:
        parse_specs(texts)
    reason, shown, mark = str(caught.value).split("\n")
    assert says in reason
    assert shown == f"  {texts[-1]}"
    assert mark == f"  {caret}"


@pytest.mark.parametrize(
    ("texts", "says"),
    [
        (["x:bool[2]", "x:bool[2]"], "two inputs are given for x"),
        (["x:bool[2]", "x.y:bool[2]"], "x.y lies inside"),
        (["x.1:bool[2]"], "they must count from 0"),
        (["x.0:bool[2]", "x.y:bool[2]"], "both indices and names"),
        (["1:bool[2]"], "positional arguments: indices are [1]"),
        (["bool[2]", "0:bool[2]"], "two inputs are given for 0"),
    ],
)
def test_places_that_contradict_each_other(texts, says):
    with pytest.raises(ShapetraceError) as caught:
        parse_specs(texts)
    assert says in str(caught.value)


_NAMES = st.from_regex(r"[A-Za-z_][A-Za-z_0-9]{0,5}", fullmatch=True)
_AXES = st.lists(
    st.builds(InputAxis, st.integers(0, 10**6), st.sampled_from(["", "B", "n", "d_k"]))
)


@st.composite
def _specs(draw):
    sizes = {name: draw(st.integers(0, 99)) for name in ("B", "n", "d_k")}
    tensors = []
    for name in draw(st.lists(_NAMES, unique=True, min_size=1, max_size=4)):
        axes = tuple(InputAxis(sizes.get(a.name, a.size), a.name) for a in draw(_AXES))
        dtype = draw(st.sampled_from(DTYPES))
        integers = dtype.removeprefix("u").startswith("int")
        below = draw(st.none() | st.integers(1, 10**9)) if integers else None
        tensors.append(TensorSpec((name,), dtype, axes, below))
    return tensors


@given(_specs())
def test_written_out_and_read_again(tensors):
    specs = parse_specs([str(spec) for spec in tensors])
    assert specs.tensors == tuple(tensors)
    used = {axis.name: axis.size for spec in tensors for axis in spec.axes if axis.name}
    assert dict(specs.sizes) == used


@given(_specs(), st.randoms())
def test_a_size_may_stand_at_any_one_place(tensors, random):
    """Each name keeps its size at one place drawn by chance; the meaning is the same."""
    places = {}
    for spec in tensors:
        for number, axis in enumerate(spec.axes):
            places.setdefault(axis.name, []).append((spec.place, number))
    kept = {name: random.choice(found) for name, found in places.items()}
    texts = []
    for spec in tensors:
        axes = [
            f"{a.name}={a.size}"
            if a.name and kept[a.name] == (spec.place, number)
            else a.name or str(a.size)
            for number, a in enumerate(spec.axes)
        ]
        bound = "" if spec.below is None else f"<{spec.below}"
        texts.append(f"{spec.place[0]}:{spec.dtype}[{','.join(axes)}]{bound}")
    assert parse_specs(texts).tensors == tuple(tensors)


@given(st.lists(st.text(max_size=20), max_size=3))
def test_any_text_is_read_or_refused(texts):
    with contextlib.suppress(ShapetraceError):
        assert isinstance(parse_specs(texts), InputSpecs)
