"""The explanation of a failure as text, in the house's style."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shapetrace.explain.engine import engine_clashes, is_of_the_engine
from shapetrace.explain.origins import Origins, place
from shapetrace.explain.rules import find_clashes
from shapetrace.installed import is_installed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.explain.rules import Clash, ClashSide
    from shapetrace.records.trace import Failure, Operand, Trace

_CALLERS = 4


def explain(trace: Trace) -> str:
    """Why a run failed.

    Args:
        trace: A trace; of one without a failure there is nothing to say.

    Returns:
        Lines: the error, the statement that raised it, each operand with its named shape
        and where it was made, the sizes that clash, and what to do where that is plain;
        empty when the run did not fail.

    Example::

        RuntimeError in blocks.3.mlp (MLP): mat1 and mat2 shapes cannot be multiplied ...
          model.py:42: return self.down(hidden)
            hidden: float32[B=2, n=16, d_ff=512], from `hidden` since blocks.3.mlp (model.py:41)
            self.down.weight: float32[d_model=128, 768], from `self.down` (model.py:38)
          clash: axis 2 of `hidden` is 512, axis 1 of `self.down.weight` is 768
            512 is `d_ff`, from `hidden` since blocks.3.mlp (model.py:41)
            768 is from in_features of `self.down`, `4 * width` (model.py:38)
          fix: make `self.down` with in_features=512
    """
    failure = trace.failure
    return "" if failure is None else "\n".join(_lines(Origins(trace, failure), failure))


def _lines(origins: Origins, failure: Failure) -> Iterator[str]:
    where = origins.where()
    message = failure.message.strip().partition("\n")[0]
    said = f": {message}" if message else ""
    yield f"{failure.type_name}{f' in {where}' if where else ''}{said}"
    if failure.file:
        yield from _statement(failure)
    if failure.raised is not None:
        file, line, text = failure.raised
        yield f"  raised in {place(file, line)}: {_head(text)}"
    told = [o for o in failure.operands if o.text not in (o.value, repr(o.value))]
    yield from dict.fromkeys(f"    {_operand(origins, operand)}" for operand in told)
    for clash in _clashes(origins.trace, failure):
        yield from _clash(origins, clash)
    circle = origins.circle()
    if circle:
        calls = ", ".join(f"`{_head(text)}` ({place(file, line)})" for file, line, text in circle)
        yield f"  clash: this never ends: {calls}"
        return
    for file, line, text in _callers(failure):
        yield f"  called from {place(file, line)}: {_head(text)}"


def _clashes(trace: Trace, failure: Failure) -> list[Clash]:
    found = engine_clashes(trace, failure)
    return found if found or is_of_the_engine(failure) else find_clashes(failure)


def _statement(failure: Failure) -> Iterator[str]:
    first, *rest = failure.statement.splitlines() or [""]
    yield f"  {place(failure.file, failure.line)}: {first}"
    for line in rest:
        yield f"      {line}"


def _operand(origins: Origins, operand: Operand) -> str:
    if operand.shape is None:
        return f"{operand.text}: {operand.value}" if operand.value else operand.text
    shape = _shape(origins, operand)
    values = f" holding {operand.value}" if operand.value else ""
    device = f" on {operand.device}" if operand.device not in {"", "cpu"} else ""
    return f"{operand.text}: {shape}{device}{values}, {origins.made(operand)}"


def _shape(origins: Origins, operand: Operand) -> str:
    """Dtype, and each axis with its name: ``float32[B=2, n=16, 3]``."""
    sizes = operand.shape or ()
    named = zip(origins.names(operand), sizes, strict=True)
    axes = ", ".join(f"{name}={size}" if name else str(size) for name, size in named)
    return f"{operand.dtype}[{axes}]"


def _clash(origins: Origins, clash: Clash) -> Iterator[str]:
    yield f"  clash: {clash.text}"
    for part in clash.parts:
        if part.axis is not None or (part.operand.shape is None and part.operand.origins):
            yield f"    {_blamed(origins, part)}"
    runs = next((f for f in clash.fixes if f.text in origins.failure.fixes), None)
    advice = runs.text if runs is not None else clash.advice
    if advice:
        yield f"  fix: {advice}"


def _blamed(origins: Origins, part: ClashSide) -> str:
    made = origins.traced(part.operand, part.axis)
    if part.axis is None:
        return f"{part.operand.value} is `{part.operand.text}`{made and ', '}{made}"
    size = (part.operand.shape or ())[part.axis]
    name = origins.names(part.operand)[part.axis]
    return f"{size} is `{name}`, {made}" if name else f"{size} is {made}"


def _head(text: str) -> str:
    """The first line of a statement."""
    return text.partition("\n")[0].strip()


def _callers(failure: Failure) -> list[tuple[str, int, str]]:
    """The nearest calls, innermost first; those in one file follow from the path.

    Where a library failed, the innermost line of somebody's own comes first.
    """
    calls = [call for call in reversed(failure.callers) if call[0] != failure.file]
    if is_installed(failure.file):
        own = [call for call in calls if not is_installed(call[0])]
        calls = [*own[:1], *(call for call in calls if call not in own[:1])]
    return calls[:_CALLERS]
