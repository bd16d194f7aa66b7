"""Every operator that runs, by a dispatch mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

from shapetrace.capture.recorder.events import FAILED_OP, OP, Event
from shapetrace.capture.recorder.plans import PLANS, Plan, Shapes, plan_number
from shapetrace.capture.recorder.storages import Storages
from shapetrace.capture.recorder.training_memory import ACCUMULATES, TrainingMemory
from shapetrace.capture.values.inner_tensors import packed_shape
from shapetrace.capture.values.quietly import PLAIN, is_overheard, quietly
from shapetrace.capture.values.tensors_in import Sizes, sizes_of

_current_node: Callable[[], Any] = torch._C._current_autograd_node  # noqa: SLF001
_sequence = torch._C._autograd._get_sequence_nr  # noqa: SLF001


class OperatorMode(TorchDispatchMode):
    """Appends an event for each operator; changes nothing of what it computes.

    Attributes:
        memory: Which blocks turned out to be gradients or optimizer state.
    """

    supports_higher_order_operators = True

    def __init__(self, events: list[Event], storages: Storages, sizes: Sizes) -> None:
        super().__init__()
        self.memory = TrainingMemory(storages)
        self._events = events
        self._append = events.append
        self._sizes = sizes
        self._storages = storages

    def __enter__(self) -> Self:
        """Start to see operators, and the updates of optimizers."""
        self.memory.watch()
        super().__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Stop seeing them."""
        super().__exit__(kind, error, where)
        self.memory.stop()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        # The wrapper that keeps Dynamo out of __torch_dispatch__ costs a microsecond per
        # operator; compiled code is kept from seeing this mode by other means.
        return False

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Run the operator, then note its shapes."""
        number = plan_number(func)
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except BaseException:
            plan = PLANS[number]
            shapes = quietly(_input_shapes, plan, args, kwargs or {}, self._sizes)
            self._events.append((FAILED_OP, plan.name, shapes))
            raise
        if is_overheard():
            quietly(self._note, number, args, kwargs or {}, result)
        else:
            self._note(number, args, kwargs or {}, result)
        return result

    def _note(
        self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any
    ) -> None:
        """Append the event of an operator that has run, and meet its new storages."""
        plan, shared, storages = PLANS[number], self._sizes, self._storages
        inputs = _input_shapes(plan, args, kwargs, shared)
        attributes = _attributes(plan, args, kwargs) if plan.looks else ()
        met = len(storages.blocks)
        dtype = None
        outputs: Shapes
        if type(result) is torch.Tensor:
            outputs, dtype = (_shape(result, shared),), result.dtype
            storages.index(result, plan.result)
        else:
            tensors = list(_tensors(result))
            outputs = tuple([_shape(tensor, shared) for tensor in tensors])
            for tensor in tensors:
                dtype = dtype or tensor.dtype
                storages.index(tensor, plan.result)
        node = _current_node()
        if self.memory.pending:
            self.memory.settle()
        if node is not None:
            phase, sequence = "backward", node._sequence_nr()  # noqa: SLF001
            if type(node) is ACCUMULATES:
                self.memory.pending.append(node.variable)
        else:
            phase, sequence = "forward", _sequence() if torch.is_grad_enabled() else -1
        new = range(met, len(storages.blocks)) if len(storages.blocks) > met else ()
        self._append((OP, number, inputs, outputs, attributes, dtype, phase, sequence, new))

    def pause(self) -> bool:
        """See no operators until `resume`; False when another mode lies on top of this one."""
        size = torch._C._len_torch_dispatch_stack()  # noqa: SLF001
        if not size or torch._C._get_dispatch_stack_at(size - 1) is not self:  # noqa: SLF001
            return False
        _pop_mode()
        return True

    def resume(self) -> None:
        """See operators again."""
        _push_mode(self)

    def call_without(self, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function that behaves differently under a dispatch mode, as one operator."""
        popped = self.pause()
        try:
            result = function(*args, **kwargs)
        finally:
            if popped:
                self.resume()
        quietly(self._note, plan_number(function), args, kwargs, result)
        return result


def _shape(tensor: torch.Tensor, shared: Sizes) -> tuple[int, ...]:
    if type(tensor) not in PLAIN:
        return quietly(sizes_of, tensor)
    try:
        return shared[tensor.shape]
    except RuntimeError:  # a nested tensor
        return sizes_of(tensor)


def _input_shapes(
    plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], shared: Sizes
) -> Shapes:
    if plan.tensors is None:
        return tuple([_shape(tensor, shared) for tensor in _tensors([*args, *kwargs.values()])])
    shapes: list[tuple[int, ...] | None] = []
    given = len(args)
    for position, name, is_list in plan.tensors:
        value = args[position] if position < given else kwargs.get(name)
        if isinstance(value, torch.Tensor):
            shapes.append(_shape(value, shared))
        elif is_list and value is not None:
            shapes.extend([None if item is None else _shape(item, shared) for item in value])
        else:  # absent, or a number where the operator also takes a tensor
            shapes.append(None if value is None else ())
    return tuple(shapes)


def _attributes(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    given = len(args)
    found = tuple(
        [
            (name, _told(args[position] if position < given else kwargs.get(name, default)))
            for position, name, default in plan.attributes
        ]
    )
    if plan.products:
        for value in args:
            if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
                return *found, ("layout", str(value.layout).removeprefix("torch."))
    return found


def _told(value: Any) -> Any:
    """What is noted of an argument, as it is now: of a packed weight, its shape."""
    if isinstance(value, torch.ScriptObject):
        return packed_shape(value)
    return tuple(value) if isinstance(value, list) else value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an operator's result or arguments, nested lists included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)
