"""What is right, unusual, or no business of a checker: no finding."""

from pathlib import Path

import pytest

from shapetrace.api.checks.check_target import check_target
from shapetrace.api.preparing.request import Request

OWN = Path(__file__).parent / "own_models.py"


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        ("encoder", ["token_ids:int64[B=2,n=5]<50"]),
        ("decoder", ["token_ids:int64[B=2,n=5]<50"]),
        ("grouped_decoder", ["token_ids:int64[B=2,n=5]<50"]),
        ("encoder_decoder", ["token_ids:int64[B=2,m=5]<50", "target_ids:int64[B,n=7]<50"]),
    ],
)
def test_the_typed_transformer(make, inputs):
    result = check_target(Request(f"{OWN}:{make}", inputs=inputs))
    assert result.error is None
    assert result.findings == ()
    assert result.annotations >= 50
    assert len(result.runs) >= 8


X = "x:float32[B=2,n=5,6]"
RIGHT = {
    "a helper that is called at several sizes": """
class Net(nn.Module):
    def norm(self, x: Float[Tensor, "*batch dim"]) -> Float[Tensor, "*batch dim"]:
        return x / x.shape[-1]
    def forward(self, x: Float[Tensor, "B n d"]):
        return self.norm(x).sum() + self.norm(x.mT).sum()
""",
    "parts with names of their own": """
class Linear(nn.Module):
    def __init__(self, width_in, width_out):
        super().__init__()
        self.width_in, self.width_out = width_in, width_out
        self.w = nn.Linear(width_in, width_out)
    def forward(self, x: Float[Tensor, "*b width_in"]) -> Float[Tensor, "*b width_out"]:
        return self.w(x)
class Net(nn.Module):
    def __init__(self, width_in: int = 6, hidden: int = 7):
        super().__init__()
        self.a, self.b = Linear(width_in, hidden), Linear(hidden, width_in)
    def forward(self, x):
        return self.b(self.a(x))
""",
    "a number of layers with the name of an axis": """
class Net(nn.Module):
    def __init__(self, t: int = 3):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(6, 6) for _ in range(t))
    def forward(self, x: Float[Tensor, "B t d"]) -> Float[Tensor, "B t d"]:
        for layer in self.layers:
            x = layer(x)
        return x
""",
    "annotations that only the enclosing function can read": """
def make():
    size = 6
    class Net(nn.Module):
        def forward(self, x: Float[Tensor, f"B n {size}"]) -> Float[Tensor, f"B n {size}"]:
            width = 6
            y: Float[Tensor, f"B n {width}"] = x + 1
            return y
    return Net()
""",
    "optional, broadcasting and variadic": """
class Net(nn.Module):
    def add(self, x: Float[Tensor, "*b n d"], y: Float[Tensor, "*#b 1 #d"] | None = None):
        return x if y is None else x + y
    def forward(self, x: Float[Tensor, "B n d"]):
        return self.add(x) + self.add(x, x[:, :1]) + self.add(x, x[:1, :1, :1])
""",
    "a name rebound to another shape": """
class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]):
        x = x.flatten(1)
        y: Float[Tensor, "B n*d"] = x
        y = y.sum()
        return y
""",
    "a limit that modules hold, with the name of an axis": """
class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.seq_len = 5
    def forward(self, x: Float[Tensor, "B seq_len d"]) -> Float[Tensor, "B seq_len d"]:
        return x + 1
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = Part()
    def forward(self, x: Float[Tensor, "B seq_len d"]):
        return self.part(x).sum() + self.part(x[:, 1:]).sum()
""",
    "strings, postponed and quoted": """
class Net(nn.Module):
    def forward(self, x: 'Float[Tensor, "B n d"]', flag: "Undefined | None" = None) -> "Float[Tensor, ' B']":
        return x.sum((1, 2))
""",
}


@pytest.mark.parametrize("name", RIGHT)
def test_nothing_is_found(texts, name):
    target = "make" if "def make" in RIGHT[name] else "Net"
    assert texts(RIGHT[name], X, target=target) == []


def test_a_class_decorated_by_the_import_hook_is_enforced(tmp_path, monkeypatch):
    from jaxtyping import install_import_hook  # noqa: PLC0415

    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "hooked_part.py").write_text(
        "from jaxtyping import Float\nfrom torch import Tensor, nn\n"
        "class Part(nn.Module):\n"
        '    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:\n'
        "        return x + 1\n"
    )
    with install_import_hook("hooked_part", "beartype.beartype"):
        import hooked_part  # noqa: F401, PLC0415
    from shapetrace.check.rules import chosen  # noqa: PLC0415

    result = check_target(Request("hooked_part:Part", inputs=[X]), chosen(["ALL"]))
    assert result.findings == ()
