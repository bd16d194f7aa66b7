"""Code that other people annotated with jaxtyping is checked as it runs, without an edit."""

from __future__ import annotations

import sys
import textwrap
import warnings

import pytest
import torch

from shapetrace.capture import record
from tests.covered.packages import needs


def judged(trace, part):
    """The annotated records of a file: how many hold, fail, or could not be read."""
    found = {True: [], False: [], None: []}
    for record_ in trace.tensors:
        site = trace.sites[record_.site]
        if part in site.file and record_.declared is not None:
            found[record_.holds].append((site.function, site.name, record_.declared.text))
    return found


def recorded(run, model=None, wanted=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the packages' own
        with torch.no_grad(), record(model, wanted=wanted) as recording:
            run()
    return recording.trace


def entered_by(run):
    from shapetrace.capture.source.discover import entered  # noqa: PLC0415

    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        with entered() as wanted:
            run()
    return wanted


def test_transformer_lens():
    needs("transformer_lens")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformer_lens import HookedTransformer, HookedTransformerConfig  # noqa: PLC0415

        config = HookedTransformerConfig(
            n_layers=2,
            d_model=24,
            n_ctx=16,
            d_head=8,
            n_heads=3,
            d_mlp=40,
            d_vocab=50,
            act_fn="gelu",
        )
        model = HookedTransformer(config).eval()
    ids = torch.randint(50, (2, 7), generator=torch.Generator().manual_seed(0))
    trace = recorded(lambda: model(ids), model, entered_by(lambda: model(ids)))
    found = judged(trace, "transformer_lens")
    assert len(found[True]) > 20
    assert not found[False]
    assert any(function.startswith("LayerNorm") for function, *_ in found[True])


def test_linear_operator():
    needs("linear_operator")
    from linear_operator import operators  # noqa: PLC0415

    matrix = torch.eye(4) * 3 + 0.5

    def run():
        operator = operators.DenseLinearOperator(matrix)
        product = operator @ torch.ones(4, 2)
        summed = operator.add_diagonal(torch.ones(4))
        return product, summed.to_dense(), operator.diagonal()

    trace = recorded(run, None, entered_by(run))
    found = judged(trace, "linear_operator")
    assert len(found[True]) > 3
    assert not found[False]


SOURCE = """
from __future__ import annotations
from typing import Optional, Union
from jaxtyping import Float, Int
import torch
from torch import Tensor, nn

class Typed(nn.Module):
    def forward(
        self,
        x: Float[Tensor, "B n d"],
        mask: Optional[Float[Tensor, "B n"]] = None,
        ids: Union[Int[Tensor, "B n"], Float[Tensor, "B"]] = None,
    ) -> tuple[Float[Tensor, "B d"], Float[Tensor, "B n d+1"]]:
        total: Float[Tensor, "B d"] = x.sum(1)
        longer = torch.cat([x, x[..., :1]], dim=-1)
        wrong: Float[Tensor, "B n"] = total
        return total, longer
"""


@pytest.fixture
def typed(tmp_path, monkeypatch):
    (tmp_path / "typed_models.py").write_text(textwrap.dedent(SOURCE))
    monkeypatch.syspath_prepend(tmp_path)
    import typed_models  # noqa: PLC0415

    yield typed_models.Typed()
    sys.modules.pop("typed_models", None)


@pytest.mark.parametrize("ids", [torch.zeros(2, 3, dtype=torch.long), torch.zeros(2)])
def test_string_annotations_unions_and_tuples(typed, ids):
    trace = recorded(lambda: typed(torch.ones(2, 3, 4), None, ids), typed)
    found = judged(trace, "typed_models")
    names = {(name, holds) for holds, listed in found.items() for _, name, _ in listed}
    assert names == {
        ("x", True),
        ("ids", True),
        ("total", True),
        ("wrong", False),
        ("return", True),
    }
    returned = [r for r in trace.tensors if trace.sites[r.site].kind == "return"]
    assert [(r.element, r.declared.shapes[0].dims) for r in returned] == [
        ("[0]", "B d"),
        ("[1]", "B n d+1"),
    ]
