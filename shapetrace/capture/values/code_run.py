"""Which instructions of some files ran, by where they stand in the source."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

from shapetrace.source_code import Span


@dataclass(slots=True)
class CodeRun:
    """What ran, while it is collected."""

    _seen: dict[int, tuple[CodeType, set[int]]] = field(default_factory=dict)

    @contextmanager
    def watching(self, files: Collection[str]) -> Iterator[None]:
        """Collect what this thread runs of some files; an older trace function rests."""
        wanted = frozenset(files)
        seen = self._seen

        def begin(frame: FrameType, _: str, __: Any) -> Any:
            code = frame.f_code
            if code.co_filename not in wanted:
                return None
            frame.f_trace_lines, frame.f_trace_opcodes = False, True
            add = seen.setdefault(id(code), (code, set()))[1].add

            def on_event(frame: FrameType, event: str, _: Any) -> Any:
                if event == "opcode":
                    add(frame.f_lasti)
                return on_event

            return on_event

        before = sys.gettrace()
        sys.settrace(begin)
        try:
            yield
        finally:
            sys.settrace(before)

    def add(self, other: CodeRun) -> None:
        """Add what another run collected."""
        for key, (code, instructions) in other._seen.items():
            self._seen.setdefault(key, (code, set()))[1].update(instructions)

    def spans(self) -> Mapping[str, frozenset[Span]]:
        """By file: the places of the instructions that ran."""
        found: dict[str, set[Span]] = {}
        for code, instructions in self._seen.values():
            places = found.setdefault(code.co_filename, set())
            for number, position in enumerate(code.co_positions()):
                line, last, column, end = position
                if number * 2 in instructions and None not in position:
                    places.add((line or 0, column or 0, last or 0, end or 0))
        return {file: frozenset(places) for file, places in found.items()}
