"""A training step's memory by kind, and whose a backward operator is."""

import pytest
import torch

from shapetrace.api.transformer.training import train
from shapetrace.capture.record_training import TrainingRecording
from shapetrace.cost import price
from shapetrace.model import ModelConfig, build
from shapetrace.model.training import mean_loss
from shapetrace.model.training.data import Batch


@pytest.fixture(scope="module")
def step(tmp_path_factory):
    """The first step of a small decoder."""
    book = tmp_path_factory.mktemp("data") / "book.txt"
    book.write_text("the quick brown fox " * 30)
    how = {"steps": 1, "batch": 2, "seq": 8}
    return train("tiny-decoder", book, training=how, attention="explicit").trace


def test_every_tensor_is_declared_and_holds(step):
    for tensor in step.tensors:
        site = step.sites[tensor.site]
        assert tensor.declared is not None, (site.function, site.name)
        assert tensor.holds, (site.function, site.name, tensor.shape)


def test_gradients_and_state_are_told_from_activations(step):
    parameters = {p.storage: p for p in step.parameters}.values()
    gradients = [s for s in step.storages if s.kind == "gradient"]
    assert sorted(s.nbytes for s in gradients) == sorted(p.nbytes for p in parameters)
    state = [s.nbytes for s in step.storages if s.kind == "state" and s.nbytes > 4]
    assert sorted(state) == sorted([p.nbytes for p in parameters] * 2)
    for parameter in step.parameters:
        assert step.storages[parameter.gradient].nbytes == parameter.nbytes
    tied = {p.path: p.gradient for p in step.parameters}
    assert tied["head.weight"] == tied["embedding.token.weight"]


def test_gradients_are_freed_and_the_state_stays(step):
    assert all(s.died is not None for s in step.storages if s.kind == "gradient")
    assert all(s.died is None for s in step.storages if s.kind == "state")


def test_backward_operators_belong_to_the_call_that_ran_forward(step):
    """Each block's backward products are twice its forward's."""
    prices = price(step)
    forward, backward = {}, {}
    for op, cost in zip(step.ops, prices.flops, strict=True):
        by_path = backward if op.phase == "backward" else forward
        path = step.scopes[op.scope].path
        by_path[path] = by_path.get(path, 0) + cost
    costs = {path: cost for path, cost in forward.items() if cost}
    assert len(costs) >= 2 * 4 + 1
    assert {path: cost for path, cost in backward.items() if cost} == {
        path: 2 * cost for path, cost in costs.items()
    }


def test_the_model_is_left_as_it_was():
    torch.manual_seed(0)
    model = build(ModelConfig.from_preset("tiny-decoder"))
    ids = torch.randint(0, 256, (2, 9))
    batch = Batch(ids[:, :-1], ids[:, 1:])
    mean_loss(model, batch).backward()
    plain = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    recording = TrainingRecording(model)
    with recording:
        mean_loss(model, batch).backward()
        recording.mark_gradients()
    assert recording.trace.parameters[0].gradient is not None
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.grad, plain[name])
        assert not parameter._post_accumulate_grad_hooks
