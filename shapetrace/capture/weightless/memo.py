"""Weightless runs that work out each operator's result once.

On the meta device most operators run a Python description of themselves, which takes longer
than a small model's real work. Probes ask the same again and again (equal layers, equal runs
but for one size), and only for shapes: what an operator gave for the same shapes, strides,
dtypes and numbers is what it gives.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

_PLAIN = (torch.Tensor, nn.Parameter)
_SCALARS = (int, float, bool, str, complex, type(None), torch.dtype, torch.device, torch.layout)
_MOST = 100_000


class _Unkeyed(Exception):  # noqa: N818 - it is caught at once
    """The call holds something that can't be told apart by its value."""


class Remembering(TorchDispatchMode):
    """Gives fresh meta tensors where an equal call was answered before.

    Views, which share memory with what they are of, and whatever changes a tensor's shape in
    place always run.
    """

    supports_higher_order_operators = True

    def __init__(self, known: dict[Any, Any]) -> None:
        """Take what is known already.

        Args:
            known: Answers by call; is filled.
        """
        super().__init__()
        self._known = known

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # its wrapper costs more than the look-up

    def __torch_dispatch__(
        self,
        func: Any,
        types: Sequence[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Answer a call, from memory where it is there."""
        kwargs = kwargs or {}
        kind = _kind(func)
        if kind == "runs" or torch.is_grad_enabled():
            return func(*args, **kwargs)
        try:
            key = (func, _key(args), _key(kwargs), torch.get_default_dtype())
            answer = self._known.get(key)
        except (_Unkeyed, TypeError):
            return func(*args, **kwargs)
        if answer is not None:
            return args[0] if kind == "in place" else _fresh(answer)
        result = func(*args, **kwargs)
        if len(self._known) < _MOST:
            self._learn(key, kind, args, result)
        return result

    def _learn(self, key: Any, kind: str, args: tuple[Any, ...], result: Any) -> None:
        if kind == "in place":
            if result is args[0] and _key(args) == key[1]:
                self._known[key] = True
            return
        answer = _answer(result)
        if answer is not None:
            self._known[key] = answer


_KINDS: dict[int, str] = {}
"""By identity of an operator: ``fresh`` results, ``in place`` on its first argument, or ``runs``."""


def _kind(func: Any) -> str:
    kind = _KINDS.get(id(func))
    if kind is None:
        kind = _KINDS[id(func)] = _told_by_schema(func)
    return kind


def _told_by_schema(func: Any) -> str:
    schema = getattr(func, "_schema", None)
    if schema is None or not isinstance(func, torch._ops.OpOverload):  # noqa: SLF001
        return "runs"
    aliases = [a.alias_info for a in schema.arguments if a.alias_info is not None]
    if not aliases:
        return "fresh"
    first = schema.arguments[0].alias_info
    returns = [r.alias_info for r in schema.returns]
    in_place = first is not None and first.is_write and len(aliases) == len(returns) == 1
    return "in place" if in_place and returns[0] is not None else "runs"


def _key(value: Any) -> Any:
    kind = type(value)
    if kind in _PLAIN:
        if value.device.type != "meta" or value.layout is not torch.strided:
            raise _Unkeyed
        return value.shape, value.stride(), value.dtype
    if kind in _SCALARS:
        return kind, value  # 1, 1.0 and True are equal
    if kind in (tuple, list, torch.Size):
        return tuple([_key(item) for item in value])
    if kind is dict:
        return tuple([(name, _key(item)) for name, item in value.items()])
    if kind is torch.memory_format:
        return value
    raise _Unkeyed


def _answer(result: Any) -> Any:
    """What is kept of a result; None for one that holds more than plain meta tensors."""
    if type(result) in (tuple, list):
        parts = [_answer(item) for item in result]
        return None if None in parts else (type(result), parts)
    if type(result) is not torch.Tensor or result.device.type != "meta":
        return None
    return result.shape, result.stride(), result.dtype


def _fresh(answer: Any) -> Any:
    if len(answer) == 2:  # noqa: PLR2004 - a container and what it holds
        return answer[0](_fresh(part) for part in answer[1])
    shape, stride, dtype = answer
    return torch.empty_strided(shape, stride, dtype=dtype, device="meta")
