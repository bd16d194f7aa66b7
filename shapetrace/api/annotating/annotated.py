"""What annotating came to: new source for each file, nothing of it written yet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from shapetrace.annotation.plan.plans import LeftOut, Rewritten
from shapetrace.annotation.report import annotation_summary, diff
from shapetrace.annotation.writing import write_in_place


@dataclass(frozen=True, slots=True)
class Annotated:
    """What annotating a model came to.

    Attributes:
        files: Each file's old and new source.
        left_out: What has no annotation, or a weaker one, and why.
        tensors: How many parameters and returns held a tensor.
        checks: How many values the proof checked.
        equal: In how many runs the outputs were compared with the old ones, and equal to the
            bit; none where the model itself does not give the same bits twice.
        runs: Sizes of the inputs' named axes in each run.
        root: The folder that the files belong to.
        invented: The names of sizes of parameters and returns that nobody uses, by function.
    """

    files: tuple[Rewritten, ...]
    left_out: tuple[LeftOut, ...]
    tensors: int
    checks: int
    equal: int
    runs: tuple[tuple[tuple[str, int], ...], ...]
    root: Path
    invented: tuple[str, ...] = ()

    def diff(self) -> str:
        """The changes, as a unified diff."""
        return diff(self.files, self.root).decode("utf-8", "replace")

    def write(self, *, force: bool = False) -> list[Path]:
        """Replace the files; each old one stays beside it as ``.bak``.

        Args:
            force: Whether installed packages and files with uncommitted changes may be written.

        Returns:
            The files that were written.

        Raises:
            ShapetraceError: If any file may not or can't be written; then none is.
        """
        return write_in_place(self.files, force=force)

    def __str__(self) -> str:
        return annotation_summary(
            self.files,
            self.left_out,
            self.checks,
            self.root,
            equal=self.equal,
            runs=len(self.runs),
            invented=self.invented,
        )
