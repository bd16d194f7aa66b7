"""Other ways to call a model, and to make it: what is optional left out, flags the other way.

A run shows one way through the code. Annotations have to hold on the others too, so that
they are gone as far as signatures tell of them; what the model refuses tells nothing.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from shapetrace.capture.target.inputs import CallInputs

_SMALL = 64
_MOST_CALLS = 14
_MOST_FLAGS = 10
_NUMBERS = (1, 2, 0)


@dataclass(frozen=True, slots=True)
class Variant:
    """Another way to run a model.

    Attributes:
        drop: Arguments that are left out.
        values: Arguments that get another value.
        flags: Arguments of the constructor, as ``name=value``.
        training: Whether the model is in training mode.
        always: Whether it tells something even where it runs no other code.
    """

    drop: frozenset[str] = frozenset()
    values: Mapping[str, Any] = field(default_factory=dict)
    flags: tuple[str, ...] = ()
    training: bool = False
    always: bool = False

    @property
    def other_model(self) -> bool:
        """Whether the model has to be made anew."""
        return bool(self.flags) or self.training

    def inputs(self, function: Callable[..., Any], given: CallInputs) -> CallInputs:
        """The inputs of a call, changed.

        Args:
            function: What is called.
            given: The inputs.
        """
        if not self.drop and not self.values:
            return given
        signature = inspect.signature(function)
        bound = signature.bind(*given.args, **given.kwargs).arguments
        kept = {name: value for name, value in bound.items() if name not in self.drop}
        kept.update(self.values)
        args: list[Any] = []
        kwargs: dict[str, Any] = {}
        for name, parameter in signature.parameters.items():
            if name not in kept:
                continue
            match parameter.kind:
                case parameter.POSITIONAL_ONLY:
                    args.append(kept[name])
                case parameter.VAR_POSITIONAL:
                    args.extend(kept[name])
                case parameter.VAR_KEYWORD:
                    kwargs.update(kept[name])
                case _ if _all_before(signature, name, kept) and not kwargs:
                    args.append(kept[name])
                case _:
                    kwargs[name] = kept[name]
        return CallInputs(tuple(args), kwargs)


def _all_before(signature: inspect.Signature, name: str, kept: Mapping[str, Any]) -> bool:
    """Whether a parameter can be given by its position."""
    names = [*signature.parameters]
    before = names[: names.index(name)]
    plain = signature.parameters[name].kind is not inspect.Parameter.KEYWORD_ONLY
    return plain and all(one in kept for one in before)


def call_variants(function: Callable[..., Any], given: CallInputs) -> Iterator[Variant]:
    """Other ways to call a model: options left out, flags the other way, small numbers varied.

    Args:
        function: What is called.
        given: What it is called with.
    """
    try:
        signature = inspect.signature(function)
        bound = signature.bind(*given.args, **given.kwargs).arguments
    except (TypeError, ValueError):
        return
    parameters = [p for p in signature.parameters.values() if p.default is not p.empty]
    left = [p.name for p in parameters if bound.get(p.name) is not None]
    count = 0
    for name in left:
        yield Variant(drop=frozenset({name}), always=True)
    if len(left) > 1:
        yield Variant(drop=frozenset(left), always=True)
    for parameter in parameters:
        now = bound.get(parameter.name, parameter.default)
        for value in _others(now, parameter.annotation):
            if count < _MOST_CALLS:
                count += 1
                yield Variant(values={parameter.name: value})


def model_variants(values: Mapping[str, Any]) -> Iterator[Variant]:
    """Other ways to make a model: training mode, flags the other way.

    Args:
        values: What it is made from.
    """
    yield Variant(training=True)
    flags = [(name, value) for name, value in _flat(values) if type(value) is bool]
    for name, value in flags[:_MOST_FLAGS]:
        yield Variant(flags=(f"{name}={not value}",))


def _flat(values: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in values.items():
        name = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping):
            yield from _flat(value, name)
        else:
            yield name, value


def _others(now: Any, annotation: Any) -> Sequence[Any]:
    """Other values that a parameter may have, as far as its value and annotation tell."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    if type(now) is bool:
        return (not now,)
    if type(now) is int and 0 <= now < _SMALL:
        return [number for number in (*_NUMBERS, now + 1) if number != now]
    if now is None and "bool" in text and "Tensor" not in text:
        return (True, False)
    if isinstance(now, str) or (now is None and "Literal[" in text):
        return [one for one in _literals(text) if one != now]
    return ()


def _literals(text: str) -> list[Any]:
    """The alternatives of ``Literal["mean", "sum"]``."""
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        return []
    subscripts = [node for node in ast.walk(tree) if isinstance(node, ast.Subscript)]
    found = [one for one in subscripts if ast.unparse(one.value).endswith("Literal")]
    return [
        inner.value
        for one in found
        for inner in ast.walk(one.slice)
        if isinstance(inner, ast.Constant)
    ]
