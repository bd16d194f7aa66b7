"""How values of one annotated type are written to JSON and read back.

The types are those that records are made of: atoms, literals, tuples, records, and unions
of them that JSON tells apart by itself. A field of any other type is an error when it is
first met, not when its file is read.
"""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

Json: TypeAlias = Any

_ATOMS = (int, float, str, bool, types.NoneType)

_FIELDS: dict[type, tuple[tuple[Field[Any], Any], ...]] = {}


class DecodeError(ValueError):
    """The data is not what the records' fields say."""


@dataclass(frozen=True, slots=True)
class Coder:
    """How values of one type are written and read.

    Attributes:
        encode: A value to JSON.
        decode: JSON to a value; raises `DecodeError` for anything else.
        key: What tells values apart when they are pooled.
        plain: Whether a column of them is better written as it is than pooled.
    """

    encode: Callable[[Any], Json]
    decode: Callable[[Json], Any]
    key: Callable[[Any], object] | None = None
    plain: bool = False


@cache
def coder_of(hint: Any) -> Coder:
    """The way to write and read values of an annotated type."""
    origin = get_origin(hint)
    if hint in _ATOMS:
        return _atom_coder(frozenset({hint}))
    if origin is Literal:
        return _literal_coder(get_args(hint))
    if origin in (Union, types.UnionType):
        return _union_coder(get_args(hint))
    if origin is tuple:
        return _tuple_coder(get_args(hint))
    if is_record(hint):
        return _record_coder(hint)
    raise TypeError(f"records cannot hold {hint}; see {__name__} for what they can")


def _atom_coder(allowed: frozenset[type]) -> Coder:
    # An integer is a float to Python's typing too.
    accepted = allowed | {int} if float in allowed else allowed

    def decode(value: Json) -> Any:
        if type(value) not in accepted:
            raise DecodeError(f"{value!r:.60} is not one of {sorted(t.__name__ for t in accepted)}")
        return value

    mixed = float in accepted or {int, bool} <= accepted
    return Coder(
        _same,
        decode,
        repr if mixed else None,
        plain=int in allowed and not mixed and str not in allowed,
    )


def _literal_coder(allowed: tuple[Any, ...]) -> Coder:
    def decode(value: Json) -> Any:
        if value not in allowed:
            raise DecodeError(f"{value!r:.60} is not one of {', '.join(map(repr, allowed))}")
        return value

    return Coder(_same, decode)


def _union_coder(members: tuple[Any, ...]) -> Coder:
    """Atoms, and at most one tuple and one record: what JSON tells apart by itself."""
    atoms = _atom_coder(frozenset(member for member in members if member in _ATOMS))
    others = [member for member in members if member not in _ATOMS]
    if not others:
        return atoms
    lists = [coder_of(member) for member in others if get_origin(member) is tuple]
    records = [coder_of(member) for member in others if is_record(member)]
    if len(lists) > 1 or len(records) > 1 or len(lists) + len(records) < len(others):
        raise TypeError(f"records cannot hold a union of {members}: JSON would not tell them apart")

    def encode(value: Any) -> Json:
        if isinstance(value, tuple):
            return lists[0].encode(value)
        return records[0].encode(value) if is_dataclass(value) else value

    def decode(value: Json) -> Any:
        if lists and isinstance(value, list):
            return lists[0].decode(value)
        return (
            records[0].decode(value) if records and isinstance(value, dict) else atoms.decode(value)
        )

    mixed = any(coder.key for coder in (atoms, *lists, *records))
    return Coder(encode, decode, repr if mixed else None)


def _tuple_coder(items: tuple[Any, ...]) -> Coder:
    if items[-1] is Ellipsis:
        each = coder_of(items[0])
        return Coder(
            lambda value: [each.encode(item) for item in value],
            lambda value: tuple(each.decode(item) for item in expect(value, list)),
            repr if each.key else None,
        )
    coders = [coder_of(item) for item in items]

    def decode(value: Json) -> tuple[Any, ...]:
        if len(expect(value, list)) != len(coders):
            raise DecodeError(f"{value!r:.60} has {len(value)} items, not {len(coders)}")
        return tuple(coder.decode(item) for coder, item in zip(coders, value, strict=True))

    return Coder(
        lambda value: [coder.encode(item) for coder, item in zip(coders, value, strict=True)],
        decode,
        repr if any(coder.key for coder in coders) else None,
    )


def _record_coder(cls: type) -> Coder:
    def encode(record: Any) -> Json:
        values = ((field, hint, getattr(record, field.name)) for field, hint in typed_fields(cls))
        return {
            field.name: coder_of(hint).encode(v) for field, hint, v in values if v != field.default
        }

    def decode(data: Json) -> Any:
        refuse_unknown(cls, expect(data, dict))
        return cls(
            **{
                field.name: coder_of(hint).decode(data[field.name])
                if field.name in data
                else default_of(cls, field)
                for field, hint in typed_fields(cls)
            }
        )

    mixed = any(coder_of(hint).key for _, hint in typed_fields(cls))
    return Coder(encode, decode, repr if mixed else None)


def typed_fields(cls: type) -> tuple[tuple[Field[Any], Any], ...]:
    """The fields of a dataclass with their resolved types."""
    if cls not in _FIELDS:
        hints = get_type_hints(cls)
        _FIELDS[cls] = tuple((field, hints[field.name]) for field in fields(cls))
    return _FIELDS[cls]


def is_record(hint: Any) -> bool:
    """Whether a type is a dataclass."""
    return isinstance(hint, type) and is_dataclass(hint)


def default_of(cls: type, field: Field[Any]) -> Any:
    """What stands in where an older file lacks a field."""
    if field.default is MISSING:
        raise DecodeError(f"{cls.__name__}.{field.name} is missing")
    return field.default


def refuse_unknown(cls: type, data: dict[str, Json]) -> None:
    """A field that the record does not have must not get lost in silence."""
    unknown = data.keys() - {field.name for field in fields(cls)}
    if unknown:
        raise DecodeError(f"{cls.__name__} has no field {', '.join(sorted(unknown))}")


def expect(value: Json, kind: type) -> Any:
    """The value, if it is of the kind."""
    if type(value) is not kind:
        raise DecodeError(f"expected {kind.__name__}, found {value!r:.60}")
    return value


def _same(value: Any) -> Json:
    return value
