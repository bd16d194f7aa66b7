"""Small expressions built for people.

Printed without spaces and with as few parentheses as needed; with a cost, by which the
simplest of several is taken.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SUM, _PRODUCT, _ATOM = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Term:
    """An expression.

    Attributes:
        text: As printed: ``(H-1)//2+1``.
        binding: How tightly it holds together: a sum, a product, or one thing.
        cost: How much there is to read, names and numbers and operations.
    """

    text: str
    binding: int
    cost: float


ONE = Term("1", _ATOM, 0.0)


def number(value: int) -> Term:
    """A literal; the larger, the less likely to be meant, but for powers of two."""
    bits = value.bit_length() / (8 if value & (value - 1) == 0 else 4)
    return Term(str(value), _ATOM if value >= 0 else _SUM, 1 + bits)


def symbol(name: str) -> Term:
    """A name."""
    return Term(name, _ATOM, 1.0)


def product(factors: Sequence[Term]) -> Term:
    """``a*b*(c+d)``, with ones left out."""
    factors = [factor for factor in factors if factor is not ONE]
    if len(factors) <= 1:
        return factors[0] if factors else ONE
    numbers, texts = zip(*(_leading(_held(factor)) for factor in factors), strict=True)
    first = prod(numbers)
    text = "*".join([*([str(first)] if first != 1 else []), *filter(None, texts)])
    return Term(text, _PRODUCT, sum(factor.cost for factor in factors) + 0.1 * len(factors))


def floor_division(numerator: Term, divisors: Sequence[Term]) -> Term:
    """``a*b//c``, or ``a//(b*c)``."""
    if not divisors:
        return numerator
    divisor = product(divisors)
    bottom = divisor.text if divisor.binding == _ATOM else f"({divisor.text})"
    top = f"({numerator.text})" if numerator.binding == _SUM else numerator.text
    text = f"{top}//{bottom}"
    # A number more often rounds one size (a//2) than a product of several (a*b//2).
    # So does a name that divides twice, once along each axis: (H//a)*(W//a).
    of_several = "*" in numerator.text.lstrip("0123456789*")
    twice = len({divisor.text for divisor in divisors}) < len(divisors)
    doubt = 2.0 if of_several and (bottom.isdigit() or twice) else 0.0
    return Term(text, _PRODUCT, numerator.cost + divisor.cost + 0.5 + doubt)


def total(terms: Sequence[Term], constant: int) -> Term:
    """``a+b-3``; a term may be negative only through its text's sign."""
    text = "+".join(term.text for term in terms).replace("+-", "-")
    cost = sum(term.cost for term in terms) + 0.2 * (len(terms) - 1)
    if constant == 0:
        return terms[0] if len(terms) == 1 else Term(text, _SUM, cost)
    return Term(f"{text}{constant:+d}", _SUM, cost + 0.2 + number(constant).cost)


def power(name: str, exponent: int) -> list[Term]:
    """A name as often as its exponent says."""
    return [symbol(name)] * exponent


def square(term: Term) -> Term:
    """``(a//b)**2``."""
    text = term.text if term.binding == _ATOM else f"({term.text})"
    return Term(f"{text}**2", _PRODUCT, term.cost + 1.5)


def _held(term: Term) -> str:
    """A factor's text; a sum or a quotient among other factors needs its parentheses."""
    needs = term.binding == _SUM or (term.binding == _PRODUCT and _is_quotient(term.text))
    return f"({term.text})" if needs else term.text


def _leading(text: str) -> tuple[int, str]:
    """A factor's text with the number before it taken off."""
    found, star, rest = text.partition("*")
    if text.isdecimal():
        return int(text), ""
    return (int(found), rest) if star and found.isdecimal() and rest[0] != "*" else (1, text)


def _is_quotient(text: str) -> bool:
    """Whether a division stands outside all parentheses."""
    depth = 0
    for place, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and text.startswith("//", place):
            return True
    return False
