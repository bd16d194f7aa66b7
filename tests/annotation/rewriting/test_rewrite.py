"""Source before and after, as pairs of files; those that must not change come first."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from shapetrace.annotation.plan.annotation import (
    NONE,
    Array,
    DictOf,
    Plain,
    Repeated,
    TupleOf,
    Union,
)
from shapetrace.annotation.plan.plans import FilePlan, FunctionPlan, LocalPlan
from shapetrace.annotation.rewriting.rewrite import rewrite
from shapetrace.errors import ShapetraceError

HERE = Path(__file__).parent
X = Array("Float", ("B", "n", "d"))
IDS = Array("Int", ("n",))
MASK = Union((Array("Bool", ("B", "1", "n", "n")), NONE))
PARAMETERS = {"x": X, "xs": X, "more": X, "ids": IDS, "mask": MASK}
VARIABLES = frozenset("yzkqvwuts")


def plan_of(source: bytes) -> FilePlan:
    """Every function's parameters by their names; its return and the first of its variables."""
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return FilePlan("file.py", tuple(_function(node) for node in functions))


def _function(node):
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    arguments += [extra for extra in (node.args.vararg, node.args.kwarg) if extra is not None]
    returns = any(isinstance(n, ast.Return) for n in ast.walk(node)) and node.name[0] != "_"
    stored = {}
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            stored[inner.id] = min(inner.lineno, stored.get(inner.id, inner.lineno))
    return FunctionPlan(
        node.lineno,
        node.name,
        tuple((a.arg, PARAMETERS[a.arg]) for a in arguments if a.arg in PARAMETERS),
        X if returns else None,
        tuple(LocalPlan(line, name, X) for name, line in stored.items() if name in VARIABLES),
    )


@pytest.mark.parametrize("path", sorted((HERE / "unchanged").iterdir()), ids=lambda p: p.name)
def test_unchanged(path):
    source = path.read_bytes()
    result = rewrite(source, plan_of(source))
    assert result.new == source
    assert not result.written


PAIRS = sorted((HERE / "pairs").glob("*.before.txt"))


def after_of(path):
    return path.with_name(path.name.replace("before", "after")).read_bytes()


@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.name.partition(".")[0])
def test_pair(path):
    source = path.read_bytes()
    result = rewrite(source, plan_of(source))
    assert result.new.decode() == after_of(path).decode()
    compile(result.new, "after", "exec")


@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.name.partition(".")[0])
def test_again_changes_nothing(path):
    once = after_of(path)
    for replace in (False, True):
        again = rewrite(once, plan_of(once), replace=replace)
        if not (replace and b"..." in once):
            assert again.new.decode() == once.decode()


@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.name.partition(".")[0])
def test_only_additions(path):
    """Without the annotations and imports, the two files say the same."""

    class Bare(ast.NodeTransformer):
        def visit_arg(self, node):
            node.annotation = None
            return node

        def visit_FunctionDef(self, node):
            self.generic_visit(node)
            node.returns = None
            return node

        visit_AsyncFunctionDef = visit_FunctionDef

        def visit_AnnAssign(self, node):
            if node.value is None:
                return None
            return ast.Assign([node.target], node.value, lineno=node.lineno)

        def visit_ImportFrom(self, node):
            names = [n for n in node.names if n.name not in {"Float", "Int", "Bool", "Tensor"}]
            return ast.ImportFrom(node.module, names, node.level) if names else None

        def visit_Import(self, node):
            return node if node.names[0].name != "jaxtyping" else None

        def visit_If(self, node):
            self.generic_visit(node)
            node.body = node.body or [ast.Pass()]
            return node

    before, after = (Bare().visit(ast.parse(t)) for t in (path.read_bytes(), after_of(path)))
    assert ast.dump(before) == ast.dump(after)


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"], ids=["no mark", "byte order mark"])
@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b"\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("path", PAIRS, ids=lambda p: p.name.partition(".")[0])
def test_line_endings_and_byte_order_mark(path, ending, mark):
    source = mark + path.read_bytes().replace(b"\n", ending)
    assert rewrite(source, plan_of(source)).new == mark + after_of(path).replace(b"\n", ending)


