"""The configuration of a Transformer: one frozen record, validated when it is made.

Nothing here needs torch, so a program can list, read and check configurations at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from pathlib import Path
from typing import Any, Literal, cast, get_type_hints

from shapetrace.model.errors import ModelError, did_you_mean
from shapetrace.model.files.read_config import read_config
from shapetrace.model.presets import preset
from shapetrace.model.settings import checked, parsed

Kind = Literal["encoder", "decoder", "encoder-decoder"]
Positions = Literal["sinusoidal", "learned", "rope", "none"]
Norm = Literal["layernorm", "rmsnorm"]
NormPosition = Literal["pre", "post"]
Activation = Literal["relu", "gelu", "gelu-tanh", "silu"]
Biases = Literal["all", "qkv", "none"]
Head = Literal["lm", "mlm", "none"]
AttentionKind = Literal["explicit", "fused"]

DERIVED: Any = None
"""Default of a field that is filled in from the others when it is not given."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """What a Transformer is made of.

    A field left at None in the constructor is filled in: `d_k` is d_model / h, `h_kv` is
    `h`, `d_ff` is 4 * d_model, `decoder_layers` is `layers`, `head` follows the kind.

    Attributes:
        kind: ``encoder``, ``decoder`` or ``encoder-decoder``.
        layers: Number of blocks (of the encoder, where there are two stacks).
        d_model: Width of a token's representation.
        h: Query heads.
        vocab_size: Number of tokens known.
        h_kv: Key/value heads: `h` (multi-head), fewer (grouped-query), 1 (multi-query).
        d_k: Width of a head.
        d_ff: Width of the feed-forward's hidden layer.
        decoder_layers: Number of the decoder's blocks in an encoder-decoder.
        positions: How a token learns where it stands.
        max_positions: Longest sequence; a hard limit for learned positions.
        norm: Kind of normalisation.
        norm_position: Before (``pre``) or after (``post``) each sublayer.
        norm_eps: Added to the variance.
        activation: Of the feed-forward.
        gated: Whether the feed-forward multiplies by a gate (SwiGLU, GeGLU).
        biases: Which projections add a bias: ``all``, ``qkv`` alone, or ``none``.
        head: What stands on top: language model, masked language model, or nothing.
        tie_embeddings: Whether the head's matrix is the token embedding.
        scale_embedding: Whether the embedding is multiplied by sqrt(d_model).
        embedding_norm: Whether the embedding is normalised (BERT).
        token_types: Number of segment embeddings (BERT); 0 for none.
        pooler: Whether there is a pooling layer over the first token (BERT).
        dropout: Probability of dropping an activation in training.
        attention: ``explicit`` makes the scores, ``fused`` never does.
        window: How many tokens back a decoder's token may look, itself included.
        rope_base: Base of the rotary frequencies.
        rope_factor: Stretch of the low rotary frequencies (Llama 3.1); 1 for none.
        rope_low_factor: Below original positions / this, frequencies are stretched.
        rope_high_factor: Above original positions / this, they are left alone.
        rope_original_positions: Context length before stretching.
        init_std: Standard deviation of the initial weights.
        pad_id: Token id of padding.
        bos_id: Token id that begins a sequence.
        eos_id: Token id that ends it.

    Raises:
        ModelError: A field has a wrong type or value.
    """

    kind: Kind
    layers: int
    d_model: int
    h: int
    vocab_size: int
    h_kv: int = DERIVED
    d_k: int = DERIVED
    d_ff: int = DERIVED
    decoder_layers: int = DERIVED
    positions: Positions = "sinusoidal"
    max_positions: int = 512
    norm: Norm = "layernorm"
    norm_position: NormPosition = "pre"
    norm_eps: float = 1e-5
    activation: Activation = "gelu"
    gated: bool = False
    biases: Biases = "all"
    head: Head = DERIVED
    tie_embeddings: bool = True
    scale_embedding: bool = False
    embedding_norm: bool = False
    token_types: int = 0
    pooler: bool = False
    dropout: float = 0.0
    attention: AttentionKind = "fused"
    window: int | None = None
    rope_base: float = 10000.0
    rope_factor: float = 1.0
    rope_low_factor: float = 1.0
    rope_high_factor: float = 4.0
    rope_original_positions: int = 8192
    init_std: float = 0.02
    pad_id: int | None = None
    bos_id: int | None = None
    eos_id: int | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is DERIVED and field.name in _DERIVED_FIELDS:
                continue
            self._set(field.name, checked(field.name, value, field_types()[field.name]))
        self._derive()
        for problem in _problems(self):
            raise ModelError(problem)

    def _set(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)

    def _derive(self) -> None:
        if self.h_kv is DERIVED:
            self._set("h_kv", self.h)
        if self.d_k is DERIVED:
            if self.h < 1 or self.d_model % self.h:
                raise ModelError(
                    f"`h` is {self.h}, which does not divide `d_model` ({self.d_model}): "
                    "choose a divisor, or give `d_k`"
                )
            self._set("d_k", self.d_model // self.h)
        if self.d_ff is DERIVED:
            self._set("d_ff", 4 * self.d_model)
        if self.decoder_layers is DERIVED:
            self._set("decoder_layers", self.layers)
        if self.head is DERIVED:
            self._set("head", "none" if self.kind == "encoder" else "lm")

    @property
    def grouped(self) -> bool:
        """Whether several query heads share one key/value head."""
        return self.h_kv != self.h

    @property
    def causal(self) -> bool:
        """Whether tokens see only the left (in the decoder, where there are two stacks)."""
        return self.kind != "encoder"

    def replaced(self, changes: Mapping[str, object]) -> ModelConfig:
        """A copy with some fields changed; strings are parsed by the field's type.

        `d_k` and `h_kv` follow `d_model` and `h` where they stood at their defaults.

        Raises:
            ModelError: An unknown field, or a value that it cannot take.
        """
        types = field_types()
        new: dict[str, object] = {}
        for name, value in changes.items():
            if name not in types:
                raise ModelError(f"no configuration field `{name}`: {did_you_mean(name, types)}")
            new[name] = parsed(name, value, types[name]) if isinstance(value, str) else value
        kept = {k: v for k, v in asdict(self).items() if k not in self._following(new)}
        return type(self)(**cast("dict[str, Any]", {**kept, **new}))

    def _following(self, new: Mapping[str, object]) -> Iterator[str]:
        """Fields that stand at their defaults and must be derived again."""
        if "h" in new and not self.grouped:
            yield "h_kv"
        if new.keys() & {"h", "d_model"} and self.d_k * self.h == self.d_model:
            yield "d_k"
        if "layers" in new and self.decoder_layers == self.layers:
            yield "decoder_layers"
        if "kind" in new:
            yield "head"

    def to_dict(self) -> dict[str, int | float | bool | str | None]:
        """Every field by name, as plain values."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, object], where: str = "configuration") -> ModelConfig:
        """A configuration from names and values, as a file gives them.

        Args:
            values: Field names and values.
            where: What to call the source in an error.

        Raises:
            ModelError: An unknown or missing field, or a wrong type or value.
        """
        types = field_types()
        for name in values:
            if name not in types:
                raise ModelError(f"{where}: no field `{name}`: {did_you_mean(name, types)}")
        for field in fields(cls):
            if field.default is MISSING and field.name not in values:
                raise ModelError(f"{where}: field `{field.name}` is missing")
        try:
            return cls(**cast("dict[str, Any]", dict(values)))
        except ModelError as error:
            raise ModelError(f"{where}: {error}") from None

    @classmethod
    def from_preset(cls, name: str) -> ModelConfig:
        """A configuration by its published name: ``gpt2``, ``llama-3-8b``, ...

        Raises:
            ModelError: No preset has that name.
        """
        return cls(**preset(name))

    @classmethod
    def from_file(cls, path: str | Path) -> ModelConfig:
        """A configuration from a TOML or JSON file, or a Hugging Face directory.

        Raises:
            ModelError: The file is missing, broken, or not a configuration.
        """
        values, where = read_config(Path(path))
        return cls.from_dict(values, where)


