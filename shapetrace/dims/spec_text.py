"""Reading one input spec from left to right, with a caret where it cannot be read."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from shapetrace.errors import SpecError, did_you_mean

if TYPE_CHECKING:
    from collections.abc import Iterator

DTYPES = (
    *("float16", "bfloat16", "float32", "float64", "complex64", "complex128"),
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
)
"""Dtypes that a spec may name, as torch names them."""

ValuePlace = tuple[str | int, ...]
"""Where a value goes: a parameter's name or position, then keys and indices."""

_ALIASES = {"float": "float32", "half": "float16", "double": "float64"}
_ALIASES |= {"int": "int64", "long": "int64"}
_PLACE = re.compile(r"\s*([A-Za-z_0-9][A-Za-z_0-9]*(?:\.[A-Za-z_0-9]+)*)\s*([:=])")
_WORD = re.compile(r"[A-Za-z_]\w*")
_NUMBER = re.compile(r"\d+")
_EXAMPLE = "such as ids:int64[B=2,n=16]<1000"
_LARGEST = 2**63 - 1


@dataclass(frozen=True, slots=True)
class OpenAxis:
    """An axis as written: a size that may be missing, and where it stands."""

    name: str
    size: int | None
    at: int


class SpecReader:
    """Reads one spec from left to right; errors show where it stopped."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.place: ValuePlace = ()
        self.dtype = ""
        self.axes: list[OpenAxis] = []
        self.below: int | None = None
        self.literal: object = None
        found = _PLACE.match(text)
        self.is_literal = found is not None and found[2] == "="
        if found is not None:
            self.place = tuple(int(p) if p.isdecimal() else p for p in found[1].split("."))
            self.at = found.end()
        if self.is_literal:
            self._literal()
        else:
            self._tensor()

    def refuse(self, at: int, reason: str) -> NoReturn:
        """Raise with a caret under a place."""
        caret = " " * at + "^"
        raise SpecError(f"cannot read the input spec: {reason}\n  {self.text}\n  {caret}")

    def _literal(self) -> None:
        try:
            self.literal = ast.literal_eval(self.text[self.at :].strip())
        except (ValueError, SyntaxError):
            self.refuse(self.at, "not a Python literal, such as 3, 'text', True or None")

    def _tensor(self) -> None:
        self._dtype()
        if not self._take("["):
            self.refuse(self.at, f"expected [ and the axes, {_EXAMPLE}")
        self.axes = list(self._axes())
        if self._take("<"):
            self.below = self._bound()
        self._skip()
        if self.at < len(self.text):
            self.refuse(self.at, "nothing may follow here but a bound, such as <1000")

    def _dtype(self) -> None:
        self._skip()
        start, word = self.at, self._match(_WORD)
        if not word:
            self.refuse(start, f"expected a dtype, {_EXAMPLE}")
        self.dtype = _ALIASES.get(word, word)
        if self.dtype not in DTYPES:
            self.refuse(start, f"unknown dtype {word!r}: {did_you_mean(word, DTYPES)}")

    def _axes(self) -> Iterator[OpenAxis]:
        if self._take("]"):
            return
        while True:
            yield self._axis()
            if self._take("]"):
                return
            if not self._take(","):
                self.refuse(self.at, "expected , or ]")

    def _axis(self) -> OpenAxis:
        self._skip()
        start = self.at
        number = self._match(_NUMBER)
        if number:
            return OpenAxis("", self._small(number, start), start)
        name = self._match(_WORD)
        if not name:
            self.refuse(start, "expected an axis: 3, B, or B=2")
        if not self._take("="):
            return OpenAxis(name, None, start)
        self._skip()
        at, number = self.at, self._match(_NUMBER)
        if not number:
            self.refuse(at, f"expected the size of `{name}`, a whole number")
        return OpenAxis(name, self._small(number, at), start)

    def _bound(self) -> int:
        self._skip()
        start, number = self.at, self._match(_NUMBER)
        if not self.dtype.removeprefix("u").startswith("int"):
            self.refuse(start, f"a bound is for integers, and the dtype is {self.dtype}")
        if not number or int(number) == 0:
            self.refuse(start, "expected a whole number above 0")
        return self._small(number, start)

    def _small(self, number: str, at: int) -> int:
        if len(number) > len(str(_LARGEST)) or int(number) > _LARGEST:
            self.refuse(at, "too large a number")
        return int(number)

    def _match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if found is None:
            return ""
        self.at = found.end()
        return found[0]

    def _take(self, sign: str) -> bool:
        self._skip()
        if not self.text.startswith(sign, self.at):
            return False
        self.at += 1
        return True

    def _skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1
