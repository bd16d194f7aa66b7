"""Check the annotations of a project while its tests run."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from shapetrace.api.checks.tally import Checked, Tally
from shapetrace.check import check
from shapetrace.check.enforcement import unenforced
from shapetrace.check.findings import Finding, from_mismatches, from_unenforced
from shapetrace.errors import ShapetraceError
from shapetrace.installed import is_installed

if TYPE_CHECKING:
    from shapetrace.capture.background import Session


class ProjectCheck:
    """Checks what runs between `begin` and `end`, test by test; costs nothing without torch.

    Attributes:
        shown_by: By file, line and code of a finding, the test that showed it first.
    """

    def __init__(self, root: Path, packages: Collection[str], codes: frozenset[str]) -> None:
        """Take what to look at.

        Args:
            root: The project's folder; files below it are its own.
            packages: Only these packages, wherever they are installed; all when empty.
            codes: The rules that are on.
        """
        self._root, self._packages, self._codes = root, frozenset(packages), codes
        self._session: Session | None = None
        self._tally = Tally()
        self._watched: frozenset[str] = frozenset()
        self.shown_by: dict[tuple[str, int, str], str] = {}

    def begin(self) -> None:
        """A test starts."""
        if "torch" not in sys.modules:
            self._watched = frozenset()
            return  # no tensor yet
        self._watched = files = frozenset(self._files())
        if not files:
            return
        from shapetrace.capture.background import Session  # noqa: PLC0415 - needs torch

        self._session = self._session or Session()
        try:
            self._session.begin(dict.fromkeys(files))
        except ShapetraceError as error:
            self._tally.notes.append(str(error))

    def end(self, test: str) -> None:
        """A test has ended."""
        late = sorted(set(self._files()) - self._watched) if "torch" in sys.modules else []
        self._tally.notes += [f"{file} was first imported in {test}, unseen there" for file in late]
        trace = self._session.end(test) if self._session is not None else None
        if trace is None:
            return
        found = from_mismatches(trace, check(trace, pinned=()))
        for one in found:
            self.shown_by.setdefault((one.file, one.line, one.code), test)
        self._tally.add(trace, (), found)

    def finish(self) -> Checked:
        """All that was found; the code is put back."""
        if self._session is not None:
            self._session.stop()
            lax: list[Finding] = from_unenforced(unenforced(self._session.signatures()))
            self._tally.findings.append(lax)
        return self._tally.result("tests", self._codes)

    def _files(self) -> Iterator[str]:
        """The source files of the project's modules that are loaded, test modules left out."""
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not isinstance(file, str) or not file.endswith(".py"):
                continue
            loader = getattr(getattr(module, "__spec__", None), "loader", None)
            if type(loader).__name__ == "AssertionRewritingHook":
                continue  # pytest's own mark of test modules
            if self._packages:
                if name.partition(".")[0] in self._packages:
                    yield file
            elif _is_own(file, self._root):
                yield file


def _is_own(file: str, root: Path) -> bool:
    return not is_installed(file) and Path(file).is_relative_to(root)