_DERIVED_FIELDS = frozenset({"h_kv", "d_k", "d_ff", "decoder_layers", "head"})
_LAYERS = ("layers", "decoder_layers")
_SIZES = ("d_model", "h", "h_kv", "d_k", "d_ff", "vocab_size")
_REACHES = ("max_positions", "rope_original_positions", "window")
_MOST_LAYERS = 10_000
_UNREADABLE = 10**15
_LARGEST = 2**28
"""Of a size: a matrix of this by this is the most whose bytes a tensor can count."""


def field_types() -> dict[str, object]:
    """The type of each field, evaluated."""
    if not _FIELD_TYPES:
        _FIELD_TYPES.update(get_type_hints(ModelConfig))
    return _FIELD_TYPES


_FIELD_TYPES: dict[str, object] = {}


def _problems(config: ModelConfig) -> Iterator[str]:
    yield from _size_problems(config)
    yield from _number_problems(config)
    yield from _head_problems(config)
    yield from _kind_problems(config)


def _size_problems(config: ModelConfig) -> Iterator[str]:
    for name in (*_LAYERS, *_SIZES, *_REACHES):
        value = getattr(config, name)
        most = _MOST_LAYERS if name in _LAYERS else _LARGEST
        if value is not None and value < 1:
            yield f"`{name}` is {value}; it must be at least 1"
        elif value is not None and value > most:
            yield f"`{name}` is {_counted(value)}; it must be at most {most:,}"
    if config.h * config.d_k > _LARGEST:
        yield f"`h` times `d_k` is {_counted(config.h * config.d_k)}; it must be at most {_LARGEST:,}"
    if not 0 <= config.token_types <= _LARGEST:
        yield f"`token_types` is {config.token_types}; it must be from 0 to {_LARGEST:,}"


