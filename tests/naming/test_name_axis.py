"""Names are recovered from what moves an axis, and never claimed without it."""

from fractions import Fraction

import hypothesis.strategies as st
import pytest
from hypothesis import assume, given, settings

from shapetrace.dims import evaluate, names_in
from shapetrace.naming.name_axis import name_axis

SIZES = {"B": 3, "n": 13, "m": 7, "h": 8, "d_k": 32, "d_model": 256, "H": 33, "W": 47}


def probed(expression, sizes=SIZES, factors=(2, 3)):
    base = evaluate(expression, sizes)
    probes = {
        name: {
            factor: evaluate(expression, {**sizes, name: int(size * factor)}) for factor in factors
        }
        for name, size in sizes.items()
    }
    return name_axis(base, probes, sizes)


@pytest.mark.parametrize(
    "expression",
    [
        "n",
        "n+1",
        "n-1",
        "2*n+1",
        "h*d_k",
        "d_model//h",
        "d_model//(2*h)",
        "3*d_model",
        "B*n*h",
        "n*n",
        "n+m",
        "n+m+1",
        "h*(n+m)",
        "B*(n+m+1)",
        "n+h*d_k",
        "B+n*m",
        "(n+1)*(m+1)",
        "H//2",
        "H//16",
        "(H-1)//2",
        "(H-1)//2+1",
        "B*((H-1)//2+1)",
        "((H-1)//2+1)*((W-1)//2+1)",
        "n//2+m",
        "B*n//h",
    ],
)
def test_printed_as_people_write_it(expression):
    found = probed(expression)
    assert found.dim.name == expression
    assert found.dim.evidence == "probe"


def test_printed_in_the_order_of_the_names_given():
    assert probed("d_k*h").dim.name == "h*d_k"
    assert probed("m+n").dim.name == "n+m"


def test_floor_of_two_sizes_and_a_class_token():
    assert probed("(H//16)*(W//16)+1", {"H": 70, "W": 55}).dim.name == "(H//16)*(W//16)+1"


TILED = {"width": 6, "image": 32, "patch": 8, "H": 64, "W": 48}


@pytest.mark.parametrize(
    "expression",
    [
        "(image//patch)**2",
        "(image//patch)**2+1",
        "width*(image//patch)**2",
        "2*width*(image//4)**2",
        "3*(image//4)**2+2",
        "(H//patch)*(W//patch)",
        "(H//patch)*(W//patch)+1",
        "width*(H//patch)*(W//patch)",
        "2*width*(H//4)*(W//4)",
    ],
)
def test_tiles_are_counted_along_each_axis(expression):
    factors = {name: [2, Fraction(1, 2), 4] for name in TILED}
    factors |= {"image": [2, Fraction(33, 32), 3], "H": [2, Fraction(67, 64), Fraction(1, 2)]}
    factors |= {"W": [2, Fraction(51, 48), 3]}
    base = evaluate(expression, TILED)
    probes = {
        name: {f: evaluate(expression, {**TILED, name: int(TILED[name] * f)}) for f in tried}
        for name, tried in factors.items()
    }
    assert name_axis(base, probes, TILED).dim.name == expression


def test_a_size_that_only_runs_smaller_still_counts_tiles():
    sizes = {"patch": 8, "H": 32, "W": 32}
    half = Fraction(1, 2)
    probes = {"H": {half: 9}, "W": {half: 9}, "patch": {2: 5, 4: 2, half: 65}}
    assert name_axis(17, probes, sizes).dim.name == "(H//patch)*(W//patch)+1"


def test_what_nothing_moves_is_a_number():
    found = name_axis(8, {"n": {2: 8}, "h": {2: 8}}, {"n": 13, "h": 8})
    assert (found.dim.name, found.dim.evidence, found.dim.detail) == (
        "8",
        "literal",
        "moving n, h leaves it",
    )
    assert name_axis(8, {}, {"h": 8}).dim.detail == "nothing was probed"


def test_equal_numbers_are_told_apart():
    sizes = {"d_model": 256, "h": 8, "d_k": 32, "buckets": 32}
    assert (
        name_axis(256, {"d_model": {2: 512}, "h": {2: 256}, "d_k": {2: 256}}, sizes).dim.name
        == "d_model"
    )
    assert (
        name_axis(256, {"d_model": {2: 256}, "h": {2: 512}, "d_k": {2: 512}}, sizes).dim.name
        == "h*d_k"
    )
    assert name_axis(32, {"d_k": {2: 32}, "buckets": {2: 64}}, sizes).dim.name == "buckets"


