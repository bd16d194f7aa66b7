"""A training step's memory by kind, and whose a backward operator is."""

import weakref

import pytest
import torch
from torch import nn
from torch.optim import optimizer as torch_optimizer
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from shapetrace.api.transformer.training import train
from shapetrace.capture import record
from shapetrace.cost import price
from shapetrace.cost.training import training_of
from shapetrace.model import ModelConfig, build
from shapetrace.model.training import mean_loss
from shapetrace.model.training.data import TrainingBatch


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
    batch = TrainingBatch(ids[:, :-1], ids[:, 1:])
    mean_loss(model, batch).backward()
    plain = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    with record(model) as recording:
        mean_loss(model, batch).backward()
    assert recording.trace.parameters[0].gradient is not None
    for name, parameter in model.named_parameters():
        assert torch.equal(parameter.grad, plain[name])
        assert not parameter._post_accumulate_grad_hooks


class Live(TorchDispatchMode):
    """The most bytes at once of storages that operators made, by weak references alone."""

    def __init__(self):
        super().__init__()
        self.live = weakref.WeakValueDictionary()
        self.peak = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        before = {  # but for what wraps a Python number, which nobody has seen before
            leaf.untyped_storage()._cdata
            for leaf in tree_leaves((args, kwargs))
            if isinstance(leaf, torch.Tensor) and "lift_fresh" not in str(func)
        }
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor) and leaf.untyped_storage()._cdata not in before:
                self.live[leaf.untyped_storage()._cdata] = leaf.untyped_storage()
        self.peak = max(self.peak, sum(storage.nbytes() for storage in self.live.values()))
        return result


def small():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))


OPTIMIZERS = {
    "adam": (torch.optim.Adam, 2 * 232 + 4 * 4),
    "adamw, one by one": (lambda p: torch.optim.AdamW(p, foreach=False), 2 * 232 + 4 * 4),
    "adamw, fused": (lambda p: torch.optim.AdamW(p, fused=True), 2 * 232 + 4 * 4),
    "sgd": (torch.optim.SGD, 0),
    "momentum": (lambda p: torch.optim.SGD(p, momentum=0.9), 232),
    "adagrad": (torch.optim.Adagrad, 232 + 4 * 4),
}
"""And the bytes that each keeps of 58 numbers in four tensors; a step counter has 4."""


@pytest.mark.parametrize("kind", OPTIMIZERS)
def test_any_recording_tells_gradients_and_state(kind):
    make, kept = OPTIMIZERS[kind]
    model = small()
    optimizer = make(model.parameters())
    x = torch.randn(64, 4)

    def step():
        model(x).sum().backward()
        optimizer.step()
        optimizer.zero_grad()

    traces = []
    live = Live()
    for _ in range(2):
        with record(model) as recording, live:
            live.peak = 0
            step()
        traces.append(recording.trace)
    first, second = map(training_of, traces)
    assert (first.gradient_bytes, second.gradient_bytes) == (232, 232)
    assert (first.state_bytes, second.state_bytes) == (kept, kept)
    # What the first step foretells of the others is what the second one shows.
    assert first.peak.nbytes == second.peak.nbytes == second.first_peak.nbytes
    assert first.first_peak.nbytes <= first.peak.nbytes
    if kind != "adagrad":  # whose state was made before anyone looked
        assert second.peak.nbytes == live.peak
    for trace in traces:
        for parameter in trace.parameters:
            assert trace.storages[parameter.gradient].kind == "gradient"
            assert trace.storages[parameter.gradient].nbytes == parameter.nbytes
    assert not torch_optimizer._global_optimizer_post_hooks


def test_gradients_that_grow_in_place_and_those_that_a_hook_takes_away_are_told():
    model = small()
    x = torch.randn(5, 4)
    model(x).sum().backward()
    held = [parameter.grad for parameter in model.parameters()]
    with record(model) as recording:
        model(x).sum().backward()
    assert training_of(recording.trace).gradient_bytes == 232
    assert [p.grad for p in model.parameters()] == held

    buffers = {p: torch.zeros_like(p) for p in model.parameters()}

    @torch.no_grad()
    def descend(p):
        buffers[p].mul_(0.9).add_(p.grad)
        p.sub_(buffers[p])
        p.grad = None

    model.zero_grad()
    handles = [p.register_post_accumulate_grad_hook(descend) for p in model.parameters()]
    with record(model) as recording:
        model(x).sum().backward()
    assert training_of(recording.trace).state_bytes == 0
    assert all(len(p._post_accumulate_grad_hooks) == 1 for p in model.parameters())
    for handle in handles:
        handle.remove()


def test_what_is_only_asked_for_is_no_gradient_of_a_parameter():
    model = small()
    with record(model) as recording:
        torch.autograd.grad(model(torch.randn(5, 4)).sum(), list(model.parameters()))
    training = training_of(recording.trace)
    assert training.gradient_bytes == training.state_bytes == 0
    assert all(parameter.gradient is None for parameter in recording.trace.parameters)


def test_the_peak_is_that_of_a_step_with_the_optimizers_state(tmp_path):
    book = tmp_path / "book.txt"
    book.write_text("the quick brown fox " * 80)
    trained = train(
        "tiny-decoder", book, training={"steps": 1, "batch": 2, "seq": 16}, attention="explicit"
    )
    training = training_of(trained.trace)
    # By an independent tracker: 489 KiB in the first step, 561.7 in the second.
    assert round(training.first_peak.nbytes / 1024) == 489
    assert round(training.peak.nbytes / 1024, 1) == 561.7
