"""What records become, and that they come back."""

from __future__ import annotations

import json
import math
import types
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.dims import Declaration, DeclaredShape, Dim
from shapetrace.records import (
    FORMAT_VERSION,
    Failure,
    OpRecord,
    ParameterRecord,
    Scope,
    Site,
    StorageRecord,
    TensorRecord,
    Trace,
)
from shapetrace.records.codec import decode_record, decode_table, encode_record, encode_table
from shapetrace.records.coders import DecodeError, coder_of
from shapetrace.records.storage import dumps, loads
from shapetrace.records.trace import Fold

ROWS = [
    Site,
    Scope,
    TensorRecord,
    OpRecord,
    StorageRecord,
    ParameterRecord,
    Failure,
    Fold,
    Dim,
    DeclaredShape,
    Declaration,
]

ATOMS = {
    int: st.integers(),
    float: st.floats(allow_nan=False),
    str: st.text(st.characters()),  # lone surrogates too: a file's name may hold them
    bool: st.booleans(),
    types.NoneType: st.none(),
}


def values_of(hint: Any) -> st.SearchStrategy[Any]:
    """Any value of a type, from the type alone: a new field is covered as it is added."""
    origin, args = get_origin(hint), get_args(hint)
    if hint in ATOMS:
        return ATOMS[hint]
    if origin is Literal:
        return st.sampled_from(args)
    if origin in (Union, types.UnionType):
        return st.one_of([values_of(member) for member in args])
    if origin is tuple and args[-1] is Ellipsis:
        return st.lists(values_of(args[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(values_of, args))
    assert is_dataclass(hint), hint
    hints = get_type_hints(hint)
    return st.builds(
        hint,
        **{f.name: values_of(hints[f.name]) for f in fields(hint) if f.name != "format_version"},
    )


def same(left: Any, right: Any) -> bool:
    """Equal, with every number of the same type and every zero of the same sign."""
    return left == right and repr(left) == repr(right)


@given(trace=values_of(Trace))
def test_any_trace_comes_back(trace):
    # As `loads` does it, which also refuses the wrong indexes of such a trace.
    text = json.dumps(encode_record(trace))
    assert same(decode_record(Trace, json.loads(text)), trace)


@pytest.mark.parametrize("cls", ROWS)
def test_any_table_comes_back(cls):
    @given(rows=st.lists(values_of(cls), max_size=6).map(tuple))
    def comes_back(rows):
        assert same(decode_table(cls, encode_table(cls, rows)), rows)

    comes_back()


def test_every_table_of_a_trace_is_tested():
    tables = {get_args(hint)[0] for hint in get_type_hints(Trace).values() if get_args(hint)}
    assert {table for table in tables if is_dataclass(table)} <= set(ROWS)


def test_values_that_python_calls_equal_are_kept_apart():
    values = (1, True, 1.0, 0, False, 0.0, -0.0)
    rows = tuple(OpRecord("a", 0, 0, (), (), "", attributes=(("x", value),)) for value in values)
    back = decode_table(OpRecord, encode_table(OpRecord, rows))
    assert [repr(row.attributes[0][1]) for row in back] == [
        "1", "True", "1.0", "0", "False", "0.0", "-0.0",
    ]  # fmt: skip


def test_numbers_that_are_not_finite_come_back():
    config = (("inf", math.inf), ("minus", -math.inf), ("nan", math.nan))
    back = loads(dumps(Trace("x", config=config))).config
    assert back[:2] == config[:2]
    assert math.isnan(back[2][1])


def test_repeated_values_are_written_once():
    dims = (Dim("B", "input"), Dim("d_model", "declared", "x"))
    rows = tuple(
        TensorRecord(0, 0, i, i, (2, 3), "float32", "cpu", 24, 7, dims=dims) for i in range(4)
    )
    columns = encode_table(TensorRecord, rows)
    assert columns["dims"] == {
        "pool": [
            [
                {"name": "B", "evidence": "input"},
                {"name": "d_model", "evidence": "declared", "detail": "x"},
            ]
        ]
    }
    assert columns["at"] == [0, 1, 2, 3]
    assert columns["shape"] == {"pool": [[2, 3]]}
    assert columns["#"] == 4
    assert len({id(row.dims) for row in decode_table(TensorRecord, columns)}) == 1


def test_a_column_that_an_older_file_lacks_is_its_default():
    row = TensorRecord(
        0, 0, 0, 0, (2,), "float32", "cpu", 8, None, layout="jagged", requires_grad=True
    )
    columns = encode_table(TensorRecord, (row, row))
    del columns["requires_grad"], columns["layout"]
    back = decode_table(TensorRecord, columns)
    assert [(r.requires_grad, r.layout) for r in back] == [(False, "")] * 2


def columns_of_two() -> dict[str, Any]:
    return encode_table(
        StorageRecord, (StorageRecord(1, "input", "cpu", 0), StorageRecord(2, "state", "cpu", 3, 4))
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"nbytes": [1]}, "StorageRecord.nbytes has 1 rows, not 2"),
        ({"nbytes": [1, "2"]}, "'2' is not one of ['int']"),
        ({"nbytes": [1, True]}, "True is not one of ['int']"),
        ({"nbytes": 3}, "expected dict, found 3"),
        ({"kind": {"pool": ["input", "gas"], "rows": [0, 1]}}, "'gas' is not one of"),
        ({"kind": {"pool": ["input"], "rows": [0, 1]}}, "a column points outside its pool"),
        ({"kind": {"pool": ["input"], "rows": [0, -1]}}, "a column points outside its pool"),
        ({"kind": {"pool": ["input"], "rows": [0, 0.0]}}, "a column points outside its pool"),
        ({"kind": ["input", "input"]}, "a column that should be pooled is not"),
        ({"colour": [1, 2]}, "StorageRecord has no field colour"),
        ({"#": None}, "expected int, found None"),
    ],
)
def test_columns_that_are_not_what_the_fields_say(change, message):
    with pytest.raises(DecodeError) as caught:
        decode_table(StorageRecord, columns_of_two() | change)
    assert message in str(caught.value)


def test_a_missing_field_without_a_default():
    columns = columns_of_two()
    del columns["born"]
    with pytest.raises(DecodeError, match=r"StorageRecord\.born is missing"):
        decode_table(StorageRecord, columns)


def test_a_record_with_an_unknown_field():
    with pytest.raises(DecodeError, match="Dim has no field colour"):
        decode_record(Dim, encode_record(Dim("B", "input")) | {"colour": 1})


def test_a_field_that_json_cannot_tell_apart_is_refused_at_once():
    @dataclass(frozen=True)
    class Odd:
        value: tuple[int, ...] | tuple[str, ...]

    with pytest.raises(TypeError, match="JSON would not tell them apart"):
        coder_of(tuple[int, ...] | tuple[str, ...])
    with pytest.raises(TypeError, match="records cannot hold <class 'object'>"):
        coder_of(object)


def test_the_version_is_not_the_caller_s_to_choose():
    assert loads(dumps(Trace("x", format_version=99))).format_version == FORMAT_VERSION
