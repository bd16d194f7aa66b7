"""What the proving process is given, and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shapetrace.capture.target.inputs import CallInputs

Fingerprint = tuple[tuple[str, str, str], ...]
"""Of an output: each tensor's place, type and shape, and hash of its bits."""


TargetText = tuple[str, tuple[str, ...], tuple[str, ...]]
"""How `shapetrace.capture.target.resolve` finds a model: text, ``--arg``, ``--hf-config``."""


@dataclass(frozen=True, slots=True)
class ProofCase:
    """Calls of one model.

    Attributes:
        calls: What it is called with, in order.
        target: What makes the model; None for the one that exists.
        training: Whether it is in training mode.
    """

    calls: Sequence[CallInputs]
    target: TargetText | None = None
    training: bool = False


@dataclass(frozen=True, slots=True)
class ProofJob:
    """A proof to be made.

    Attributes:
        sources: By file, its annotated source.
        modules: By name, the file of each module that is to be loaded from there.
        names: By file and number of the function, the places to be proven.
        locals: The same, variables alone; functions without any are here too.
        cases: Pickled: the models' calls.
        path: Where imports are searched.
        target: What makes the first model; None where it exists.
        model: The pickled model, where there is no target.
        seed: Of a target's random weights.
        folder: Where it is to run.
    """

    sources: Mapping[str, bytes]
    modules: Mapping[str, str]
    names: Mapping[tuple[str, int], frozenset[str]]
    locals: Mapping[tuple[str, int], frozenset[str]]
    cases: bytes
    path: tuple[str, ...]
    target: TargetText | None = None
    model: bytes = b""
    seed: int = 0
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Failed:
    """An annotation that did not hold.

    Attributes:
        file: Its file.
        function: Number of its function, in the order of ``def`` lines.
        name: Parameter, variable or ``return``.
        reason: What came instead, or why it could not be checked.
    """

    file: str
    function: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a proof came to.

    Attributes:
        failed: The annotations that did not hold.
        outputs: What the model returned in each call.
        checks: How many values were checked.
        error: What stopped it, in a line; empty when it ran through.
        details: The error's traceback.
    """

    failed: tuple[Failed, ...]
    outputs: tuple[Fingerprint, ...]
    checks: int
    error: str = ""
    details: str = ""
