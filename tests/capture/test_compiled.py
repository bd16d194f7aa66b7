"""Compiled parts of a model while its code is rewritten: they run as written, and again after."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from jaxtyping import Float
from torch import Tensor, nn

import shapetrace
from shapetrace.capture.background import Session
from shapetrace.capture.source.discover import reachable


class Block(nn.Module):
    """Annotated, with a mistake where asked."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 6)

    def forward(self, x: Float[Tensor, "B d"]) -> Float[Tensor, "B wide"]:
        hidden: Float[Tensor, "B d"] = self.linear(x)
        return hidden.relu()


class Model(nn.Module):
    """Compiles a part of itself, and counts how often that happens."""

    def __init__(self) -> None:
        super().__init__()
        self.compiled: list[int] = []
        self.part = torch.compile(Block(), backend=self._backend)

    def _backend(self, graph: Any, _: Any) -> Any:
        self.compiled.append(1)
        return graph.forward

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.part(x)
        return result


@pytest.fixture(autouse=True)
def _anew() -> Any:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("compiled_before", [False, True])
def test_checking_looks_into_compiled_parts_at_any_size(compiled_before: bool) -> None:
    model = Model()
    if compiled_before:
        model(torch.ones(2, 4))
    done = len(model.compiled)
    xs = [torch.ones(size, 4) for size in (2, 3, 5)]
    with pytest.raises(shapetrace.ShapetraceError, match="`d` is 6"), shapetrace.checking(model):
        results = [model(x) for x in xs]
    assert [result.shape for result in results] == [(2, 6), (3, 6), (5, 6)]
    assert len(model.compiled) == done


def test_a_session_looks_into_compiled_parts_run_after_run() -> None:
    model, session = Model(), Session()
    try:
        for size in (2, 3):
            session.begin(reachable(model))
            model(torch.ones(size, 4))
            trace = session.end("run")
            assert trace is not None
            assert {record.shape for record in trace.tensors} == {(size, 4), (size, 6)}
    finally:
        session.stop()


def test_recording_gradients_of_compiled_parts_warns_of_nothing() -> None:
    model = Model()
    with shapetrace.record(model) as recording:
        for size in (2, 3):
            model(torch.ones(size, 4)).sum().backward()
    names = [recording.trace.sites[record.site].name for record in recording.trace.tensors]
    assert "hidden" in names


def test_afterwards_it_is_compiled_as_ever() -> None:
    model = Model()
    with shapetrace.record(model):
        model(torch.ones(2, 4))
    assert not model.compiled
    model(torch.ones(2, 4))
    assert model.compiled
