"""Every operator that runs, by a dispatch mode."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _pop_mode, _push_mode

from shapetrace.capture.recorder.events import FAILED_OP, OP, Event
from shapetrace.capture.recorder.storages import Storages
from shapetrace.capture.recorder.training_memory import ACCUMULATES, TrainingMemory
from shapetrace.capture.values.inner_tensors import packed_shape
from shapetrace.capture.values.quietly import PLAIN, is_overheard, quietly
from shapetrace.capture.values.tensors_in import sizes_of
from shapetrace.cost import ATTRIBUTES, FORMULAS
from shapetrace.records.trace import StorageKind

_current_node: Callable[[], Any] = torch._C._current_autograd_node  # noqa: SLF001
_sequence = torch._C._autograd._get_sequence_nr  # noqa: SLF001
Shapes = tuple[tuple[int, ...] | None, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """What to note of an operator's call, worked out once from its schema.

    Attributes:
        operator: What it is for; held, so that its identity stays its own.
        name: ``aten.addmm.default``.
        tensors: Position, name and whether it is a list, of each tensor argument; None for
            an operator without a schema, whose every tensor counts.
        attributes: Position, name and default of each argument that a formula needs.
        products: Whether it multiplies matrices: of a sparse one the shape is not the cost.
        looks: Whether more than tensors' shapes is to be noted.
        by_value: Whether its result's shape or what runs after may hang on tensors' values.
        result: What a block is taken to hold that its result lies in and nothing made before:
            that of a view was there before the run.
    """

    operator: Any
    name: str
    tensors: tuple[tuple[int, str, bool], ...] | None
    attributes: tuple[tuple[int, str, Any], ...]
    by_value: bool = False
    products: bool = False
    looks: bool = False
    result: StorageKind = "activation"


_PLANS: dict[int, Plan] = {}
"""Plans by the operator's identity: operators live as long as the process."""


def plan_for(operator: Any) -> Plan:
    """The plan for an operator overload, or for anything else that is dispatched."""
    plan = _PLANS.get(id(operator))
    if plan is None:
        plan = _PLANS[id(operator)] = _planned(operator)
    return plan


def _planned(operator: Any) -> Plan:
    schema = getattr(operator, "_schema", None)
    if schema is None:  # flex_attention and its like take functions too
        return Plan(operator, f"higher_order.{getattr(operator, '__name__', operator)}", None, ())
    tensors, attributes = [], []
    packet = str(operator.overloadpacket)
    wanted = ATTRIBUTES.get(packet, ())
    for position, argument in enumerate(schema.arguments):
        kind = str(argument.type)
        if "Tensor" in kind:
            tensors.append((position, argument.name, kind.startswith("List")))
        elif argument.name in wanted:
            default = argument.default_value if argument.has_default_value() else None
            attributes.append((position, argument.name, default))
    return Plan(
        operator,
        str(operator),
        tuple(tensors),
        tuple(attributes),
        by_value=_is_by_value(operator),
        products=packet in FORMULAS,
        looks=bool(attributes) or packet in FORMULAS,
        result="input" if _is_view(operator) else "activation",
    )


def _is_view(operator: Any) -> bool:
    """Whether its result lies in an argument's memory; `lift_fresh` only looks as if."""
    shares = any(result.alias_info is not None for result in operator._schema.returns)  # noqa: SLF001
    return shares and "lift_fresh" not in str(operator)


def _is_by_value(operator: Any) -> bool:
    tags = (torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape)
    return any(tag in operator.tags for tag in tags)


class OperatorMode(TorchDispatchMode):
    """Appends an event for each operator; changes nothing of what it computes.

    Attributes:
        memory: Which blocks turned out to be gradients or optimizer state.
    """

    supports_higher_order_operators = True

    def __init__(self, events: list[Event], storages: Storages) -> None:
        super().__init__()
        self.memory = TrainingMemory(storages)
        self._events = events
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
        plan = _PLANS.get(id(func)) or plan_for(func)
        try:
            result = func(*args, **kwargs) if kwargs else func(*args)
        except BaseException:
            shapes = quietly(_input_shapes, plan, args, kwargs or {})
            self._events.append((FAILED_OP, plan.name, shapes))
            raise
        if is_overheard():
            quietly(self._note, plan, args, kwargs or {}, result)
        else:
            self._note(plan, args, kwargs or {}, result)
        return result

    def _note(self, plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Append the event of an operator that has run, and meet its new storages."""
        inputs = _input_shapes(plan, args, kwargs)
        attributes = _attributes(plan, args, kwargs) if plan.looks else ()
        index = self._storages.index
        met = len(self._storages.blocks)
        dtype = None
        outputs: Shapes
        if type(result) is torch.Tensor:
            outputs, dtype = (_shape(result),), result.dtype
            index(result, plan.result)
        else:
            tensors = list(_tensors(result))
            outputs = tuple(_shape(tensor) for tensor in tensors)
            for tensor in tensors:
                dtype = dtype or tensor.dtype
                index(tensor, plan.result)
        new = range(met, len(self._storages.blocks))
        node = _current_node()
        if self.memory.pending:
            self.memory.settle()
        if node is not None:
            phase, sequence = "backward", node._sequence_nr()  # noqa: SLF001
            if type(node) is ACCUMULATES:
                self.memory.pending.append(node.variable)
        else:
            grad = torch.is_grad_enabled()
            phase, sequence = "forward", _sequence() if grad else -1
        self._events.append((OP, plan, inputs, outputs, attributes, dtype, phase, sequence, new))

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
        name = getattr(function, "__name__", "call")
        full_name = f"higher_order.{name}" if name == "flex_attention" else f"torch.{name}"
        plan = Plan(function, full_name, None, ())
        quietly(self._note, plan, args, kwargs, result)
        return result


def _shape(tensor: torch.Tensor) -> tuple[int, ...]:
    if type(tensor) not in PLAIN:
        return quietly(sizes_of, tensor)
    try:
        return tensor.shape
    except RuntimeError:  # a nested tensor
        return sizes_of(tensor)


def _input_shapes(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Shapes:
    if plan.tensors is None:
        return tuple(_shape(tensor) for tensor in _tensors([*args, *kwargs.values()]))
    shapes: list[tuple[int, ...] | None] = []
    given = len(args)
    for position, name, is_list in plan.tensors:
        value = args[position] if position < given else kwargs.get(name)
        if isinstance(value, torch.Tensor):
            shapes.append(_shape(value))
        elif is_list and value is not None:
            shapes.extend(None if item is None else _shape(item) for item in value)
        else:  # absent, or a number where the operator also takes a tensor
            shapes.append(None if value is None else ())
    return tuple(shapes)


def _attributes(plan: Plan, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
    given = len(args)
    found = tuple(
        (name, _told(args[position] if position < given else kwargs.get(name, default)))
        for position, name, default in plan.attributes
    )
    if plan.products:
        for value in args:
            if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
                return *found, ("layout", str(value.layout).removeprefix("torch."))
    return found


def _told(value: Any) -> Any:
    """What is noted of an argument: of a packed weight, its shape."""
    return packed_shape(value) if isinstance(value, torch.ScriptObject) else value


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    """The tensors in an operator's result or arguments, nested lists included."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)
