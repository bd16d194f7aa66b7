import hypothesis.strategies as st
import pytest
from hypothesis import given

from shapetrace.dims import ExpressionError, UnboundNameError, evaluate, names_in

SIZES = {"n": 13, "m": 7, "h": 8, "H": 33}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("n", 13),
        ("n+1", 14),
        ("h*m-n", 43),
        ("(H-1)//2+1", 17),
        ("-(-H//2)", 17),
        ("n%m", 6),
        ("m**2", 49),
        ("h/2", 4),
        ("max(n,m,3)", 13),
        ("abs(m-n)", 6),
        ("{x}+1", 5),
        ("{self.a['k']}*{x}", 12),
    ],
)
def test_values(text, value):
    found = evaluate(text, {**SIZES, "{x}": 4, "{self.a['k']}": 3})
    assert found == value
    assert isinstance(found, int)


@given(
    st.recursive(
        st.sampled_from(["n", "m", "h", "2", "3"]),
        lambda part: st.tuples(part, st.sampled_from(["+", "-", "*", "//", "%"]), part).map(
            lambda t: f"({t[0]}{t[1]}{t[2]})"
        ),
        max_leaves=8,
    )
)
def test_equals_python(text):
    try:
        expected = eval(text, {}, SIZES)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="divides by zero"):
            evaluate(text, SIZES)
    else:
        assert evaluate(text, SIZES) == expected


def test_names_in_order_once():
    assert names_in("h*d_k+min(n,h)+{self.x}") == ("h", "d_k", "n", "{self.x}")


def test_unbound_names_are_named():
    with pytest.raises(UnboundNameError) as error:
        evaluate("h*d_k+q", SIZES)
    assert str(error.value) == "`h*d_k+q` uses `d_k`, `q`, which no axis before it binds"
    assert error.value.names == ("d_k", "q")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("n+", "`n+` is not an expression of dimension names"),
        ("n//0", "`n//0` divides by zero"),
        ("n<m", "`n<m`: `n < m` is more than integer arithmetic"),
        ("open(n)", "`open(n)`: `open(n)` is more than integer arithmetic"),
        ("n.real", "`n.real`: `n.real` is more than integer arithmetic"),
        ("m**m**m", "`m**m**m`: the exponent 823543 is not a small whole number"),
        ("abs(n,m)", "`abs(n,m)`: abs does not take 2 numbers"),
    ],
)
def test_what_is_no_integer_expression_is_refused(text, message):
    with pytest.raises(ExpressionError) as error:
        evaluate(text, SIZES)
    assert str(error.value) == message
