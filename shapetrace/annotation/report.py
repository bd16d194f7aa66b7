"""What annotating came to, as text: a diff that `patch` takes, and a summary."""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.annotation.plan.plans import LeftOut, Rewritten

_COLORS = {"+": "\033[32m", "-": "\033[31m", "@": "\033[36m"}
_ONE_SIZE = (
    "at one size of the inputs alone: other sizes may not hold; name axes in --input "
    "(x:float32[B=2,n=16]), or give the function of --inputs whole numbers with defaults"
)
_NAMES = 6
"""How many invented names are listed."""
_WORD = re.compile(rb"\w+")
_BOLD, _PLAIN = "\033[1m", "\033[0m"


def diff(files: Sequence[Rewritten], root: Path, *, color: bool = False) -> bytes:
    """A unified diff of the files that changed; bytes, so that it fits any encoding.

    Args:
        files: Old and new source.
        root: Folder that the paths in it are relative to, as for ``patch -p1``.
        color: Whether to colour it for a terminal.
    """
    return b"".join(line for file in files for line in _diff(file, root, color=color))


def _diff(file: Rewritten, root: Path, *, color: bool) -> Iterator[bytes]:
    path = Path(file.file)
    name = (path.relative_to(root) if path.is_relative_to(root) else path).as_posix().lstrip("/")
    old, new = _lines(file.old), _lines(file.new)
    for line in difflib.diff_bytes(
        difflib.unified_diff, old, new, f"a/{name}".encode(), f"b/{name}".encode(), lineterm=b"\n"
    ):
        whole = line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n"
        yield _colored(whole) if color else whole


def _lines(source: bytes) -> list[bytes]:
    return source.splitlines(keepends=True) if b"\r" not in source else _split(source)


def _split(source: bytes) -> list[bytes]:
    """Lines by line feeds alone, as `patch` counts them."""
    return [part + b"\n" for part in source.split(b"\n")[:-1]] + (
        [source.rpartition(b"\n")[2]] if not source.endswith(b"\n") else []
    )


def _colored(line: bytes) -> bytes:
    if line.startswith((b"---", b"+++")):
        return _BOLD.encode() + line.rstrip(b"\n") + _PLAIN.encode() + b"\n"
    start = _COLORS.get(line[:1].decode("ascii", "replace"))
    if start is None:
        return line
    return start.encode() + line.rstrip(b"\n") + _PLAIN.encode() + b"\n"


def annotation_summary(
    files: Sequence[Rewritten],
    left_out: Sequence[LeftOut],
    checks: int,
    root: Path,
    *,
    equal: int = 0,
    runs: int = 0,
    invented: Sequence[str] = (),
) -> str:
    """What was annotated, what was left out and why, in a few lines.

    Args:
        files: Old and new source.
        left_out: What has no annotation, or a weaker one.
        checks: How many values the proof checked.
        root: Folder that paths are relative to.
        equal: In how many runs the outputs were equal to the old ones.
        runs: How many runs, each at sizes of its own, proved it; 0 to be silent of them.
        invented: The names that nobody uses, such as ``x_1`` or ``n_or_1``, by function.
    """
    written = [one for file in files for one in file.written]
    if not written and not left_out:
        return "nothing to add: all that held a tensor has its annotation\n"
    functions = {(file.file, one.line) for file in files for one in file.written}
    kinds = Counter(one.kind for one in written)
    changed = sum(file.changed for file in files)
    where = f"{_many(len(functions), 'function')} annotated in {_many(changed, 'file')}"
    words = (("argument", "parameter"), ("return", "return"), ("local", "variable"))
    what = ", ".join(_many(kinds[kind], word) for kind, word in words)
    lines = [f"{where}: {what}"]
    if checks:
        lines.append(f"proven by running: {checks:,} values checked by jaxtyping and beartype")
        if runs == 1:
            lines.append(_ONE_SIZE)
        same = (
            f"equal to the bit in {_many(equal, 'run')}"
            if equal
            else ("not compared: they differ from run to run without annotations too")
        )
        lines.append(f"outputs {same}")
    if invented := _written(invented, files):
        lines.append(_renamed(invented))
    if left_out:
        lines.append("left out:")
        lines += [f"  {line}" for line in _reasons(left_out, root)]
    return "\n".join(lines) + "\n"


def _written(names: Sequence[str], files: Sequence[Rewritten]) -> list[str]:
    """Those of some names that stand in the new sources; a weakened annotation may not have one."""
    words = {word for file in files for word in _WORD.findall(file.new)}
    return [name for name in names if name.encode() in words]


def _renamed(invented: Sequence[str]) -> str:
    has = "has an invented name" if len(invented) == 1 else "have invented names"
    names = list(dict.fromkeys(invented))
    shown = ", ".join(names[:_NAMES]) + (", ..." if len(names) > _NAMES else "")
    return f"{_many(len(invented), 'size')} {has} ({shown}): rename at will"


def _reasons(left_out: Sequence[LeftOut], root: Path, limit: int = 40) -> Iterator[str]:
    for one in left_out[:limit]:
        path = Path(one.file)
        name = path.relative_to(root) if path.is_relative_to(root) else path
        what = f" `{one.name}`" if one.name else ""
        yield f"{name}:{one.line} {one.function}{what} {one.reason}"
    if len(left_out) > limit:
        yield f"and {len(left_out) - limit} more"


def _many(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
