"""A live model made again: only where the copy is its equal, and then named by evidence."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import pytest
import torch
from torch import nn

import shapetrace
from shapetrace.capture.target.remake import facts_of, remake


@dataclass
class Config:
    width: int = 6
    depth: int = 3


class Told(nn.Module):
    """Keeps what it was made from under other names, or not at all."""

    def __init__(self, width: int, hidden: int = 12, depth: int = 3, bias: bool = True) -> None:
        super().__init__()
        sizes = [width, *[hidden] * depth]
        self.layers = nn.ModuleList(nn.Linear(a, b, bias=bias) for a, b in pairwise(sizes))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Configured(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self.inner = nn.Linear(config.width, 4)

    def forward(self, x):
        return self.inner(x)


class Counting(nn.Module):
    """Equal layers that each know which one they are, by several names."""

    class Layer(nn.Module):
        def __init__(self, number: int, width: int) -> None:
            super().__init__()
            self.which, self.layer_idx = number, number
            self.inner = nn.Linear(width, width)

        def forward(self, x):
            y = self.inner(x)
            return x + y

    def __init__(self, *widths: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(self.Layer(i, widths[0]) for i in range(12))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@pytest.mark.parametrize(
    ("model", "integers"),
    [
        (nn.Linear(8, 4, bias=False), {"in_features": 8, "out_features": 4}),
        (nn.LSTM(8, 6, 2, batch_first=True), {"input_size": 8, "hidden_size": 6}),
        (nn.MultiheadAttention(16, 2), {"embed_dim": 16, "num_heads": 2}),
        (
            nn.TransformerEncoderLayer(16, 2, 48, batch_first=True),
            {"d_model": 16, "nhead": 2, "dim_feedforward": 48},
        ),
        (Told(7, 9), {"width": 7, "hidden": 9, "depth": 3}),
        (Told(5, 5, 2, bias=False), {"width": 5, "hidden": 5, "depth": 2}),
        (Configured(Config(8)), {"config.width": 8}),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_what_a_module_was_made_from_is_found_out(model, integers):
    found = remake(model)
    assert found is not None
    assert integers.items() <= found.integers.items()
    assert facts_of(found.make({})) == facts_of(model)


def hooked(model):
    model.register_forward_hook(lambda module, given, result: result)
    return model


def replaced(model):
    model.layers[1] = nn.Linear(9, 9).requires_grad_(False)
    model.layers[1].extra = nn.Linear(2, 2)
    return model


def overridden(model):
    model.forward = lambda x: x
    return model


def grown(model):
    model.layers.append(nn.Linear(9, 2))
    return model


@pytest.mark.parametrize("change", [hooked, replaced, overridden, grown])
def test_a_model_that_is_more_than_its_class_says_is_not_made_again(change):
    assert remake(change(Told(7, 9))) is None


def test_a_constructor_that_may_fetch_weights_is_not_called():
    called = []

    class Fetches(nn.Module):
        def __init__(self, width: int = 4, pretrained: bool = True) -> None:
            super().__init__()
            called.append(pretrained)
            self.width, self.inner = width, nn.Linear(width, 3)

    assert remake(Fetches()) is None
    assert called == [True]


def test_making_it_again_leaves_no_trace(capsys):
    class Speaks(nn.Module):
        def __init__(self, width: int = 4) -> None:
            super().__init__()
            print("made", torch.rand(()).shape)
            self.inner = nn.Linear(width, 3)

    model = Speaks()
    capsys.readouterr()
    before = torch.get_rng_state()
    assert remake(model) is not None
    assert torch.equal(before, torch.get_rng_state())
    assert capsys.readouterr().out == ""


def names(trace, function, variable):
    return {
        " ".join(dim.name for dim in record.dims)
        for record in trace.tensors
        if trace.sites[record.site].function.endswith(function)
        and trace.sites[record.site].name == variable
    }


def test_a_number_that_counts_equal_modules_is_no_size():
    for size in (3, 7, 9):
        trace = shapetrace.trace(Counting(size), torch.ones(2, size), dims={"B": 2})
        assert names(trace, "Layer.forward", "y") == {f"B {size}"}
        assert "layers.0 ... x12" in str(trace)


def test_what_is_named_in_one_layer_is_named_in_its_equals():
    transformers = pytest.importorskip("transformers")
    config = transformers.LlamaConfig(
        hidden_size=24,
        num_hidden_layers=7,
        num_attention_heads=4,
        num_key_value_heads=2,
        intermediate_size=40,
        vocab_size=50,
        max_position_embeddings=16,
        bos_token_id=0,
        eos_token_id=1,
    )
    model = transformers.LlamaForCausalLM(config).eval()
    ids = torch.randint(50, (2, 5))
    with torch.no_grad():
        trace = shapetrace.trace(model, ids, dims={"B": 2, "n": 5})
    assert "layers.0 ... x7" in str(trace)
    assert names(trace, "LlamaAttention.forward", "key_states") == {
        "B num_key_value_heads n head_dim"
    }
    assert {dim.evidence for r in trace.tensors for dim in r.dims} == {"probe", "literal"}
