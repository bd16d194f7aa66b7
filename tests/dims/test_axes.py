"""Parsing and printing, with jaxtyping itself as the oracle."""

import hypothesis.strategies as st
import jaxtyping
import numpy as np
import pytest
from hypothesis import example, given
from jaxtyping._array_types import _FixedDim, _NamedDim, _NamedVariadicDim, _SymbolicDim

from shapetrace.dims import (
    Anonymous,
    AnonymousVariadic,
    DimsError,
    Fixed,
    Named,
    Symbolic,
    Variadic,
    parse_dims,
    print_dims,
)

NAMES = st.sampled_from(["B", "n", "d_model", "h", "x1"])
EXPRESSIONS = st.sampled_from(
    ["h*d_k", "n+1", "(n+1)//2", "{self.width}*2", "min(n,m)", "2*n", "-n"]
)
AXES = st.one_of(
    st.builds(Named, NAMES, st.booleans(), st.booleans(), st.sampled_from(["", "rows"])),
    st.builds(Fixed, st.integers(0, 999), st.booleans(), st.sampled_from(["", "rows"])),
    st.builds(Symbolic, EXPRESSIONS, st.booleans(), st.sampled_from(["", "rows"])),
    st.builds(Anonymous, st.sampled_from(["", "rows"])),
)
VARIADICS = st.one_of(
    st.builds(Variadic, NAMES, st.booleans(), st.booleans()),
    st.builds(AnonymousVariadic, st.sampled_from(["", "rows"])),
)


@st.composite
def shapes(draw):
    axes = draw(st.lists(AXES, max_size=5))
    if draw(st.booleans()):
        axes.insert(draw(st.integers(0, len(axes))), draw(VARIADICS))
    return tuple(axes)


@given(shapes())
def test_what_is_printed_parses_to_the_same(axes):
    assert parse_dims(print_dims(axes)) == axes


@given(shapes())
def test_what_is_printed_is_printed_again_the_same(axes):
    text = print_dims(axes)
    assert print_dims(parse_dims(text)) == text


def jaxtypings(text):
    return jaxtyping.Float[np.ndarray, text].dims


def as_ours(dim):
    match dim:
        case _NamedDim(name, broadcastable, treepath):
            return Named(name, broadcastable, bool(treepath))
        case _NamedVariadicDim(name, broadcastable, treepath):
            return Variadic(name, broadcastable, bool(treepath))
        case _FixedDim(size, broadcastable):
            return Fixed(size, broadcastable)
        case _SymbolicDim(elem, broadcastable):
            return Symbolic(elem, broadcastable)
    return AnonymousVariadic() if "ariadic" in type(dim).__name__ else Anonymous()


def without_label(axis):
    return type(axis)(*(getattr(axis, name) for name in axis.__slots__ if name != "label"))


@given(shapes())
def test_jaxtyping_reads_the_same(axes):
    assert tuple(map(as_ours, jaxtypings(print_dims(axes)))) == tuple(map(without_label, axes))


@given(st.lists(st.text("#*_?=n.4+, ()", min_size=1, max_size=6), max_size=3).map(" ".join))
@example("rows=#4")
@example("a==b")
@example("... *x")
@example("#")
def test_jaxtyping_refuses_the_same(text):
    try:
        expected = tuple(map(as_ours, jaxtypings(text)))
    except ValueError:
        with pytest.raises(DimsError):
            parse_dims(text)
    else:
        assert tuple(map(without_label, parse_dims(text))) == expected


MESSAGES = {
    "B,n": 'in "B,n": axes are separated by spaces, not commas',
    "B n#": 'in "B n#": `#` stands before an axis: write `#n`',
    "a...": 'in "a...": `...` stands alone, not in `a...`',
    "... *b": 'in "... *b": only one of `*name` and `...` can stand in one shape',
    "##n": 'in "##n": `#` stands twice in `##n`',
    "*4": 'in "*4": `*` goes with a name, not with `4`',
    "_n+m": 'in "_n+m": `_` goes with a name, not with `n+m`',
    "?3": 'in "?3": `?` goes with a name, not with `3`',
    "#_": 'in "#_": `_` fits any size, so `#` adds nothing: drop one',
}


@pytest.mark.parametrize("text", MESSAGES)
def test_messages(text):
    with pytest.raises(DimsError) as error:
        parse_dims(text)
    assert str(error.value) == MESSAGES[text]
    assert error.value.exit_code == 2


def test_a_lone_name_gets_a_leading_space():
    assert print_dims(parse_dims("n")) == " n"
    assert print_dims(parse_dims(" n ")) == " n"
    assert print_dims(parse_dims("3")) == "3"
    assert print_dims(parse_dims("B n")) == "B n"
    assert print_dims(()) == ""
