"""Every form of annotation that jaxtyping with beartype enforces: right ones pass, wrong ones are found.

Each case is a function, right and made wrong. That the wrong one is wrong, and the right one
right, jaxtyping with beartype says itself: it is the oracle. Of a list it looks at one item,
another one each time, and is asked until it has looked at all.
"""

import textwrap
from dataclasses import dataclass

import pytest
import torch
from beartype import beartype
from jaxtyping import jaxtyped

X = "x:float32[B=2,n=5,6]"
HEAD = """
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Optional, TypedDict, Union
from jaxtyping import Shaped
"""
A, WRONG = 'Float[Tensor, "B n d"]', 'Float[Tensor, "B d"]'
TURNED = 'Float[Tensor, "B d n"]'


@dataclass(frozen=True)
class Case:
    """A function, what it is called with, and one text in it that is exchanged to make it wrong."""

    source: str
    call: str
    right: str
    wrong: str


def case(body, call, right=A, wrong=WRONG):
    return Case(textwrap.dedent(body), call, right, wrong)


def returning(value, right, wrong):
    body = f'def f(x: Float[Tensor, "B n d"]) -> RIGHT:\n    return {value}\n'
    return Case(body, "f(x)", right, wrong)


def taking(value, right, wrong):
    body = 'def f(x: Float[Tensor, "B n d"], y: RIGHT):\n    return x\n'
    return Case(body, f"f(x, {value})", right, wrong)


CASES = {
    "args": case('def f(*xs: RIGHT) -> Shaped[Tensor, "..."]:\n    return xs[0]\n', "f(x, x.sum(1))",
                 'Shaped[Tensor, "B ..."]', 'Shaped[Tensor, "B n d"]'),
    "kwargs": case('def f(**ys: RIGHT):\n    return ys["a"]\n', "f(a=x, b=x)", A, WRONG),
    "keyword only": case("def f(*, y: RIGHT):\n    return y\n", "f(y=x)", A, WRONG),
    "fixed tuple": returning("(x, x)", f"tuple[{A}, {A}]", f"tuple[{A}]"),
    "order in a tuple": returning("(x, x.sum(1))", f"tuple[{A}, {WRONG}]", f"tuple[{WRONG}, {A}]"),
    "open tuple": returning("(x, x, x)", f"tuple[{A}, ...]", f"tuple[{WRONG}, ...]"),
    "list": returning("[x, x]", f"list[{A}]", f"tuple[{A}, {A}]"),
    "last of a list": returning("[x, x.sum(1)]", f"list[{A} | {WRONG}]", f"list[{A}]"),
    "sequence": taking("[x, x]", f"Sequence[{A}]", f"Sequence[{TURNED}]"),
    "keys": returning("{'x': x}", f"dict[str, {A}]", f"dict[int, {A}]"),
    "values": returning("{'x': x}", f"dict[str, {A}]", f"dict[str, {WRONG}]"),
    "mapping": taking("{1: x}", f"Mapping[int, {A}]", f"Mapping[str, {A}]"),
    "nested": taking("{'a': [(x, 1)]}", f"dict[str, list[tuple[{A}, int]]]",
                     f"dict[str, list[tuple[{A}, str]]]"),
    "none": taking("None", f"Optional[{A}]", A),
    "union": taking("x.sum(1)", f"{A} | {WRONG}", f"{A} | list[{A}]"),
    "old union": taking("[x]", f"Union[{A}, list[{A}]]", f"Union[{A}, list[{WRONG}]]"),
    "number": taking("3", f"{A} | int", f"{A} | str"),
    "parameter": taking("nn.Parameter(x)", 'Float[nn.Parameter, "B n d"]',
                        'Float[nn.Parameter, "B d n"]'),
    "no parameter": taking("x", A, 'Float[nn.Parameter, "B n d"]'),
    "scalar": taking("x.sum()", 'Float[Tensor, ""]', 'Float[Tensor, " n"]'),
    "broadcast": taking("x[:, :1]", 'Float[Tensor, "B #n d"]', A),
    "expression": returning("torch.cat([x, x], 1)", 'Float[Tensor, "B 2*n d"]', 'Float[Tensor, "B n*n d"]'),
    "lesser": returning("x[:, : min(x.shape[1:])]", 'Float[Tensor, "B min(n,d) d"]',
                        'Float[Tensor, "B max(n,d) d"]'),
}  # fmt: skip


