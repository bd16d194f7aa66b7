"""``[tool.shapetrace]`` of a project's ``pyproject.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shapetrace.api.preparing.request import Request
from shapetrace.check.rules import chosen
from shapetrace.errors import ShapetraceError, did_you_mean, with_article

_LISTS = {"input": "inputs", "arg": "arguments", "hf-config": "hf_config", "alias": "aliases"}
"""Keys of a target that hold lists of texts, as the options of the same names, and its fields."""
_TEXTS = {"target": "target", "inputs": "inputs_file", "device": "device"}
_OTHERS = {"train": bool, "seed": int}


@dataclass(frozen=True, slots=True)
class Settings:
    """What a project says.

    Attributes:
        folder: Where its ``pyproject.toml`` is; the current folder without one.
        select: Rules that are on; empty for those on by default.
        ignore: Rules that are off.
        packages: Packages that `pytest --shapetrace` watches; empty for all of the project's.
        targets: What plain ``shapetrace check`` runs.
    """

    folder: Path
    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    targets: tuple[Request, ...] = ()


def read_settings(start: Path) -> Settings:
    """The settings of the project that a folder belongs to.

    Example::

        [tool.shapetrace]
        ignore = ["ST302"]

        [[tool.shapetrace.targets]]
        target = "net.model:Net"
        input = ["ids:int64[B=2,n=16]<1000"]
        arg = ["width=64"]

    Args:
        start: The folder; the nearest ``pyproject.toml`` in it or above it counts.

    Raises:
        ShapetraceError: For a file that cannot be read, an unknown key or rule, or a value
            of the wrong kind.
    """
    file = _nearest(start)
    if file is None:
        return Settings(start)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ShapetraceError(f"cannot read {file}: {error}") from error
    table = document.get("tool", {}).get("shapetrace", {})
    return _settings(file, _checked_table(table, f"{file}: [tool.shapetrace]"))


def _nearest(start: Path) -> Path | None:
    folder = start.resolve()
    found = (place / "pyproject.toml" for place in (folder, *folder.parents))
    return next((file for file in found if file.is_file()), None)


def _settings(file: Path, table: Mapping[str, Any]) -> Settings:
    where = f"{file}: [tool.shapetrace]"
    known = ("select", "ignore", "packages", "targets")
    _refuse_unknown(table, known, where)
    select, ignore, packages = (_texts(table, key, where) for key in known[:3])
    try:
        chosen(select, ignore)
    except ShapetraceError as error:
        raise ShapetraceError(f"{where}: {error}") from error
    targets = table.get("targets", [])
    if not isinstance(targets, list):
        raise ShapetraceError(f"{where}: targets is no list; write [[tool.shapetrace.targets]]")
    requests = tuple(
        _request(_checked_table(one, f"{where} targets"), f"{where} targets, number {number}")
        for number, one in enumerate(targets, 1)
    )
    return Settings(file.parent, select, ignore, packages, requests)


def _checked_table(value: Any, where: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ShapetraceError(f"{where} is {with_article(type(value).__name__)}, not a table")
    return value


def _request(table: Mapping[str, Any], where: str) -> Request:
    _refuse_unknown(table, (*_TEXTS, *_LISTS, *_OTHERS), where)
    if "target" not in table:
        raise ShapetraceError(f'{where} has no `target`, such as "net.model:Net"')
    fields: dict[str, Any] = {field: _texts(table, key, where) for key, field in _LISTS.items()}
    for key, field in _TEXTS.items():
        if key in table:
            fields[field] = _of_kind(table, key, str, where)
    for key, kind in _OTHERS.items():
        if key in table:
            fields[key] = _of_kind(table, key, kind, where)
    if fields["inputs"] and "inputs_file" in fields:
        raise ShapetraceError(f"{where}: `input` and `inputs` are both given; give one of them")
    return Request(**fields)


def _of_kind(table: Mapping[str, Any], key: str, kind: type, where: str) -> Any:
    if type(table[key]) is not kind:
        raise ShapetraceError(f"{where}: {key} = {table[key]!r} is no {kind.__name__}")
    return table[key]


def _texts(table: Mapping[str, Any], key: str, where: str) -> tuple[str, ...]:
    value = table.get(key, [])
    value = [value] if isinstance(value, str) else value
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ShapetraceError(f"{where}: {key} = {value!r} is no list of strings")
    return tuple(value)


def _refuse_unknown(table: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in known:
            raise ShapetraceError(f"{where} has an unknown key {key!r}: {did_you_mean(key, known)}")
