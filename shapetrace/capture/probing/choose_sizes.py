"""Which sizes of a subject are changed, to what, and which only together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, islice

Group = tuple[str, ...]
"""Names of sizes that are changed by one factor; the first speaks for all."""

_CLUES_OF_NO_SHAPE = (
    *("_id", "token", "layers", "layer_", "n_layer", "depth", "seed", "version"),
    *("label2id", "max_distance", "_tp", "_beams"),
)
"""Integers whose names hold these seldom size a tensor: they are probed together first."""
_MOST_GROUPS = 24


def other_sizes(size: int) -> tuple[int, ...]:
    """Sizes to try: doubled first, then others for what doubling can't do or can't tell."""
    return (2 * size, 3 * size, size + 1, 4 * size, max(size // 2, 1)) if size > 0 else (1, 2, 3)


def deciding_sizes(size: int) -> tuple[int, ...]:
    """Sizes that tell expressions apart which agree at multiples: roundings, above all."""
    return (size + 1, 2 * size + 1, 3 * size + 2, size + 2)


def sizes_alone(size: int) -> tuple[int, ...]:
    """Sizes for a run that needs to get only as far as it goes: they tell roundings too."""
    return (2 * size, size + 1, 3 * size + 2)


def seems_shapeless(name: str) -> bool:
    """Whether a name is one of those that seldom size a tensor."""
    return any(clue in name.lower() for clue in _CLUES_OF_NO_SHAPE)


def labels(names: Sequence[str], taken: Sequence[str] = ()) -> dict[str, str]:
    """What each name is called in expressions: of a dotted one as little as tells it apart.

    Args:
        names: ``hidden_size``, ``vision_config.patch_size``, ``widths.0``.
        taken: Names that mean something else.
    """
    endings = [ending for name in names for ending in _endings(name)]
    found = {}
    for name in names:
        alone = (e for e in _endings(name) if endings.count(e) == 1 and e not in taken)
        found[name] = name if "." not in name else next(alone, name.replace(".", "_"))
    return found


def _endings(name: str) -> list[str]:
    """``width``, then ``config_width``: the ends of a dotted name that are names themselves."""
    parts = name.split(".")
    ends = ("_".join(parts[cut:]) for cut in range(len(parts) - 1, -1, -1))
    return [end for end in ends if end.isidentifier()]


def tied_groups(
    stuck: Sequence[str], loose: Sequence[str], sizes: Mapping[str, int], dims: Mapping[str, bool]
) -> Iterator[Group]:
    """Sizes that may run together where none runs alone, the smallest and likeliest first.

    Args:
        stuck: Names of which no other size runs.
        loose: Axes of the inputs that have no name.
        sizes: The size of each.
        dims: Which names are input axes', and whether each was only guessed.

    Yields:
        Groups, each led by the name that is to stand for it: the only input axis, or the
        first that the user named, or else what the model is made from.
    """
    yield from islice(_distinct(_groups(stuck, loose, sizes, dims)), _MOST_GROUPS)


def _groups(
    stuck: Sequence[str], loose: Sequence[str], sizes: Mapping[str, int], dims: Mapping[str, bool]
) -> Iterator[Group]:
    pairs = list(combinations(stuck, 2))
    equal = [pair for pair in pairs if sizes[pair[0]] == sizes[pair[1]]]
    for pair in equal:
        yield _led(pair, dims)
    for size in dict.fromkeys(sizes[name] for name in stuck):
        yield _led([name for name in stuck if sizes[name] == size], dims)
    for name in stuck:
        same = [axis for axis in loose if sizes[axis] == sizes[name]]
        yield from ((name, axis) for axis in same)
        yield (name, *same)
    for pair in pairs:
        yield _led(pair, dims)
    yield _led(stuck, dims)


def _led(names: Sequence[str], dims: Mapping[str, bool]) -> Group:
    inputs = [name for name in names if name in dims]
    others = [name for name in names if name not in dims]
    told = sorted(inputs, key=lambda name: dims[name])
    leads = len(inputs) == 1 or any(not dims[name] for name in inputs)
    return (*told, *others) if leads else (*others, *inputs)


def _distinct(groups: Iterator[Group]) -> Iterator[Group]:
    seen: set[frozenset[str]] = set()
    for group in groups:
        members = frozenset(group)
        if len(members) > 1 and members not in seen:
            seen.add(members)
            yield group
