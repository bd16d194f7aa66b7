"""Unification, with jaxtyping's own verdicts as the oracle."""

import hypothesis.strategies as st
import jaxtyping
import numpy as np
from hypothesis import given, settings

from shapetrace.dims import Binding, Conflict, unify


def test_who_bound_what_first():
    found = unify([("B n d_model", (2, 5, 8)), ("B n", (2, 5)), ("d_model d_ff", (8, 32))])
    assert found.conflicts == ()
    assert {name: (b.size, b.source) for name, b in found.bindings.items()} == {
        "B": (2, 0),
        "n": (5, 0),
        "d_model": (8, 0),
        "d_ff": (32, 2),
    }


def test_every_conflict_is_listed_and_a_failure_binds_nothing():
    found = unify([("B n", (2, 5)), ("B n k", (3, 6, 1)), ("k", (4,)), ("n k", (5, 4))])
    assert found.conflicts == (
        Conflict("size", 1, 0, "B", 3, 2, (Binding("B", 2, 0),)),
        Conflict("size", 1, 1, "n", 6, 5, (Binding("n", 5, 0),)),
    )
    assert found.bindings["k"] == Binding("k", 4, 2)


def test_a_name_that_means_two_sizes_in_one_shape():
    assert unify([("n n", (3, 4))]).conflicts == (
        Conflict("size", 0, 1, "n", 4, 3, (Binding("n", 3, 0),)),
    )


def test_rank_literal_expression_unbound():
    conflicts = unify(
        [
            ("n", (4,)),
            ("n _", (4, 1, 1)),
            ("rows=3", (4,)),
            ("n+1", (4,)),
            ("n*q", (4,)),
            ("n ... 2", (4,)),
        ]
    ).conflicts
    assert [(c.kind, c.source, c.axis, c.written, c.observed, c.expected) for c in conflicts] == [
        ("rank", 1, None, "n _", 3, 2),
        ("literal", 2, 0, "rows=3", 4, 3),
        ("expression", 3, 0, "n+1", 4, 5),
        ("unbound", 4, 0, "n*q", 4, None),
        ("rank", 5, None, "n ... 2", 1, 2),
    ]
    assert conflicts[2].bound == (Binding("n", 4, 0),)
    assert conflicts[3].problem == "`n*q` uses `q`, which no axis before it binds"


def test_values_that_only_running_code_knows_are_left_to_it():
    assert unify([("{self.width}", (4,))]).conflicts == ()


def test_variadics():
    assert unify([("*b d", (2, 3, 4)), ("*b", (2, 3))]).conflicts == ()
    (conflict,) = unify([("*b d", (2, 3, 4)), ("*b", (2, 5))]).conflicts
    assert (
        conflict.kind,
        conflict.axis,
        conflict.written,
        conflict.observed,
        conflict.expected,
    ) == ("variadic", 0, "*b", (2, 5), (2, 3))
    assert conflict.bound == (Binding("*b", (2, 3), 0),)


def test_names_bound_before():
    (conflict,) = unify([("d_model", (7,))], {"d_model": Binding("d_model", 4, 99)}).conflicts
    assert conflict.bound[0].source == 99


AXES = st.sampled_from(["a", "b", "#a", "_", "2", "#3", "a+b", "a*2", "x=2"])
OPEN = st.sampled_from(["...", "*v", "*#v"])


@st.composite
def declared(draw):
    words = draw(st.lists(AXES, max_size=3))
    if draw(st.booleans()):
        words.insert(draw(st.integers(0, len(words))), draw(OPEN))
    return " ".join(words), tuple(draw(st.lists(st.integers(1, 3), max_size=4)))


@settings(max_examples=300, deadline=None)
@given(st.lists(declared(), min_size=1, max_size=5))
def test_verdicts_are_jaxtypings(observations):
    expected = []
    with jaxtyping.jaxtyped("context"):
        for dims, shape in observations:
            try:
                holds = isinstance(np.zeros(shape), jaxtyping.Float[np.ndarray, dims])
            except jaxtyping.AnnotationError:  # an expression of unbound names
                holds = False
            expected.append(holds)
    failed = {conflict.source for conflict in unify(observations).conflicts}
    assert [source not in failed for source in range(len(observations))] == expected
