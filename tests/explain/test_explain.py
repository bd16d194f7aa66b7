"""Each broken model's explanation: the line, the names, the sizes, and who made them."""

from pathlib import Path

import broken_models as broken
import pytest
import torch

import shapetrace

SOURCE = Path(broken.__file__)


def _breaking_line(kind):
    """Number of the first line marked as breaking at or after a class's first line."""
    lines = SOURCE.read_text().splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"class {kind}("))
    return next(i for i in range(start, len(lines)) if "# breaks" in lines[i]) + 1


def _f(*shape):
    return torch.zeros(shape)


def _ids(*values):
    return torch.tensor([list(values)])


CASES = [
    (
        "CompareChoice",
        (_f(3, 2, 8), _f(3, 2, 12)),
        "return torch.where(x > 0, y, 0)",
        ["x > 0: bool[3, 2, 8]", "clash: axis 2 of `x > 0` is 8, axis 2 of `y` is 12"],
    ),
    (
        "InvertedMask",
        (torch.ones(2, 5, dtype=torch.bool), torch.ones(2, 5, dtype=torch.bool), _f(2, 7)),
        "return y.masked_fill(~(mask & other), 0)",
        ["clash: axis 1 of `y` is 7, axis 1 of `~(mask & other)` is 5"],
    ),
    (
        "CrossedHeads",  # the sizes that agree are no clash
        (_f(2, 5, 8), _f(2, 5, 12)),
        "return F.scaled_dot_product_attention(x, y, y)",
        ["clash: axis 2 of `x` is 8, axis 2 of `y` is 12\n"],
    ),
    (
        "FlattenedImage",
        (_f(2, 3, 8, 8),),
        "return self.fc(x)",
        [
            "x: float32[2, 1024], from `x` of FlattenedImage",
            "self.fc.weight: float32[10, 400], from `self.fc` (",
            "clash: axis 1 of `x` is 1024, axis 1 of `self.fc.weight` is 400",
            "make `self.fc` with in_features=1024",
        ],
    ),
    (
        "ForgottenTranspose",
        (_f(2, 5, 8), _f(2, 5, 8)),
        "scores = q @ k",
        [
            "k: float32[2, 5, 8], from argument `k` of ForgottenTranspose",
            "clash: axis 2 of `q` is 8, axis 1 of `k` is 5",
        ],
    ),
    (
        "WrongChannels",
        (_f(2, 3, 9, 9),),
        "return self.features(image)",
        [
            "input of self.features[2]: float32[2, 8, 7, 7], what `features.1` (ReLU) returned",
            "clash: axis 1 of `input of self.features[2]` is 8 (channels), `self.features[2]` takes 16",
            "with in_channels=8",
        ],
    ),
    (
        "ChannelsLast",
        (_f(2, 9, 9, 3),),
        "return self.conv(image)",
        ["axis 1 of `image` is 9 (channels), `self.conv` takes 3"],
    ),
    (
        "SkipConnection",
        (_f(1, 4, 9, 9),),
        "return torch.cat([x, skip], dim=1)",
        [
            "clash: axis 2 of `x` is 8, axis 2 of `skip` is 9",
            "8 is from `x` of SkipConnection",
            "9 is from argument `x` of SkipConnection",
        ],
    ),
    (
        "StackedSequences",
        (_f(4, 8), _f(5, 8)),
        "return torch.stack([first, second])",
        ["clash: axis 0 of `first` is 4, axis 0 of `second` is 5"],
    ),
    (
        "HeadsThatDoNotDivide",
        (_f(2, 5, 8),),
        "return x.view(B, n, self.heads, d // self.heads)",
        ["self.heads: 3", "d // self.heads: 2", "`x` has 80 elements; 2 x 5 x 3 x 2 is 60"],
    ),
    (
        "ViewAfterTranspose",
        (_f(2, 5, 8),),
        "return x.view(x.shape[0], -1)",
        ["`x` is not contiguous", "use `x.reshape(...)`"],
    ),
    (
        "MaskedScores",
        (_f(2, 4, 5, 5), _f(2, 5)),
        "scores = scores + mask",
        ["clash: axis 2 of `scores` is 5, axis 0 of `mask` is 2", "2 is from argument `mask`"],
    ),
    (
        "Residual",
        (_f(2, 8),),
        "return x + mixed",
        ["clash: axis 1 of `x` is 8, axis 1 of `mixed` is 6", "6 is from `mixed` of Residual"],
    ),
    (
        "Contraction",
        (_f(2, 4, 5, 8), _f(2, 4, 5, 6)),
        'return torch.einsum("bhid,bhjd->bhij", q, k)',
        ["`d` is two sizes: axis 3 of `q` is 8, axis 3 of `k` is 6"],
    ),
    (
        "VocabularyTooSmall",
        (_ids(1, 2, 12),),
        "return self.embed(ids)",
        [
            "ids: int64[1, 3] holding 1 to 12, from argument `ids`",
            "clash: `ids` holds 1 to 12, `self.embed` has rows 0 to 9",
        ],
    ),
    (
        "FloatIndices",
        (_f(1, 3),),
        "return self.embed(ids)",
        ["clash: `ids` is float32, and indices must be integers", "`ids.long()`"],
    ),
    (
        "MixedPrecision",
        (_f(2, 8),),
        "return self.fc(half)",
        ["`half` is float16", "`self.fc.weight` is float32"],
    ),
    (
        "ForgottenDevice",
        (_f(2, 8),),
        "return torch.addmm(bias, x, self.fc.weight)",
        ["`bias` is on meta", "`x` is on cpu"],
    ),
    (
        "Normalised",
        (_f(2, 5, 8),),
        "return self.norm(x)",
        ["clash: axis 2 of `x` is 8, axis 0 of `self.norm.weight` is 16", "from `self.norm` ("],
    ),
    (
        "BatchNormed",
        (_f(2, 8),),
        "return self.bn(x)",
        ["clash: axis 1 of `x` is 8, axis 0 of `self.bn.weight` is 16"],
    ),
    (
        "Recurrent",
        (_f(2, 5, 8),),
        "out, _ = self.lstm(x)",
        [
            "self.lstm: LSTM(10, 20, batch_first=True)",
            "clash: axis 2 of `x` is 8, axis 1 of `self.lstm.weight_ih_l0` is 10",
            "make `self.lstm` with input_size=8",
        ],
    ),
    (
        "Loss",
        (_f(4, 8), torch.zeros(3, dtype=torch.int64)),
        "return F.cross_entropy(logits, labels)",
        ["clash: axis 0 of `logits` is 4, axis 0 of `labels` is 3", "from `logits` of Loss"],
    ),
    (
        "BatchedProduct",
        (_f(2, 5, 5), _f(2, 6, 8)),
        "return torch.bmm(attention, values)",
        ["clash: axis 2 of `attention` is 5, axis 1 of `values` is 6"],
    ),
    (
        "Helper",
        (_f(2, 5, 8), _f(2, 5, 6)),
        "scores = torch.matmul(queries, keys.transpose(-2, -1))",
        [
            "RuntimeError in scaled() (scaled):",
            "keys.transpose(-2, -1): float32[2, 6, 5]",
            "clash: axis 2 of `queries` is 8, axis 1 of `keys.transpose(-2, -1)` is 6",
            "8 is from argument `q` of Helper",
        ],
    ),
    (
        "Checkpointed",
        (_f(2, 8).requires_grad_(),),
        "return F.gelu(self.proj(hidden))",
        [
            "RuntimeError in blocks.2 (Block):",
            "clash: axis 1 of `hidden` is 12, axis 1 of `self.proj.weight` is 8",
            "12 is from the return value since blocks.1",
        ],
    ),
    (
        "Unpacked",
        (_f(2, 9, 9),),
        "B, C, H, W = image.shape",
        ["ValueError in Unpacked: not enough values to unpack", "image: float32[2, 9, 9]"],
    ),
    (
        "OutOfBounds",
        (_f(2, 5),),
        "return x[:, 7]",
        ["clash: index 7, but axis 1 of `x` is 5", "5 is from argument `x` of OutOfBounds"],
    ),
    (
        "Checked",
        (_f(2, 3, 30, 30),),
        'raise ValueError("image size must be a multiple of the patch size")',
        ["image: float32[2, 3, 30, 30]", "self.patch: 16"],
    ),
    (
        "Temporaries",
        (_f(2, 8),),
        "return torch.cat([self.left(x), self.right(x)], dim=0)",
        ["clash: axis 1 of `self.left(x)` is 4, axis 1 of `self.right(x)` is 6"],
    ),
    (
        "InPlace",
        (_f(2, 8), _f(3, 8)),
        "x += update",
        ["clash: axis 0 of `x` is 2, axis 0 of `update` is 3"],
    ),
    (
        "CrossWidths",
        (_f(2, 3, 8), _f(2, 5, 12)),
        "out, _ = self.attn(q, memory, memory)",
        [
            "clash: axis 2 of `memory` is 12, axis 1 of `self.attn.in_proj_weight` is 8",
            "12 is from argument `memory` of CrossWidths",
            "make `self.attn` with kdim=12, vdim=12",
        ],
    ),
    (
        "FloatLabels",
        (_f(4, 8), _f(4)),
        "return F.nll_loss(logits, labels)",
        ["`labels` is float32, and indices must be integers", "`labels.long()`"],
    ),
    (
        "FloatGather",
        (_f(4, 8), _f(4, 1)),
        "return x.gather(1, places)",
        ["`places` is float32, and indices must be integers"],
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "statement", "says"), CASES, ids=[c[0] for c in CASES])
def test_explanation(kind, inputs, statement, says):
    model = getattr(broken, kind)()
    with (
        pytest.raises((RuntimeError, ValueError, IndexError)) as caught,
        shapetrace.record(model) as rec,
    ):
        model(*inputs)
    text = rec.trace.explain()
    line = _breaking_line({"Helper": "Helper", "Checkpointed": "Block"}.get(kind, kind))
    assert f"broken_models.py:{line}: {statement}" in text
    for piece in says:
        assert piece in text, text
    assert caught.value.__notes__ == [text]


