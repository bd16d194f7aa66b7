"""Columns of text on a screen, measured in cells: a Chinese character takes two.

Rich's own tables do more, and take longer to import than a report takes to make; only
its measure of letters is used here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells

if TYPE_CHECKING:
    from collections.abc import Iterator

GAP = 2
_CODES = {"bold": "1", "dim": "2", "green": "32", "cyan": "36", "alarm": "1;31"}


@dataclass(frozen=True, slots=True)
class Track:
    """One column of a grid.

    Attributes:
        width: Its cells.
        right: Whether its texts stand at the right.
        style: Of its texts; empty for none.
    """

    width: int
    right: bool = False
    style: str = ""


@dataclass(frozen=True, slots=True)
class Pen:
    """Writes text, in colours or without.

    Attributes:
        color: Whether colours are wanted.
    """

    color: bool

    def paint(self, text: str, style: str) -> str:
        """The text in a style, where there are colours and something to see."""
        if not self.color or not style or not text.strip():
            return text
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m"

    def labelled(self, label: str, text: str, style: str, width: int | None) -> Iterator[str]:
        """A text after its label, in as many lines as it needs.

        Args:
            label: Is painted.
            text: May have lines of its own.
            style: Of the label.
            width: Cells in a line; None when nothing limits it.
        """
        whole = f"{label}: {text}".splitlines()
        first, *rest = (piece for line in whole for piece in wrap(line, width))
        yield self.paint(first[: len(label)], style) + first[len(label) :]
        yield from rest

    def row(self, tracks: Sequence[Track], texts: Sequence[str], style: str = "") -> Iterator[str]:
        """A row's lines: as many as its longest text needs.

        Args:
            tracks: The columns.
            texts: One per column.
            style: For all of them, instead of the columns' own.
        """
        wrapped = [wrap(text, track.width) for text, track in zip(texts, tracks, strict=True)]
        for pieces in zip_longest(*wrapped, fillvalue=""):
            last = max((place for place, piece in enumerate(pieces) if piece), default=0)
            shown = [
                self.paint(_padded(piece, track, open_end=place == last), style or track.style)
                for place, (piece, track) in enumerate(zip(pieces, tracks, strict=True))
                if place <= last
            ]
            yield (" " * GAP).join(shown)


def _padded(text: str, track: Track, *, open_end: bool) -> str:
    """A text brought to its column's width; nothing follows it at an open end."""
    space = " " * (track.width - cell_len(text))
    if track.right:
        return space + text
    return text if open_end else text + space


def wrap(text: str, width: int | None) -> list[str]:
    """A text in lines of at most `width` cells, broken at spaces where it can be.

    Args:
        text: One line; spaces at its beginning are kept, and again before its other lines.
        width: Cells in a line; None when nothing limits it.
    """
    if width is None or cell_len(text) <= width:
        return [text]
    indent = text[: len(text) - len(text.lstrip())]
    if cell_len(indent) * 2 > width:
        indent = ""
    lines, line = list[str](), ""
    for piece in _pieces(text.strip(), width - cell_len(indent)):
        if line and cell_len(indent + line + piece.rstrip()) > width:
            lines.append(indent + line.rstrip())
            line = ""
        line += piece
    return [*lines, indent + line.rstrip()]


def _pieces(text: str, width: int) -> Iterator[str]:
    """Words with the spaces after them; a word that is longer than a line in parts."""
    start = 0
    for place in range(1, len(text) + 1):
        if place == len(text) or (text[place - 1] == " " and text[place] != " "):
            word, start = text[start:place], place
            if cell_len(word.rstrip()) <= width:
                yield word
            else:
                yield from chop_cells(word, width)