def test_encoding_stays():
    source = '# -*- coding: latin-1 -*-\n# caf\u00e9\ndef f(x):\n    return "\u00e9"\n'.encode(
        "latin-1"
    )
    new = rewrite(source, plan_of(source)).new
    assert b"# caf\xe9\n" in new
    assert b'return "\xe9"' in new
    assert b"Float[Tensor" in new


def test_no_newline_at_the_end():
    source = b"import torch\ndef f(x): return x"
    assert rewrite(source, plan_of(source)).new == (
        b"import torch\nfrom jaxtyping import Float\n"
        b'def f(x: Float[torch.Tensor, "B n d"]) -> Float[torch.Tensor, "B n d"]: return x'
    )


def test_replace():
    source = b"import torch\n\n\ndef f(x: torch.Tensor, ids: 'Tensor'=0) -> 'Any':\n    return x\n"
    result = rewrite(source, plan_of(source), replace=True, line_length=200)
    assert result.new == (
        b"import torch\nfrom jaxtyping import Float, Int\n\n\n"
        b'def f(x: Float[torch.Tensor, "B n d"], ids: Int[torch.Tensor, " n"]=0) '
        b'-> Float[torch.Tensor, "B n d"]:\n    return x\n'
    )


def test_kept_annotations_are_told():
    source = b'import torch\n\n\ndef f(x: Float[Tensor, "b"], ids, mask: Mask):\n    pass\n'
    result = rewrite(source, plan_of(source))
    assert [(one.name, one.kind) for one in result.written] == [("ids", "argument")]
    assert [(one.name, one.reason) for one in result.left_out] == [
        ("x", "has shapes already, which are kept (--replace)"),
        ("mask", "has an annotation, which is kept: Mask"),
    ]


def test_import_only_what_is_written():
    source = b"import torch\n\n\ndef f(x: Image, ids):\n    pass\n"
    assert b"from jaxtyping import Int\n" in rewrite(source, plan_of(source)).new


def test_a_syntax_error_has_its_line():
    with pytest.raises(ShapetraceError, match=r"^a\.py:3: invalid syntax; mend"):
        rewrite(b"x = 1\n\ndef f(:\n    pass\n", FilePlan("a.py"))


def test_what_cannot_be_decoded():
    with pytest.raises(ShapetraceError, match=r"^a\.py: cannot be decoded"):
        rewrite(b"# -*- coding: ascii -*-\nx = '\xff'\n", FilePlan("a.py"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("torch.Tensor | None", 'Float[torch.Tensor, "B n d"] | None'),
        ("Optional[torch.Tensor]", 'Float[torch.Tensor, "B n d"] | None'),
        ("Union[torch.Tensor, Cache, None]", 'Float[torch.Tensor, "B n d"] | Cache | None'),
        (
            "torch.FloatTensor | tuple[torch.Tensor] | int",
            'Float[torch.Tensor, "B n d"] | tuple[torch.Tensor] | int',
        ),
        ("torch.LongTensor | torch.Tensor", 'torch.LongTensor | Float[torch.Tensor, "B n d"]'),
        (
            "Float[torch.Tensor, 'b t c'] | Float[torch.Tensor, 'b t']",
            "Float[torch.Tensor, \"B n d\"] | Float[torch.Tensor, 'b t']",
        ),
        ("'torch.Tensor | None'", 'Float[torch.Tensor, "B n d"] | None'),
        ("Any", 'Float[torch.Tensor, "B n d"]'),
        ("'torch.Tensor | Cache'", """'Float[torch.Tensor, "B n d"] | Cache'"""),
        ("Union[torch.Tensor, 'Cache']", """'Float[torch.Tensor, "B n d"] | Cache'"""),
    ],
)
def test_what_else_an_annotation_allowed_stays(old, new):
    source = f"import torch\n\n\ndef _f(x: {old}):\n    pass\n".encode()
    result = rewrite(source, plan_of(source), replace=True, line_length=200)
    assert result.new.decode().splitlines()[-2] == f"def _f(x: {new}):"


ITEMS = TupleOf((X, IDS))


