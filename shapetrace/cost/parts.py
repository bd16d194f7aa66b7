"""Which part of a model something belongs to, told from its path and class.

The parts are those of a Transformer; what fits none is `other`, never guessed. The
innermost component of the path that speaks decides: ``blocks.0.attention.norm`` is a norm.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

ModelPart = Literal["embedding", "attention", "feed-forward", "norm", "head", "other"]

PARTS: tuple[ModelPart, ...] = ("embedding", "attention", "feed-forward", "norm", "head", "other")

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_LAYER_NUMBER = re.compile(r"fc[12]|linear[12]|w[123]|c_fc")

_PREFIXES: tuple[tuple[ModelPart, tuple[str, ...]], ...] = (
    ("norm", ("norm", "layernorm", "rmsnorm", "batchnorm", "groupnorm", "adanorm")),
    ("attention", ("attn", "attention", "multihead", "selfattn", "crossattn")),
    ("feed-forward", ("mlp", "ffn", "feedforward", "expert", "moe", "swiglu", "geglu")),
    ("embedding", ("embed", "wte", "wpe", "token", "position")),
    ("head", ("unembed", "classifier", "logits")),
)
_WORDS: dict[str, ModelPart] = {
    "ln": "norm",
    "rms": "norm",
    "bn": "norm",
    "mha": "attention",
    "ff": "feed-forward",
    "feed": "feed-forward",
    "intermediate": "feed-forward",
    "relu": "feed-forward",
    "shared": "embedding",
}
SHORTEST_JOINED = 4
"""Words up to this length are not looked for across a component's word boundaries."""

_HEADS = frozenset(
    {"head", "heads", "lm_head", "mlm_head", "cls", "score", "predictions", "generator"}
)


def part_of(
    path: str, classes: Mapping[str, str] | None = None, known: Collection[str] = ()
) -> ModelPart:
    """The part of the model that a dotted path lies in.

    Args:
        path: Of a module, a call (``blocks.0.attention.rotate()``) or a parameter.
        classes: Class name by module path, asked where a component's name says nothing.
        known: Paths of the model's modules: BERT's ``output`` beside an ``intermediate``
            is the second half of a feed-forward.
    """
    components = path.split(".") if path else []
    for length in range(len(components), 0, -1):
        component = components[length - 1]
        part = part_of_word(component)
        if part is None and classes and not component.endswith("()"):  # a function has no class
            here = ".".join(components[:length])
            part = part_of_word(classes[here]) if here in classes else None
        if part is None and component == "output":
            beside = ".".join([*components[: length - 1], "intermediate"])
            part = "feed-forward" if beside in known else None
        if part is not None:
            return part
    return "other"


@lru_cache(maxsize=4096)
def part_of_word(component: str) -> ModelPart | None:
    """The part that one component, or one class name, speaks of; None when it is silent."""
    if component.lower() in _HEADS:
        return "head"
    if _LAYER_NUMBER.fullmatch(component):
        return "feed-forward"
    words = [word.lower() for word in _WORD.findall(component)]
    return next((part for part, prefixes in _PREFIXES if _speaks_of(part, prefixes, words)), None)


def _speaks_of(part: ModelPart, prefixes: tuple[str, ...], words: list[str]) -> bool:
    joined = "".join(words)
    return (
        any(word.startswith(prefixes) or _WORDS.get(word) == part for word in words)
        or (part == "norm" and any(word.endswith("norm") for word in words))
        or any(len(prefix) > SHORTEST_JOINED and prefix in joined for prefix in prefixes)
    )
