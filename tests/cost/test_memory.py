"""Memory by the life of storages, against sums counted by hand."""

from hypothesis import given
from hypothesis import strategies as st

from shapetrace.cost.memory import Peak, live_bytes, peak
from shapetrace.records.trace import StorageRecord, Trace

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
    assert live_bytes(STORAGES, {"activation"}) == [(10, 2), (30, 4), (45, 6), (25, 8)]


def test_the_peak_by_what_storages_hold():
    assert peak(STORAGES) == Peak(45, 6, None)
    assert peak(STORAGES, ("activation", "gradient", "parameter")) == Peak(1050, 6, None)
    assert peak(Trace("empty")) == Peak(0, 0, None)


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
    found = peak(trace)
    assert found.nbytes == max(by_hand)
    if found.nbytes:
        assert found.at == by_hand.index(found.nbytes)