def composed(which):
    """A model that calls every case, each in a class of its own, right or wrong."""
    classes, calls = [], []
    for number, one in enumerate(CASES.values()):
        source = one.source.replace("RIGHT", getattr(one, which))
        method = source.replace("def f(", "def f(self, ").replace("(self, )", "(self)")
        classes.append(f"class Case{number}:\n{textwrap.indent(method, '    ')}")
        calls.append(f"        Case{number}().{one.call}")
    body = "\n".join(calls)
    net = f"class Net(nn.Module):\n    def forward(self, x):\n{body}\n        return x\n"
    return HEAD + "\n".join(classes) + "\n" + net


@pytest.mark.parametrize("name", CASES)
def test_the_oracle_agrees(name):
    for which in ("right", "wrong"):
        space = {
            "jaxtyped": jaxtyped,
            "beartype": beartype,
            "torch": torch,
            "x": torch.ones(2, 5, 6),
        }
        one = CASES[name]
        source = one.source.replace("RIGHT", getattr(one, which))
        head = "from torch import Tensor, nn\nfrom jaxtyping import Float, Int, Bool\n" + HEAD
        exec(head + "@jaxtyped(typechecker=beartype)\n" + source, space)
        if which == "right":
            eval(one.call, space)
        else:
            with pytest.raises(Exception, match=r"Type-check error"):
                often(one.call, space)


def often(call, space):
    for _ in range(64):
        eval(call, space)


def test_right_ones_pass_and_are_counted(checked):
    result = checked(composed("right"), X, select=("ST1", "ST2"))
    assert result.error is None
    assert [one.text for one in result.findings] == []
    assert result.unchecked == ()


def test_wrong_ones_are_found(checked):
    result = checked(composed("wrong"), X, select=("ST1", "ST2"))
    assert result.error is None
    found = {one.function.partition(".")[0] for one in result.findings}
    names = {f"Case{number}": name for number, name in enumerate(CASES)}
    assert {names[one] for one in found} == set(CASES)


ENFORCED = """
@jaxtyped(typechecker=beartype)
@dataclass
class Out:
    first: Float[Tensor, "B n d"]
    second: Float[Tensor, "B d n"]
class Inner(nn.Module):
    @jaxtyped(typechecker=beartype)
    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B d"]:
        return x
class Old(nn.Module):
    @jaxtyped(typechecker=None)
    @beartype
    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B n d"]:
        return x
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.old = Inner(), Old()
    def forward(self, x):
        x = self.inner(x)
        Out(x, x)
        return self.old(x)
"""


def test_a_model_that_enforces_is_run_past_what_it_refuses(checked):
    result = checked(HEAD + ENFORCED, X)
    assert result.error is None
    found = {(one.function, one.name, one.code) for one in result.findings}
    assert found == {
        ("Inner.forward", "return", "ST102"),
        ("Old.forward", "x", "ST102"),
        ("Out", "second", "ST101"),
    }


def test_checkers_are_in_force_again_afterwards(checked, tmp_path):
    checked(HEAD + ENFORCED, X)
    (file,) = tmp_path.glob("wrong_*.py")
    space = {}
    exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
    with pytest.raises(Exception, match="Type-check error"):
        space["Net"]()(torch.ones(2, 5, 6))