def _line_with(text):
    lines = SOURCE.read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if text in line)


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (
            "ChangedInPlace",
            [
                "clash: `h` (",
                f"broken_models.py:{_line_with('h += 1')} by `add_`, and sigmoid's backward pass",
                "fix: make a new tensor there instead",
            ],
        ),
        (
            "WeightsChanged",
            ["`up.weight` or `down.weight` [8, 8] is changed in place by `mul_`, and the backward"],
        ),
        (
            "WrongGradientShape",
            [
                "clash: `FlatGradient.backward` (",
                f"broken_models.py:{_line_with('return grad.sum(-1)')}) returns [2] for",
                "for its input 0, which is [2, 8]",
            ],
        ),
        ("NotANumber", ["a backward pass starts from one number, and `loss` is more than one"]),
        ("Detached", ["autograd did not follow how `loss` was made"]),
    ],
)
def test_in_the_engine_of_a_backward(kind, says):
    model = getattr(broken, kind)()
    x = _f(2, 8).requires_grad_()
    with pytest.raises(RuntimeError) as caught, shapetrace.record(model):  # noqa: PT012
        loss = model(x)
        loss.backward()
    text = caught.value.__notes__[0]
    assert f"test_explain.py:{_line_here('loss.backward()')}: loss.backward()" in text
    for piece in says:
        assert piece in text, text
    assert "indices must be integers" not in text


def test_a_graph_that_was_used_up():
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Sigmoid())
    with pytest.raises(RuntimeError) as caught, shapetrace.record(model):  # noqa: PT012
        loss = model(_f(2, 3)).sum()
        loss.backward()
        loss.backward()
    assert "has been freed" in caught.value.__notes__[0]
    assert "`backward(retain_graph=True)`" in caught.value.__notes__[0]


def _line_here(text):
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.strip() == text)


def test_in_a_backward_of_ones_own():
    model = broken.OwnBackward()
    with pytest.raises(RuntimeError) as caught, shapetrace.record(model) as rec:
        model(_f(3, 8).requires_grad_()).sum().backward()
    text = caught.value.__notes__[0]
    line = _breaking_line("WrongGradient")
    assert f"broken_models.py:{line}: return grad @ w, x.t() @ grad" in text
    assert "clash: axis 1 of `grad` is 5, axis 0 of `w` is 8" in text
    assert rec.trace.failure is not None
