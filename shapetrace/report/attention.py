"""Who reads whom, for people and for programs: bars for a token, shades for a head."""

from __future__ import annotations

import csv
import io
import json
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len, set_cell_size

from shapetrace.report.language.words import word
from shapetrace.report.layout.grid import Pen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from shapetrace.report.formats.reporters import Canvas
    from shapetrace.report.language.words import Language

ATTENTION_FORMAT_VERSION = 1
SHADES, ASCII_SHADES = " \u2591\u2592\u2593\u2588", " .+*#"
LIMITS = (0.06, 0.31, 0.56, 0.81)
"""The weights from which on each shade but the first is drawn: the middle ones for quarters."""
HIDDEN, ASCII_HIDDEN = "\u00d7", "x"
"""Stands where the query may not look."""
BAR, ASCII_BAR = "\u2588", "#"
_LABEL, _BAR_CELLS = 16, 40
_HEAD: dict[Language, str] = {"en": "head", "zh": "注意力头"}
"""Not the word for a model's output head."""
_WIDTH = 100
"""Cells of a line where nothing says how wide it is."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One attention layer's weights on one text.

    Attributes:
        path: The layer.
        cross: Whether keys are of another text than queries.
        queries: The tokens that read.
        keys: The tokens that are read from.
        weights: By head, query and key.
        visible: By query and key, whether it may be looked at.
        query: The place of the token whose reading is shown; None for all.
    """

    path: str
    cross: bool
    queries: tuple[str, ...]
    keys: tuple[str, ...]
    weights: Sequence[Sequence[Sequence[float]]]
    visible: tuple[tuple[bool, ...], ...]
    query: int | None = None

    @property
    def heads(self) -> int:
        """How many heads it has."""
        return len(self.weights)

    def mean(self) -> tuple[tuple[float, ...], ...]:
        """The weights averaged over the heads."""
        return tuple(
            tuple(sum(column) / self.heads for column in zip(*rows, strict=True))
            for rows in zip(*self.weights, strict=True)
        )

    def worst_sum(self) -> float:
        """How far the sum of a row is from 1, at most; a row that may see nothing sums to 0.

        NaN where a sum is NaN, which `max` alone would pass over.
        """
        far = [
            abs(sum(row) - 1)
            for head in self.weights
            for row, seen in zip(head, self.visible, strict=True)
            if any(seen)
        ]
        return next((one for one in far if math.isnan(one)), max(far, default=0.0))

    def shown(self) -> Sequence[int]:
        """The places of the tokens whose reading is shown."""
        return range(len(self.queries)) if self.query is None else [self.query]


@dataclass(frozen=True, slots=True)
class AttentionView:
    """What is to be shown.

    Attributes:
        name: The model.
        layers: The layers that were asked for.
        head: The head; None for all.
    """

    name: str
    layers: tuple[Layer, ...]
    head: int | None


def as_table(view: AttentionView, canvas: Canvas, language: Language = "en") -> str:
    """Bars where a token was asked for, else the table of a head, for each layer."""
    lines: list[str] = []
    for layer in view.layers:
        shown = _bars if layer.query is not None else _head
        lines += [*shown(view, layer, canvas, language), ""]
    return "".join(f"{line}\n" for line in lines[:-1])


def _bars(view: AttentionView, layer: Layer, canvas: Canvas, language: Language) -> Iterator[str]:
    assert layer.query is not None  # noqa: S101 - the caller has looked
    pen, query = Pen(canvas.color), layer.query
    rows = layer.mean() if view.head is None else layer.weights[view.head]
    which = (
        word("mean of all heads", language)
        if view.head is None
        else f"{_HEAD[language]} {view.head}"
    )
    read_by = f"{word('read by', language)} {query} {_quoted(layer.queries[query])}"
    title = [f"{layer.path},", f"{which}:", read_by]
    for part in _filled(title, canvas.width or _WIDTH, gap=" "):
        yield pen.paint(part, "bold")
    bar = BAR if canvas.unicode else ASCII_BAR
    hidden = HIDDEN if canvas.unicode else ASCII_HIDDEN
    room = max(8, min(_BAR_CELLS, (canvas.width or _WIDTH) - _LABEL - 16))
    for key, (token, weight) in enumerate(zip(layer.keys, rows[query], strict=True)):
        seen = layer.visible[query][key]
        length = round(weight * room)
        drawn = bar * length if seen else hidden
        yield f"{key:>4} {_label(token)} {weight:6.4f} {drawn}".rstrip()
    yield f"{word('sum', language)} {sum(rows[query]):.4f}"


