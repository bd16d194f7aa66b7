"""Parameters without values: what a layer learns, filled by `build` or from a file.

Layers hold their matrices themselves, as [out, in], and apply them with `linear`: the
formulas stand in the code as in the papers, and a pass makes few calls.
"""

from torch import Tensor, empty, nn


def matrix(outputs: int, inputs: int) -> nn.Parameter:
    """A learned matrix that takes `inputs` numbers to `outputs`."""
    return nn.Parameter(empty(outputs, inputs))


def vector(size: int) -> nn.Parameter:
    """A learned vector."""
    return nn.Parameter(empty(size))


def bias(size: int, *, wanted: bool) -> Tensor | None:
    """A learned vector, or None where the configuration has no such bias."""
    return vector(size) if wanted else None
