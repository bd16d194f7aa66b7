"""Sizes at which names are tried that were found at others: some larger, some smaller.

What holds for one size moved at a time may not for sizes that change places: the lesser of
two looks like the one that is smaller today.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

_FACTOR = 5
"""Of what is made larger; no size is probed at it before. The large ones take it twice, so that
what divided them still does."""
_LARGE = 16
_STEPS = 7
_LEAST = 2
"""1 is not a size like others: it broadcasts."""


def first_trials(sizes: Mapping[str, int], dims: Collection[str]) -> Iterator[dict[str, int]]:
    """All larger, all smaller, each half larger while the other is smaller, and odd ones.

    Args:
        sizes: What can be changed, with the sizes of the real run.
        dims: Those that are axes of inputs; the others are what the model is made from.
    """
    up = {name: _larger(size, is_dim=name in dims) for name, size in sizes.items()}
    down = {name: _smaller(size, is_dim=name in dims) for name, size in sizes.items()}
    yield from _mixed(up, down, dims)
    yield {name: 3 * size + 1 for name, size in sizes.items() if name not in dims}


def far_trials(sizes: Mapping[str, int]) -> Iterator[dict[str, int]]:
    """The model's sizes so far apart, in either order, that any two of them change places.

    Factors are powers of 4, so that what divides another mostly still does in one of the two.

    Args:
        sizes: What the model is made from, with the sizes of the real run.
    """
    last = len(sizes) - 1
    if last > 0:
        steps = [round(place * min(last, _STEPS) / last) for place in range(last + 1)]
        for exponents in (steps, steps[::-1]):
            yield {n: s * 4**e for (n, s), e in zip(sizes.items(), exponents, strict=True)}


def second_trials(sizes: Mapping[str, int], dims: Collection[str]) -> Iterator[dict[str, int]]:
    """The same at yet other sizes, for names that the first trials changed."""
    up = {n: 7 * size + (2 if n in dims else 0) for n, size in sizes.items()}
    down = {
        n: max(_LEAST, size - size // 4 - 1) if n in dims else size // 2
        for n, size in sizes.items()
    }
    yield from _mixed(up, down, dims)
    yield {name: 2 * size + 3 for name, size in sizes.items() if name not in dims}


def _mixed(
    up: Mapping[str, int], down: Mapping[str, int], dims: Collection[str]
) -> Iterator[dict[str, int]]:
    given = [name for name in up if name in dims]
    own = [name for name in up if name not in dims]
    yield dict(up)
    if given and own:
        yield {**down, **{name: up[name] for name in given}}
        yield {**up, **{name: down[name] for name in given}}
    else:
        yield dict(down)
    low = {name: min(size, _LEAST) if up[name] > _LEAST else size for name, size in down.items()}
    halved = (given[::2], given[1::2]) if len(given) > 1 else (given,)
    for half in halved:
        yield {name: (low if name in half else up)[name] for name in given}


def _larger(size: int, *, is_dim: bool) -> int:
    if is_dim:
        return _FACTOR * size + 1
    return size * _FACTOR * (2 if size >= _LARGE else 1)


def _smaller(size: int, *, is_dim: bool) -> int:
    if is_dim:
        return _LEAST + 1 if size > _LEAST + 2 else _LEAST
    return size // 2 if size % 2 == 0 and size > _LEAST else size


def halves(
    changes: Mapping[str, int], dims: Collection[str]
) -> tuple[dict[str, int], dict[str, int]]:
    """A trial that does not run, as two that change less: inputs apart from the model's sizes."""
    given = {name: size for name, size in changes.items() if name in dims}
    if given and len(given) < len(changes):
        return given, {name: size for name, size in changes.items() if name not in dims}
    names = list(changes)
    half = len(names) // 2
    return {n: changes[n] for n in names[:half]}, {n: changes[n] for n in names[half:]}