@pytest.mark.parametrize(
    ("old", "seen", "new"),
    [
        ("Tensor", X, "A"),
        ("Optional[Tensor]", Union((X, NONE)), "A | None"),
        ("Tensor | list[Tensor]", X, "A | list[Tensor]"),
        ("Tensor | list[Tensor]", Repeated("list", X), "Tensor | list[A]"),
        ("tuple[Tensor, Tensor]", ITEMS, "tuple[A, I]"),
        ("Tuple[Tensor, ...]", ITEMS, "Tuple[A | I, ...]"),
        ("tuple", ITEMS, "tuple[A, I]"),
        ("tuple[Tensor, Optional[Tensor]]", TupleOf((X, NONE)), "tuple[A, Tensor | None]"),
        ("Sequence[Tensor]", Repeated("list", X), "Sequence[A]"),
        ("List[Tensor]", Repeated("list", X), "List[A]"),
        ("dict[str, Tensor]", DictOf(Plain("str"), X), "dict[str, A]"),
        ("dict[str, Any]", DictOf(Plain("str"), X), "dict[str, Any]"),
        ("BlockMask | Tensor | None", X, "BlockMask | A | None"),
        ("Tensor | float", X, "A | float"),
        ("Union[Tensor, tuple[Tensor, Tensor]]", ITEMS, "Tensor | tuple[A, I]"),
        ("list[tuple[Tensor, Tensor]]", Repeated("list", ITEMS), "list[tuple[A, I]]"),
        ("Image", X, "Image"),
        ("Any", X, "Any"),
        ("int", X, "int | A"),
    ],
)
def test_bare_tensors_get_shapes_and_all_that_was_declared_stays(old, seen, new):
    source = f"from torch import Tensor\n\n\ndef f(given: {old}):\n    pass\n".encode()
    plan = FilePlan("a.py", (FunctionPlan(4, "f", (("given", seen),)),))
    written = rewrite(source, plan, line_length=200).new.decode().splitlines()[-2]
    wanted = (
        new.replace("A", 'Float[Tensor, "B n d"]') if new not in ("Any", "dict[str, Any]") else new
    )
    wanted = wanted.replace("I]", 'Int[Tensor, " n"]]').replace("I,", 'Int[Tensor, " n"],')
    assert written == f"def f(given: {wanted}):"


def test_a_crowded_signature_gets_a_line_per_parameter():
    source = b"from torch import Tensor\n\n\ndef f(\n    x, ids, *, mask=None\n):\n    return x\n"
    assert rewrite(source, plan_of(source)).new.decode() == (
        "from jaxtyping import Bool, Float, Int\nfrom torch import Tensor\n\n\n"
        'def f(\n    x: Float[Tensor, "B n d"],\n    ids: Int[Tensor, " n"],\n    *,\n'
        '    mask: Bool[Tensor, "B 1 n n"] | None = None,\n) -> Float[Tensor, "B n d"]:\n    return x\n'
    )


STATE = Array("Float", ("layers", "B", "hidden"))
PAIR = TupleOf((STATE, STATE))
LONG = TupleOf((Array("Float", ("B", "n", "hidden")), PAIR))
WIDE = b"""import torch
from jaxtyping import Float


class Net:
    def encode(self, words, state=None, more=None, *, last=3):
        return words

    def several(self, x): return x


def alone():
    return 1


def listed(
    x,
    y,
):
    return x
"""


@pytest.mark.parametrize("returns", [LONG, Union((LONG, NONE)), Repeated("list", LONG), PAIR])
def test_long_annotations_lie_as_a_formatter_lays_them(tmp_path, returns):
    encode = FunctionPlan(
        6,
        "Net.encode",
        (
            ("words", STATE),
            ("state", Union((PAIR, NONE))),
            ("more", Union((Repeated("list", LONG), NONE))),
            ("last", Union((TupleOf((STATE, STATE, Plain("int"))), Plain("int")))),
        ),
        returns,
    )
    several = FunctionPlan(9, "Net.several", (("x", STATE),), returns)
    listed = FunctionPlan(16, "listed", (("x", LONG), ("y", Repeated("list", PAIR))), returns)
    plan = FilePlan("a.py", (encode, several, FunctionPlan(12, "alone", (), returns), listed))
    new = rewrite(WIDE, plan).new
    file = tmp_path / "a.py"
    file.write_bytes(new.replace(b": return x", b":\n        return x"))
    ruff = [sys.executable, "-m", "ruff", "format", "--isolated", "--line-length", "88", "--diff"]
    done = subprocess.run([*ruff, file], capture_output=True, text=True, check=False)
    assert done.stdout == ""
    assert max(map(len, new.splitlines())) <= 88