def _head(view: AttentionView, layer: Layer, canvas: Canvas, language: Language) -> Iterator[str]:
    pen, head = Pen(canvas.color), view.head or 0
    title = [
        f"{layer.path}, {_HEAD[language]} {head} {word('of', language)} {layer.heads}:",
        word("rows read, columns are read from", language),
    ]
    for part in _filled(title, canvas.width or _WIDTH, gap=" "):
        yield pen.paint(part, "bold")
    width = canvas.width or _WIDTH
    cell = max(3, len(str(len(layer.keys) - 1)) + 1)
    fits = max(1, (width - 5 - _LABEL - 9) // cell)
    columns = range(max(0, len(layer.keys) - fits), len(layer.keys))
    queries = range(max(0, len(layer.queries) - fits), len(layer.queries))
    yield " " * (_LABEL + 5) + "".join(f"{key:>{cell}}" for key in columns)
    for query in queries:
        row = layer.weights[head][query]
        cells = "".join(_cell(layer, head, (query, key), canvas, cell) for key in columns)
        yield f"{query:>4} {_label(layer.queries[query])}{cells}  {sum(row):.4f}"
    if layer.cross:
        names = [f"{key} {_quoted(layer.keys[key])}" for key in columns]
        yield from _filled([f"{word('columns', language)}:", *names], width)
    if len(columns) < len(layer.keys) or len(queries) < len(layer.queries):
        yield from _filled(
            [
                f"{word('shown', language)}:",
                f"{word('rows', language)} {_part(queries, layer.queries)},",
                f"{word('columns', language)} {_part(columns, layer.keys)};",
                word("the JSON has all", language),
            ],
            width,
            gap=" ",
        )
    shades = SHADES if canvas.unicode else ASCII_SHADES
    hidden = HIDDEN if canvas.unicode else ASCII_HIDDEN
    steps = [f"{limit:.2f}{shade * 2}" for limit, shade in zip((0.0, *LIMITS), shades, strict=True)]
    last = f" {hidden} {word('may not look', language)}"
    yield from _filled([f"{word('shades from', language)}:", *steps, last], width, gap=" ")
    yield f"{word('farthest row sum from 1', language)}: {layer.worst_sum():.1e}"


def _filled(parts: Sequence[str], width: int, gap: str = "  ") -> Iterator[str]:
    """Parts side by side, in as many lines as they need; a part is not broken."""
    line = ""
    for part in parts:
        joined = f"{line}{gap}{part}" if line else part
        if line and cell_len(joined) > width:
            yield line
            joined = f"  {part.lstrip()}"
        line = joined
    yield line


def _part(places: range, tokens: Sequence[str]) -> str:
    return f"{places.start}-{places.stop - 1} / {len(tokens)}"


def _cell(layer: Layer, head: int, place: tuple[int, int], canvas: Canvas, cells: int) -> str:
    query, key = place
    if not layer.visible[query][key]:
        return f"{HIDDEN if canvas.unicode else ASCII_HIDDEN:>{cells}}"
    shades = SHADES if canvas.unicode else ASCII_SHADES
    weight = layer.weights[head][query][key]
    return " " + shades[bisect_right(LIMITS, weight)] * (cells - 1)


def _label(token: str) -> str:
    """A token in a fixed number of cells, whatever its letters take."""
    return (
        set_cell_size(_quoted(token), _LABEL)
        if cell_len(_quoted(token)) <= _LABEL
        else (set_cell_size(_quoted(token), _LABEL - 1) + "\u2026")
    )


def _quoted(token: str) -> str:
    return json.dumps(token, ensure_ascii=False)[1:-1] if token.strip() else json.dumps(token)


def as_json(view: AttentionView) -> str:
    """Every weight, with the tokens it is between."""
    body = {
        "format_version": ATTENTION_FORMAT_VERSION,
        "target": view.name,
        "layers": [_layer_json(view, layer) for layer in view.layers],
    }
    return json.dumps(body, ensure_ascii=False, allow_nan=False) + "\n"


def _layer_json(view: AttentionView, layer: Layer) -> dict[str, Any]:
    heads = range(layer.heads) if view.head is None else [view.head]
    queries = layer.shown()
    return {
        "path": layer.path,
        "kind": "cross" if layer.cross else "self",
        "queries": [layer.queries[query] for query in queries],
        "query_places": list(queries),
        "keys": list(layer.keys),
        "heads": list(heads),
        "weights": [[list(layer.weights[head][query]) for query in queries] for head in heads],
        "visible": [list(layer.visible[query]) for query in queries],
        "sums": [[sum(layer.weights[head][query]) for query in queries] for head in heads],
        "farthest_sum_from_1": layer.worst_sum(),
    }


def as_csv(view: AttentionView) -> str:
    """A line for each weight."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(
        ("path", "kind", "head", "query", "query_token", "key", "key_token", "weight", "visible")
    )
    for layer in view.layers:
        writer.writerows(_csv_rows(view, layer))
    return text.getvalue()


def _csv_rows(view: AttentionView, layer: Layer) -> Iterator[Sequence[object]]:
    heads = range(layer.heads) if view.head is None else [view.head]
    queries = layer.shown()
    kind = "cross" if layer.cross else "self"
    for head in heads:
        for query in queries:
            token = layer.queries[query]
            for key, weight in enumerate(layer.weights[head][query]):
                seen = layer.visible[query][key]
                yield layer.path, kind, head, query, token, key, layer.keys[key], weight, seen
