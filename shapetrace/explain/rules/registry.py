"""The registry of rules, and what a rule may know of the call that failed.

A rule names an operand and an axis only where two things prove it: torch's documented rule
of the operation, and the sizes in the error's own text. Where either is missing it yields
nothing, and the explanation shows the operands without a clash.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from shapetrace.explain.rules.clash import Clash
from shapetrace.records.trace import Failure, Operand, Shape

_RULES: list[tuple[re.Pattern[str], "FailureRule"]] = []


_INNER = (
    r"cannot be multiplied \(\d+x(\d+) and (\d+)x\d+\)",
    r"of batch2 tensor to be: \[\d+, (\d+)\] but got: \[\d+, (\d+)\]",
    r"reduction dim, but got \[\d+, (\d+)\] X \[(\d+), \d+\]",
    r"mat \(\d+x(\d+)\), vec \((\d+)\)",
    r"expected tensor \[(\d+)\] and src \[(\d+)\]",
)
"""What torch says of a product whose inner sizes differ."""


@dataclass(frozen=True)
class FailedCall:
    """The operation that failed, its operands by their place, and what the error says.

    Attributes:
        failure: The failure.
    """

    failure: Failure

    @cached_property
    def tensors(self) -> list[Operand]:
        """The operands whose sizes are known."""
        return [operand for operand in self.failure.operands if operand.shape is not None]

    @property
    def operation(self) -> str:
        """What was done: ``@``, ``cat``, a module's class."""
        return self.failure.operation

    @property
    def message(self) -> str:
        """The error's text."""
        return self.failure.message

    def at(self, position: int, *names: str) -> Operand | None:
        """The operand of a parameter: by its name, or by its place in the call.

        A method's tensor (``x`` of ``x.gather(...)``) has the first place.
        """
        is_method = any(operand.role == "self" for operand in self.failure.operands)
        place = str(position - 1 if is_method else position)
        roles = {*names, "self" if is_method and position == 0 else place}
        return next((o for o in self.failure.operands if o.role in roles), None)

    def tensor(self, position: int, *names: str) -> Operand | None:
        """The tensor of a parameter, where its sizes are known."""
        found = self.at(position, *names)
        return found if found is not None and found.shape is not None else None

    def number(self, position: int, *names: str, default: int = 0) -> int | None:
        """The integer of a parameter; None where something else was given."""
        found = self.at(position, *names)
        if found is None:
            return default
        return int(found.value) if re.fullmatch(r"-?\d+", found.value) else None

    @cached_property
    def module(self) -> Operand | None:
        """The module that was called."""
        return next((o for o in self.failure.operands if o.role == "module"), None)

    def setting(self, name: str) -> str:
        """What the called module's description says of a setting; empty where nothing."""
        described = self.module.value if self.module is not None else ""
        found = re.search(rf"\b{name}=(\([^)]*\)|[^,)]+)", described)
        return found[1] if found else ""

    def shaped(self, shape: Shape) -> Operand | None:
        """The one operand with these sizes."""
        found = [operand for operand in self.tensors if operand.shape == shape]
        return found[0] if len(found) == 1 else None

    def match(self, pattern: str) -> re.Match[str] | None:
        """The first place of the error's text that fits a pattern."""
        return re.search(pattern, self.message)

    def inner_sizes(self) -> set[int]:
        """The two sizes that a product's error says should be equal; none of other errors."""
        found = next((m for pattern in _INNER if (m := self.match(pattern)) is not None), None)
        return set() if found is None else {int(found[1]), int(found[2])}

    def mentions(self, *numbers: int) -> bool:
        """Whether the error's text has all these numbers."""
        found = set(re.findall(r"(?<![\w.])\d+(?=x\d|[^\w]|$)|(?<=\dx)\d+", self.message))
        return all(str(number) in found for number in numbers)


FailureRule = Callable[[FailedCall], Iterator[Clash]]


def rule(operations: str) -> Callable[[FailureRule], FailureRule]:
    """Register a rule.

    Args:
        operations: A pattern of the operations that it speaks of: signs, functions and
            methods by name, modules by class.
    """

    def register(function: FailureRule) -> FailureRule:
        _RULES.append((re.compile(operations), function))
        return function

    return register


def rules_of(operation: str) -> list[FailureRule]:
    """The rules that speak of an operation, in the order of their registration."""
    return [function for names, function in _RULES if names.fullmatch(operation)]


def sizes_in(text: str) -> Shape:
    """The sizes that a text lists: ``2, 3``."""
    return tuple(int(size) for size in re.findall(r"-?\d+", text))


def broadcasts(a: int, b: int) -> bool:
    """Whether two sizes go together in an elementwise operation."""
    return a == b or 1 in (a, b)


def weight_of(operand: Operand) -> str:
    """The module that a parameter belongs to; empty for a weight without one."""
    module = operand.text.removesuffix(f".{operand.role}")
    return module if module != operand.text and operand.line else ""
