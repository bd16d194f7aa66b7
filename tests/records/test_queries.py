"""Questions about a hand-made trace, against answers counted by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shapetrace.records import (
    LivePoint,
    OpRecord,
    Scope,
    StorageRecord,
    TensorRecord,
    Trace,
    TraceIndex,
    live_bytes,
    live_storages,
    module_path,
    peak_bytes,
)


def scope(parent, path, start, end, kind="module"):
    return Scope(parent, path, kind, "T", "f.py", 1, start, end)


def op(name, scope, at, phase="forward"):
    return OpRecord(name, scope, at, ((2,),), ((2,),), "float32", phase=phase)


def tensor(scope, since, at):
    return TensorRecord(0, scope, since, at, (2,), "float32", "cpu", 8, None)


# root 0 ( a 1 ( a.rotate() 2 ( a.inner 3 ) ), b 4 ( ), a 5 ( ) ): a is called twice.
TRACE = Trace(
    "t",
    scopes=(
        scope(None, "", 0, 100),
        scope(0, "a", 1, 20),
        scope(1, "a.rotate()", 3, 15, "function"),
        scope(2, "a.inner", 5, 9),
        scope(0, "b", 21, 30),
        scope(0, "a", 31, 40),
    ),
    ops=(
        op("a1", 1, 2),
        op("f1", 2, 4),
        op("i1", 3, 6),
        op("f2", 2, 10),
        op("b1", 4, 22),
        op("a2", 5, 32),
        op("r1", 0, 41),
        op("i1.backward", 3, 60, "backward"),
    ),
    tensors=(
        tensor(3, 5, 7),
        tensor(2, 4, 11),
        tensor(1, 2, 16),
        tensor(0, 0, 30),
        tensor(0, 30, 31),
    ),
)
INDEX = TraceIndex(TRACE)


def names(ops):
    return [op.name for op in ops]


def test_children_and_tensors_and_ops_by_scope():
    assert INDEX.children == ((1, 4, 5), (2,), (3,), (), (), ())
    assert INDEX.tensors_in == ((3, 4), (2,), (1,), (0,), (), ())
    assert INDEX.ops_in == ((6,), (0,), (1, 3), (2, 7), (4,), (5,))


def test_subtrees_and_ancestors():
    assert [list(INDEX.subtree(s)) for s in range(6)] == [
        [0, 1, 2, 3, 4, 5], [1, 2, 3], [2, 3], [3], [4], [5],
    ]  # fmt: skip
    assert list(INDEX.ancestors(3)) == [2, 1, 0]
    assert list(INDEX.ancestors(0)) == []


def test_ops_of_a_scope_alone_and_with_its_calls():
    assert names(INDEX.exclusive_ops(2)) == ["f1", "f2"]
    assert names(INDEX.inclusive_ops(1)) == ["a1", "f1", "i1", "f2", "i1.backward"]
    assert INDEX.inclusive_ops(0) == TRACE.ops


@pytest.mark.parametrize("parent", range(6))
def test_a_scope_s_ops_are_its_own_and_its_children_s(parent):
    parts = [*INDEX.exclusive_ops(parent)]
    for child in INDEX.children[parent]:
        parts += INDEX.inclusive_ops(child)
    assert sorted(names(parts)) == sorted(names(INDEX.inclusive_ops(parent)))


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (0, ["i1"]),
        (1, ["i1", "f2"]),
        (2, ["f1", "i1", "f2"]),
        (3, ["a1", "f1", "i1", "f2", "b1"]),
        (4, []),
    ],
)
def test_a_statement_s_ops_come_after_its_start_and_up_to_its_end(number, expected):
    assert names(INDEX.statement_ops(TRACE.tensors[number])) == expected


def test_a_function_s_module_is_its_caller():
    expected = ["", "a", "a", "a.inner", "b", "a"]
    assert list(INDEX.module_paths) == expected
    assert [module_path(TRACE, s) for s in range(6)] == expected


def test_an_empty_trace():
    index = TraceIndex(Trace("empty"))
    assert (index.children, index.subtree_ends, index.module_paths) == ((), (), ())
    assert peak_bytes(Trace("empty"), {"activation"}) == LivePoint(0, 0)


STORAGES = Trace(
    "s",
    storages=(
        StorageRecord(1000, "parameter", "cpu", 0),
        StorageRecord(10, "activation", "cpu", 2, 6),
        StorageRecord(20, "activation", "cpu", 4, 8),
        StorageRecord(25, "activation", "cpu", 6),
        StorageRecord(5, "gradient", "cpu", 6, 7),
    ),
)


def test_bytes_live_over_time():
    assert live_bytes(STORAGES, {"activation"}) == (
        LivePoint(2, 10),
        LivePoint(4, 30),
        LivePoint(6, 45),
        LivePoint(8, 25),
    )


def test_the_peak_and_what_it_is_made_of():
    assert peak_bytes(STORAGES, {"activation"}) == LivePoint(6, 45)
    assert peak_bytes(STORAGES, {"activation", "gradient", "parameter"}) == LivePoint(6, 1050)
    assert live_storages(STORAGES, 6, {"activation"}) == (3, 2)
    assert live_storages(STORAGES, 6, {"gradient", "parameter"}) == (0, 4)


lives = st.builds(
    lambda nbytes, born, length: StorageRecord(
        nbytes, "activation", "cpu", born, None if length is None else born + length
    ),
    st.integers(0, 100),
    st.integers(0, 30),
    st.none() | st.integers(0, 30),
)


@given(st.lists(lives, max_size=20))
def test_the_peak_is_the_most_that_any_clock_sees(storages):
    trace = Trace("s", storages=tuple(storages))
    by_hand = [
        sum(s.nbytes for s in storages if s.born <= at and (s.died is None or at < s.died))
        for at in range(70)
    ]
    peak = peak_bytes(trace, {"activation"})
    assert peak.nbytes == max(by_hand)
    if peak.nbytes:
        assert by_hand[peak.at] == peak.nbytes
        assert peak.at == by_hand.index(peak.nbytes)
        alive = live_storages(trace, peak.at, {"activation"})
        assert sum(storages[index].nbytes for index in alive) == peak.nbytes


@st.composite
def parents(draw):
    """Parents as entry order makes them: each new scope's is an open one."""
    chosen = [None]
    for index in range(1, draw(st.integers(1, 20))):
        open_scopes, walk = [], index - 1
        while walk is not None:
            open_scopes.append(walk)
            walk = chosen[walk]
        chosen.append(draw(st.sampled_from(open_scopes)))
    return chosen


@given(parents())
def test_a_subtree_holds_whoever_has_the_scope_as_ancestor(chosen):
    index = TraceIndex(Trace("t", scopes=tuple(scope(parent, "", 0, 0) for parent in chosen)))
    for top in range(len(chosen)):
        below = [s for s in range(len(chosen)) if s == top or top in index.ancestors(s)]
        assert list(index.subtree(top)) == below
