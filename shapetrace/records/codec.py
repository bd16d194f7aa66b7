"""Records to plain JSON values and back, driven by the dataclasses' own fields.

A record becomes an object of its fields, those at their defaults left out. A table of
records becomes columns, one a field: integers as they are, everything else as a pool of
distinct values and the index of each row, since a trace repeats few shapes, dims and
declarations many times. A new field with a default needs no change here: where an older
file lacks its column, the default stands in.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, get_args

from shapetrace.records.coders import (
    Coder,
    DecodeError,
    Json,
    coder_of,
    default_of,
    expect,
    is_record,
    refuse_unknown,
    typed_fields,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

Record = TypeVar("Record")


def encode_record(record: object) -> dict[str, Json]:
    """A record as an object of its fields; a field that holds a table of records as columns.

    Args:
        record: A dataclass instance, of any dataclass.

    Returns:
        What `decode_record` reads.
    """
    encoded: dict[str, Json] = {}
    for field, hint in typed_fields(type(record)):
        value, row = getattr(record, field.name), _row_type(hint)
        encoded[field.name] = (
            coder_of(hint).encode(value) if row is None else encode_table(row, value)
        )
    return encoded


def decode_record(cls: type[Record], data: Json) -> Record:
    """The record that `encode_record` wrote.

    Args:
        cls: Its dataclass.
        data: The object.

    Raises:
        DecodeError: If a field is unknown, missing without a default, or of another type.
    """
    refuse_unknown(cls, expect(data, dict))
    values = {}
    for field, hint in typed_fields(cls):
        if field.name in data:
            row, value = _row_type(hint), data[field.name]
            values[field.name] = (
                coder_of(hint).decode(value) if row is None else decode_table(row, value)
            )
        else:
            values[field.name] = default_of(cls, field)
    return cls(**values)


def encode_table(cls: type, rows: Sequence[object]) -> dict[str, Json]:
    """Records of one type as columns, with the number of rows under ``#``."""
    columns: dict[str, Json] = {"#": len(rows)}
    for field, hint in typed_fields(cls):
        columns[field.name] = _encode_column(
            coder_of(hint), list(map(attrgetter(field.name), rows))
        )
    return columns


def decode_table(cls: type[Record], data: Json) -> tuple[Record, ...]:
    """The records that `encode_table` wrote.

    Raises:
        DecodeError: If a column is unknown, missing without a default, of another length,
            or holds a value of another type.
    """
    columns = dict(expect(data, dict))
    count = expect(columns.pop("#", None), int)
    refuse_unknown(cls, columns)
    ordered = []
    for field, hint in typed_fields(cls):
        if field.name not in columns:
            ordered.append([default_of(cls, field)] * count)
            continue
        column = _decode_column(coder_of(hint), columns[field.name], count)
        if len(column) != count:
            raise DecodeError(f"{cls.__name__}.{field.name} has {len(column)} rows, not {count}")
        ordered.append(column)
    return tuple(map(cls, *ordered))


def _encode_column(coder: Coder, values: list[Any]) -> Json:
    """A list of values, or a pool and each row's index in it; one value for all needs no rows."""
    if coder.plain and len(set(values)) != 1:
        return values
    keys = values if coder.key is None else list(map(coder.key, values))
    # Of equal keys the last value stays, which is as good as the first.
    pool = dict(zip(keys, values, strict=True))
    encoded = [coder.encode(value) for value in pool.values()]
    if len(pool) == 1:
        return {"pool": encoded}
    index = {key: row for row, key in enumerate(pool)}
    return {"pool": encoded, "rows": list(map(index.__getitem__, keys))}


def _decode_column(coder: Coder, data: Json, count: int) -> list[Any]:
    if isinstance(data, list):
        return _expect_plain(coder, data)
    pool = [coder.decode(value) for value in expect(expect(data, dict).get("pool"), list)]
    if len(pool) == 1 and "rows" not in data:
        return pool * count
    rows = expect(data.get("rows"), list)
    if rows and (set(map(type, rows)) != {int} or min(rows) < 0 or max(rows) >= len(pool)):
        raise DecodeError("a column points outside its pool")
    return list(map(pool.__getitem__, rows))


def _expect_plain(coder: Coder, data: list[Any]) -> list[Any]:
    """The column itself, once one value of each type in it is seen to be right."""
    if not coder.plain:
        raise DecodeError("a column that should be pooled is not")
    for value in dict(zip(map(type, data), data, strict=True)).values():
        coder.decode(value)
    return data


def _row_type(hint: Any) -> Any:
    """The record type of a table's rows; None where the field is not a table."""
    match get_args(hint):
        case (row, last) if last is Ellipsis and is_record(row):
            return row
    return None
