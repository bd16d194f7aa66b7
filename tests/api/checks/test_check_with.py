"""``with shapetrace.checking(model):`` in Python."""

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

import shapetrace


class Net(nn.Module):
    def forward(self, x: Float[Tensor, "B n d"]) -> Float[Tensor, "B n d"]:
        mean: Float[Tensor, "B n"] = x.mean(1)
        return x - mean[:, None]


def test_a_finding_raises_at_the_end_of_the_block():
    with pytest.raises(shapetrace.ShapetraceError) as raised, shapetrace.checking(Net()):
        Net()(torch.ones(2, 5, 6))
    assert str(raised.value).startswith("an annotation does not hold\n\nST101 axis `n` is 6 in ")


def test_findings_without_raising_and_nothing_left_behind():
    model, code = Net(), Net.forward.__code__
    with shapetrace.checking(model, raises=False) as block:
        model(torch.ones(2, 5, 6))
    assert [one.code for one in block.findings] == ["ST101"]
    with shapetrace.checking(model, ignore=["size"]):
        model(torch.ones(2, 5, 6))
    assert Net.forward.__code__ is code


def test_an_error_inside_goes_on_with_the_findings_as_a_note():
    model = Net()
    model.register_forward_hook(lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError) as raised, shapetrace.checking(model):
        model(torch.ones(2, 5, 6))
    assert "ST101" in raised.value.__notes__[-1]
