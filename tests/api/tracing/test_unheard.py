"""What runs at other sizes say is not news: a model speaks as often as it does untraced."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

import shapetrace


class Warns(nn.Module):
    """Warns in the pass, at every size."""

    def forward(self, x: Tensor) -> Tensor:
        warnings.warn(f"{x.shape[0]} rows", UserWarning, stacklevel=1)
        return x * 2


class Deprecated(nn.Module):
    """Calls what torch itself warns of."""

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.sigmoid(x).T if x.dim() == 3 else x


CASES: list[tuple[Callable[[], nn.Module], tuple[int, ...]]] = [
    (Warns, (3, 4)),
    (Deprecated, (2, 3, 4)),
    (lambda: nn.Sequential(Warns(), Warns()), (3, 4)),
]


@pytest.mark.parametrize(("make", "shape"), CASES)
def test_traced_and_untraced_warn_alike(
    make: Callable[[], nn.Module], shape: tuple[int, ...]
) -> None:
    model, x = make(), torch.ones(shape)

    def heard(call: Callable[[nn.Module, Tensor], object]) -> list[tuple[type[Warning], str]]:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            call(model, x)
        return [(one.category, str(one.message)) for one in said]

    always = torch.is_warn_always_enabled()
    torch.set_warn_always(True)
    try:
        untraced = heard(lambda model, x: model(x))
        traced = heard(shapetrace.trace)
        assert torch.is_warn_always_enabled()
    finally:
        torch.set_warn_always(always)
    assert untraced
    assert traced == untraced


def test_the_setting_of_repeated_warnings_is_as_before() -> None:
    before = torch.is_warn_always_enabled()
    torch.set_warn_always(False)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            shapetrace.trace(Warns(), torch.ones(3, 4))
        assert not torch.is_warn_always_enabled()
    finally:
        torch.set_warn_always(before)


def test_none_is_no_model_to_trace() -> None:
    with pytest.raises(shapetrace.ShapetraceError, match=r"the model is None, not an nn\.Module"):
        shapetrace.trace(None, torch.ones(2))  # type: ignore[arg-type]