def _counted(value: int) -> str:
    """A number in full, unless nobody would read it."""
    return f"{value:,}" if value < _UNREADABLE else "far too large"


def _number_problems(config: ModelConfig) -> Iterator[str]:
    if not 0 <= config.dropout < 1:
        yield f"`dropout` is {config.dropout}; it must be at least 0 and below 1"
    for name in ("norm_eps", "init_std", "rope_base", "rope_factor"):
        if getattr(config, name) <= 0:
            yield f"`{name}` is {getattr(config, name)}; it must be positive"
    if not 0 < config.rope_low_factor < config.rope_high_factor:
        yield (
            f"`rope_low_factor` is {config.rope_low_factor}; it must be positive and below "
            f"`rope_high_factor` ({config.rope_high_factor})"
        )
    for name in ("pad_id", "bos_id", "eos_id"):
        value = getattr(config, name)
        if value is not None and not 0 <= value < config.vocab_size:
            yield f"`{name}` is {value}, outside the vocabulary of {config.vocab_size}"


def _head_problems(config: ModelConfig) -> Iterator[str]:
    if config.h % config.h_kv:
        yield f"`h_kv` is {config.h_kv}, which does not divide `h` ({config.h})"
    if config.positions == "rope" and config.d_k % 2:
        yield f"`d_k` is {config.d_k}; rotary positions turn pairs, so it must be even"
    if config.positions == "sinusoidal" and config.d_model % 2:
        yield (
            f"`d_model` is {config.d_model}; sinusoidal positions pair a sine with a cosine, "
            "so it must be even"
        )


def _kind_problems(config: ModelConfig) -> Iterator[str]:
    allowed = ("mlm", "none") if config.kind == "encoder" else ("lm",)
    if config.head not in allowed:
        yield (
            f"`head` is {config.head!r}, which a model of kind {config.kind!r} cannot have; "
            f"allowed: {', '.join(allowed)}"
        )
    if config.kind != "encoder":
        for name in ("pooler", "token_types"):
            if getattr(config, name):
                yield f"`{name}` needs an encoder, and the kind is {config.kind!r}"
    if config.window is not None and config.kind == "encoder":
        yield "`window` limits how far a decoder looks back, and the kind is 'encoder'"
