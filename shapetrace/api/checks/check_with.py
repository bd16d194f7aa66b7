"""Check the annotations of whatever runs inside a ``with`` block."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Any, Self

from torch import nn

from shapetrace.api.checks.tally import Checked, Tally
from shapetrace.capture.probing.resized_models import owned_sizes
from shapetrace.capture.recording import Recording, record
from shapetrace.capture.source.discover import Wanted
from shapetrace.check import check
from shapetrace.check.enforcement import unenforced
from shapetrace.check.findings import Finding, from_mismatches, from_unenforced
from shapetrace.check.rules import chosen
from shapetrace.errors import ShapetraceError
from shapetrace.installed import is_installed


class AnnotationsError(ShapetraceError):
    """Annotations that do not hold, at the end of a `checking` block.

    Attributes:
        findings: What is wrong.
    """

    exit_code = 1
    verbatim = True

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        many = f"{len(findings)} annotations do not hold" if len(findings) > 1 else ""
        many = many or "an annotation does not hold"
        super().__init__(many + "\n\n" + "\n\n".join(one.text for one in findings))
        self.findings = findings


class Checking:
    """A context manager that checks the annotations of what runs inside.

    Attributes:
        result: What it came to, once the block has ended.
    """

    def __init__(
        self,
        model: nn.Module | None,
        recording: Recording,
        codes: frozenset[str],
        *,
        raises: bool = True,
    ) -> None:
        self._codes = codes
        self._raises = raises
        self._model = model
        self._recording = recording
        self.result: Checked | None = None

    def __enter__(self) -> Self:
        """Start watching.

        Raises:
            ShapetraceError: Another recording is running in this process.
        """
        self._recording.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        """Stop watching, and say what does not hold.

        Raises:
            AnnotationsError: An annotation does not hold, and `raises` was not turned off.
        """
        self._recording.__exit__(kind, error, where)
        self.result = self._checked()
        if not self.result.findings:
            return
        if error is not None:
            error.add_note(str(AnnotationsError(self.result.findings)))
        elif self._raises:
            raise AnnotationsError(self.result.findings)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """What is wrong; empty until the block has ended."""
        return self.result.findings if self.result is not None else ()

    def _checked(self) -> Checked:
        trace = self._recording.trace
        owned = owned_sizes(self._model) if self._model is not None else {}
        lax = from_unenforced(unenforced(self._recording.signatures()))
        tally = Tally()
        found = from_mismatches(trace, check(trace, owned=owned))
        tally.add(trace, trace.sizes, [*found, *lax])
        return tally.result(trace.target, self._codes, lambda file: not is_installed(file))


def checking(
    model: nn.Module | None,
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    raises: bool = True,
    wanted: Wanted | None = None,
    target: str = "",
    config: Mapping[str, Any] | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Checking:
    """Check the annotations of whatever runs inside a ``with`` block.

    Arguments, returns and annotated variables of every function that the model reaches are
    compared with their annotations, decorated or not.

    Args:
        model: The module; None for plain functions, named by ``wanted=``.
        select: Rules to use, by code or name; those on by default when empty.
        ignore: Rules to leave out.
        raises: Whether a finding raises at the end of the block; they are in `findings`
            either way.
        wanted: By source file, the first lines of the functions to look into, None for all
            of a file's; what the model's forwards reach by name when None.
        target: What the run is called; the model's class without it.
        config: Sizes that mean one number everywhere.
        sizes: Of the inputs' named axes.

    Raises:
        AnnotationsError: At the end of the block, when an annotation does not hold.

    Example:
        >>> import torch, shapetrace
        >>> from shapetrace.model import ModelConfig, build
        >>> model = build(ModelConfig.from_preset("tiny-decoder"))
        >>> with shapetrace.checking(model) as checked:
        ...     logits = model(torch.zeros(2, 16, dtype=torch.int64))
        >>> checked.findings
        ()
    """
    codes = chosen(select, ignore)
    recording = record(
        model, operators=False, wanted=wanted, target=target, config=config, sizes=sizes
    )
    return Checking(model, recording, codes, raises=raises)