def test_evidence_in_words():
    assert (
        name_axis(17, {"n": {2: 33, 3: 49}}, {"n": 16}).dim.detail
        == "n from 16 to 32 makes it 33, 48 makes it 49 from 17"
    )


def test_no_simple_expression_is_a_number_with_the_reason():
    found = name_axis(10, {"n": {2: 17, 3: 11, 4: 90}}, {"n": 5})
    assert (found.dim.name, found.dim.evidence) == ("10", "literal")
    assert found.dim.detail == "n move it, but no simple expression fits"
    assert found.moved_by == ("n",)


def test_two_points_do_not_settle_a_form_that_is_no_power():
    assert name_axis(17, {"n": {2: 33}}, {"n": 16}).unsettled == ("n",)
    assert name_axis(17, {"n": {2: 33, 3: 49}}, {"n": 16}).unsettled == ()
    assert name_axis(16, {"n": {2: 32}}, {"n": 16}).unsettled == ()


def test_even_sizes_do_not_settle_a_rounded_half():
    even = name_axis(16, {"H": {2: 32, 3: 48}}, {"H": 32})
    assert (even.dim.name, even.unsettled) == ("H//2", ("H",))
    odd = name_axis(16, {"H": {2: 32, 3: 48, Fraction(33, 32): 17}}, {"H": 32})
    assert (odd.dim.name, odd.unsettled) == ("(H-1)//2+1", ())


def test_bad_input():
    with pytest.raises(ValueError, match="a factor of n = 5 gives no whole size"):
        name_axis(5, {"n": {Fraction(1, 2): 2}}, {"n": 5})
    with pytest.raises(ValueError, match="k was probed but has no base size"):
        name_axis(5, {"k": {2: 5}}, {"n": 5})


NAMES = ["a", "b", "c", "d"]
PRIMES = st.permutations([11, 13, 17, 19, 23, 29, 31, 37]).map(
    lambda p: dict(zip(NAMES, p, strict=False))
)


@st.composite
def expressions(draw):
    """Products, sums, products of sums and convolutions of distinct names."""
    a, b, c, d = draw(st.permutations(NAMES))
    k = draw(st.integers(1, 4))
    return draw(
        st.sampled_from(
            [
                f"{a}",
                f"{k}*{a}*{b}",
                f"{a}*{b}*{c}",
                f"{a}+{k}",
                f"{a}-{k}",
                f"{a}+{b}",
                f"{a}+{b}+{c}",
                f"{a}*({b}+{c})",
                f"{a}*{b}+{c}",
                f"{a}*{b}+{k}*{c}+{d}",
                f"{a}*({b}+{k})",
                f"({a}+1)*({b}+1)",
                f"({a}-{k})//2+1",
                f"{b}*(({a}-1)//{k}+1)",
                f"({a}-1)//2+{b}",
                f"{a}*{a}",
                f"{k}*{a}+{k}",
            ]
        )
    )


@settings(max_examples=120, deadline=None)
@given(expressions(), PRIMES, st.data())
def test_random_expressions_are_recovered(expression, sizes, data):
    found = probed(expression, sizes, factors=(2, 3, 4))
    assume(not found.unsettled)
    fresh = {name: data.draw(st.integers(5, 200)) for name in sizes}
    for point in (sizes, fresh):
        assert evaluate(found.dim.name, point) == evaluate(expression, point)


@settings(max_examples=60, deadline=None)
@given(expressions(), PRIMES)
def test_only_names_that_move_the_axis_are_claimed(expression, sizes):
    found = probed(expression, sizes)
    assert set(names_in(found.dim.name)) <= set(found.moved_by) == set(names_in(expression))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(1, 60),
    st.dictionaries(
        st.sampled_from("abc"),
        st.dictionaries(st.integers(2, 4), st.integers(1, 200), min_size=1),
        min_size=1,
    ),
    PRIMES,
)
def test_whatever_is_claimed_holds_at_every_point(base, probes, primes):
    sizes = {name: primes[name] for name in NAMES}
    found = name_axis(base, probes, sizes)
    if found.dim.evidence == "probe":
        assert evaluate(found.dim.name, sizes) == base
        for name, curve in probes.items():
            for factor, measured in curve.items():
                assert evaluate(found.dim.name, {**sizes, name: sizes[name] * factor}) == measured


def test_a_product_of_many_names():
    sizes = dict(zip("abcdefg", [2, 3, 5, 7, 11, 13, 17], strict=True))
    assert probed("*".join(sizes), sizes).dim.name == "a*b*c*d*e*f*g"
