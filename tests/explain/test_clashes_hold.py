"""A clash of two sizes is true if making them equal changes what torch says.

Calls of torch's operations with sizes drawn at random fail in all the ways that they can. For
each that is explained by two axes, one of them is given the other's size: the call must then
run, or fail for another reason.
"""

import random
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

import shapetrace

_PART = re.compile(r"axis (\d+) of `([abc])` is (\d+)")


def product(a, b):
    return a @ b


def batched(a, b):
    return torch.bmm(a, b)


def added_product(a, b, c):
    return torch.addmm(a, b, c)


def added(a, b):
    return a + b


def compared(a, b):
    return a == b


def chosen(a, b, c):
    return torch.where(a > 0, b, c)


def masked(a, b):
    return a.masked_fill(b > 0, 0.0)


def interpolated(a, b, c):
    return torch.lerp(a, b, c)


def joined(a, b, c):
    return torch.cat([a, b, c], 1)


def joined_last(a, b):
    return torch.cat((a, b), dim=-1)


def stacked(a, b):
    return torch.stack([a, b])


def contracted(a, b):
    return torch.einsum("bij,bkj->bik", a, b)


def contracted_any(a, b):
    return torch.einsum("...ij,...jk->...ik", a, b)


def attended(a, b, c):
    return F.scaled_dot_product_attention(a, b, c)


def attended_masked(a, b, c):
    return F.scaled_dot_product_attention(a, b, b, attn_mask=c)


def squared(a, b):
    return F.mse_loss(a, b)


def crossed(a, b):
    return F.binary_cross_entropy_with_logits(a, b)


def similar(a, b):
    return F.cosine_similarity(a, b)


def classified(a, b):
    return F.cross_entropy(a, b.long())


def gathered(a, b):
    return torch.gather(a, 1, b.long())


def put(a, b):
    a = a.clone()
    a[:, 1:] = b
    return a


def put_at(a, b):
    a = a.clone()
    a[0] = b
    return a


def in_place(a, b):
    a = a.clone()
    a += b
    return a


def projected(a, b):
    return F.linear(a, b)


def convolved(a, b):
    return F.conv1d(a, b)


def normalised(a, b):
    return F.layer_norm(a, b.shape, b)


def expanded(a, b):
    return a.expand_as(b)


def selected(a, b):
    return a[b > 1]


def outer_indices(a, b, c):
    return a[b.long() * 0, c.long() * 0]


def distances(a, b):
    return F.pairwise_distance(a, b)


OPERATIONS = [
    (product, 2, (1, 4)),
    (batched, 2, (3, 3)),
    (added_product, 3, (2, 2)),
    (added, 2, (1, 3)),
    (compared, 2, (1, 3)),
    (chosen, 3, (1, 3)),
    (masked, 2, (2, 3)),
    (interpolated, 3, (1, 3)),
    (joined, 3, (2, 3)),
    (joined_last, 2, (2, 3)),
    (stacked, 2, (2, 3)),
    (contracted, 2, (3, 3)),
    (contracted_any, 2, (2, 4)),
    (attended, 3, (3, 4)),
    (attended_masked, 3, (3, 4)),
    (squared, 2, (1, 3)),
    (crossed, 2, (1, 3)),
    (similar, 2, (2, 3)),
    (classified, 2, (2, 3)),
    (gathered, 2, (2, 2)),
    (put, 2, (2, 3)),
    (put_at, 2, (2, 3)),
    (in_place, 2, (1, 3)),
    (projected, 2, (2, 2)),
    (convolved, 2, (3, 3)),
    (normalised, 2, (2, 3)),
    (expanded, 2, (1, 3)),
    (selected, 2, (2, 2)),
    (outer_indices, 3, (1, 2)),
    (distances, 2, (2, 2)),
]


class Calls(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *tensors):
        return self.function(*tensors)


def _outcome(function, shapes):
    try:
        function(*(torch.ones(shape) for shape in shapes))
    except Exception as error:  # noqa: BLE001 - whatever torch says
        return str(error)
    return ""


def _explained(function, shapes):
    with pytest.raises(Exception) as caught, shapetrace.record(Calls(function)):
        Calls(function)(*(torch.ones(shape) for shape in shapes))
    lines = caught.value.__notes__[0].splitlines()
    return [line for line in lines if line.startswith("  clash:")], caught.value.__notes__[0]


def _made_equal(shapes, first, second):
    """The shapes with one axis of the first operand as large as the second's."""
    axis, name, _ = first
    changed = [list(shape) for shape in shapes]
    changed["abc".index(name)][int(axis)] = int(second[2])
    return changed


def _check(function, shapes, before):
    clashes, text = _explained(function, shapes)
    for clash in clashes:
        parts = _PART.findall(clash)
        for axis, name, size in parts:
            assert shapes["abc".index(name)][int(axis)] == int(size), text
        if len(parts) == 2 and not _twice(shapes, *parts):
            one = _outcome(function, _made_equal(shapes, *parts))
            other = _outcome(function, _made_equal(shapes, *reversed(parts)))
            assert parts[0][2] != parts[1][2], text
            assert {one, other} != {before}, text


def _twice(shapes, first, second):
    """Whether two operands differ by the same sizes on another axis too."""
    a, b = (shapes["abc".index(name)] for _, name, _ in (first, second))
    pair = int(first[2]), int(second[2])
    return list(zip(reversed(a), reversed(b), strict=False)).count(pair) > 1


def failures(function, count, ranks, seed, wanted):
    """Sizes with which a function fails, and what torch says of them."""
    draw = random.Random(f"{function.__name__}{seed}")
    while wanted:
        shapes = [[draw.randint(1, 5) for _ in range(draw.randint(*ranks))] for _ in range(count)]
        said = _outcome(function, shapes)
        if said:
            wanted -= 1
            yield function, shapes, said


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation[0].__name__)
def test_made_equal_the_sizes_do_not_clash(operation):
    for failure in failures(*operation, seed=0, wanted=3):
        _check(*failure)