FIELDS = """
class Pair(NamedTuple):
    a: Float[Tensor, "B n d"]
    b: RIGHT
class Keys(TypedDict):
    mask: RIGHT
@dataclass
class Out:
    y: Float[Tensor, "n d B"]
    z: RIGHT
class Part(nn.Module):
    weight: Float[nn.Parameter, " d"]
    bias: Float[nn.Parameter, "LENGTH"]
    def __init__(self, d=6):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(d)), nn.Parameter(torch.ones(d))
    def forward(self, x):
        return x * self.weight + self.bias
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
    def pair(self, x: Float[Tensor, "n B d"]) -> Pair:
        return Pair(x, x)
    def keys(self, x) -> Keys:
        return {"mask": x}
    def out(self, x: Float[Tensor, "n B d"]) -> Out:
        return Out(x, x)
    def forward(self, x):
        return self.part(self.out(self.keys(self.pair(x).b)["mask"]).y)
"""


def test_fields_have_names_of_their_own(checked):
    right = FIELDS.replace("RIGHT", 'Float[Tensor, "_ _ _"]').replace("LENGTH", " d")
    result = checked(HEAD + right, X, select=("ST1", "ST2"))
    assert (result.error, result.findings, result.unchecked) == (None, (), ())


def test_wrong_fields_are_found(checked):
    wrong = FIELDS.replace("RIGHT", 'Float[Tensor, "B d"]').replace("LENGTH", "d d")
    result = checked(HEAD + wrong, X, select=("ST1", "ST2"))
    found = {(one.function, one.name) for one in result.findings}
    assert {("Keys", "mask"), ("Part", "bias")} <= found
    assert {("Pair", "b"), ("Out", "z")} <= found or {
        ("Net.pair", "return.b"),
        ("Net.out", "return.z"),
    } <= found


ELSEWHERE = """
class Net(nn.Module):
    @property
    def scale(self) -> Float[Tensor, "a b"]:
        return torch.ones(6)
    @staticmethod
    def turned(x: Float[Tensor, "B n d"]) -> Float[Tensor, "B d n"]:
        return x
    @classmethod
    def made(cls, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B d n"]:
        return x
    def parts(self, x: Float[Tensor, "B n d"]) -> Iterator[Float[Tensor, "B d n"]]:
        yield from (x, x)
    def sent(self, x: Float[Tensor, "B d"]) -> Generator[Float[Tensor, "B n d"], None, None]:
        yield x
    def __getitem__(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B n d"]:
        return x
    def idle(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B d"]:
        return x
    async def later(self, x: Float[Tensor, "B d"]):
        return x
    def forward(self, x):
        list(self.parts(x)), list(self.sent(x))
        return self.made(self.turned(self[x] * self.scale))
"""


def test_every_kind_of_method(checked):
    result = checked(HEAD + ELSEWHERE, X, select=("ST1", "ST2"))
    assert {(one.function, one.name) for one in result.findings} == {
        ("Net.scale", "return"),
        ("Net.turned", "return"),
        ("Net.made", "return"),
        ("Net.parts", "return"),
        ("Net.sent", "x"),
        ("Net.__getitem__", "x"),
    }
    assert [line.partition(": ")[2] for line in result.unchecked] == [
        "Net.idle (`x`, `return`) did not run",
        "Net.later (`x`) is in an async function, which is not looked into",
    ]


def test_the_lesser_of_two_is_no_accident(checked):
    source = """
class Net(nn.Module):
    def forward(self, a: Float[Tensor, "M N"]) -> Float[Tensor, "DIMS"]:
        return torch.linalg.svd(a, full_matrices=False)[0]
"""
    for sizes in ("a:float32[M=7,N=3]", "a:float32[M=3,N=7]"):
        assert checked(source.replace("DIMS", "M min(M,N)"), sizes).findings == ()
    for dims in ("M N", "M M", "M max(M,N)", "M 3"):
        assert checked(source.replace("DIMS", dims), "a:float32[M=7,N=3]").findings


def test_an_alternative_that_nothing_ever_was_is_told_where_asked(checked):
    source = """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"] | Float[Tensor, "B d"]) -> Float[Tensor, "B d"] | Int[Tensor, "B d"]:
        return x.sum(1)
"""
    assert checked(source, X).findings == ()
    found = checked(source, X, select=("ST5",)).findings
    assert {(one.name, one.code) for one in found} == {("x", "ST501"), ("return", "ST501")}
    assert ['"B d"' in one.message for one in found] == [True, True]
