"""Packages whose authors annotated them, checked whole: no false alarm.

Findings in installed files are nobody's business but their authors', and hidden; here they
are looked at too.
"""

import textwrap

import pytest

from shapetrace.api.checks import check_target as check_runs
from shapetrace.api.preparing.request import Request
from tests.covered.packages import needs

LENS = """
    from transformer_lens import HookedTransformer, HookedTransformerConfig

    def make(d_model: int = 24, d_head: int = 8, n_heads: int = 3, d_mlp: int = 40):
        config = HookedTransformerConfig(n_layers=2, n_ctx=16, d_vocab=50, act_fn="gelu", **locals())
        return HookedTransformer(config)
"""
OPERATORS = """
    import torch
    from linear_operator import operators
    from torch import nn

    class make(nn.Module):
        def forward(self, factor, right):
            size = factor.shape[-2]
            dense = operators.DenseLinearOperator(factor @ factor.mT + 3 * torch.eye(size))
            low = operators.RootLinearOperator(factor)
            both = operators.KroneckerProductLinearOperator(dense, dense)
            summed = dense.add_diagonal(torch.ones(size))
            products = dense @ right, low @ right, dense.solve(right), dense.logdet()
            return *products, summed.to_dense(), both.to_dense(), dense.cholesky().to_dense()
"""


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("package", "source", "inputs", "annotations"),
    [
        ("transformer_lens", LENS, ["input:int64[B=2,n=7]<50"], 50),
        ("linear_operator", OPERATORS, ["factor:float32[n=5,k=3]", "right:float32[n,t=2]"], 20),
    ],
)
def test_no_false_alarm(package, source, inputs, annotations, tmp_path, monkeypatch, capsys):
    needs(package)
    file = tmp_path / f"with_{package}.py"
    file.write_text(textwrap.dedent(source), encoding="utf-8")
    monkeypatch.setattr(check_runs, "_owner_of", lambda _: lambda _: True)
    result = check_runs.check_target(Request(f"{file}:make", inputs=inputs))
    assert result.error is None
    assert result.findings == ()
    assert result.annotations >= annotations
    assert len(result.runs) >= 4
