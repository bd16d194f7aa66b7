"""The loop of generation: read the prompts at once, then a token at a time.

A batch of prompts of different lengths is padded at the left, so that every text's next
token stands in the same column; padding is never looked at, and positions are counted from
each text's own beginning, so that each text becomes what it becomes alone.
"""

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Generator, Tensor

from shapetrace.model.config import ModelConfig
from shapetrace.model.decoder import Decoder
from shapetrace.model.encoder_decoder import EncoderDecoder
from shapetrace.model.errors import ModelError
from shapetrace.model.generation.sampling import Sampling, choose_token
from shapetrace.model.layers.attention import Attention
from shapetrace.model.layers.cache import Cache
from shapetrace.model.settings import SEEDS

OnToken = Callable[[Sequence[int | None]], None]

_UNKNOWN = 0
"""Stands for a token that a run without values (on ``meta``) cannot know; it ends no text."""


@dataclass(frozen=True, slots=True)
class Step:
    """One pass of a generation.

    Attributes:
        kind: ``encode`` (the source is read), ``prefill`` (the prompt is), ``decode``.
        n: Tokens that went in, of each text; padding included.
        m: Tokens whose keys and values were looked at.
        seconds: Wall time.
        cache_bytes: Bytes of the keys and values that were kept after it.
    """

    kind: Literal["encode", "prefill", "decode"]
    n: int
    m: int
    seconds: float
    cache_bytes: int


@dataclass(frozen=True, slots=True)
class Generated:
    """What a generation made.

    Attributes:
        rows: The new tokens of each text; the one that stopped it included. Without values
            (on ``meta``) as many as were wanted, and none of them known.
        steps: Its passes, the first of which read the prompts.
    """

    rows: tuple[tuple[int, ...], ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, kw_only=True)
class GenerationInput:
    """What is to be generated.

    Attributes:
        prompts: The ids of each prompt; of an encoder-decoder, each source.
        max_new_tokens: The most tokens to make for each.
        sampling: How each is chosen.
        stop_ids: Tokens after which a text is finished.
        samples: How many texts to make from each prompt.
        start_id: The token that begins an encoder-decoder's target.
        cache: Whether keys and values are kept, or worked out again at each step.
    """

    prompts: Sequence[Sequence[int]]
    max_new_tokens: int
    sampling: Sampling = field(default_factory=Sampling)
    stop_ids: Collection[int] = ()
    samples: int = 1
    start_id: int = 0
    cache: bool = True

    def rows(self) -> list[list[int]]:
        """The prompts, each as often as samples are wanted of it."""
        return [list(prompt) for prompt in self.prompts for _ in range(self.samples)]


def generate_tokens(
    model: Decoder | EncoderDecoder, request: GenerationInput, on_token: OnToken | None = None
) -> Generated:
    """Continue each prompt (or write what belongs to each source) token by token.

    Args:
        model: The model, in evaluation mode.
        request: What to generate.
        on_token: Called after each step with each text's new token; None where a text has
            ended.

    Raises:
        ModelError: The request does not suit the model; told before anything runs.
    """
    check_input(model.config, request)
    with torch.inference_mode():
        return _Run(model, request, on_token).run()


def check_input(config: ModelConfig, request: GenerationInput) -> None:
    """Refuse what the model cannot do.

    Raises:
        ModelError: An encoder, an empty prompt, or more tokens than positions.
    """
    if config.kind == "encoder":
        raise ModelError("an encoder reads and does not write: generation needs a decoder")
    if not request.prompts or not all(request.prompts):
        raise ModelError("a prompt is empty; give at least one token")
    wanted = {"new token": request.max_new_tokens, "sample": request.samples}
    for what, number in wanted.items():
        if number < 1:
            raise ModelError(f"at least 1 {what} must be wanted, not {number}")
    longest, limit = max(map(len, request.prompts)), config.max_positions
    if longest > limit:
        raise ModelError(f"the prompt has {longest} tokens, and the model {limit} positions")
    given = 1 if config.kind == "encoder-decoder" else longest
    needed = given + request.max_new_tokens - 1  # the last token is never read
    if needed > limit:
        raise ModelError(
            f"{given} tokens and {request.max_new_tokens} new ones need {needed} positions, and "
            f"the model has {limit} (`max_positions`); at most {limit - given + 1} can be made"
        )


class _Run:
    """One generation."""

    def __init__(
        self, model: Decoder | EncoderDecoder, request: GenerationInput, on_token: OnToken | None
    ) -> None:
        self.model = model
        self.request = request
        self.on_token = on_token
        self.like = next(model.parameters())
        self.sources = request.rows()
        reads = model.config.kind == "encoder-decoder"
        self.texts = [[request.start_id] for _ in self.sources] if reads else request.rows()
        self.made: list[list[int]] = [[] for _ in self.sources]
        self.ended = [False] * len(self.sources)
        seed = request.sampling.seed
        self.generators = [
            Generator().manual_seed((seed + number % request.samples) % SEEDS)
            for number in range(len(self.sources))
        ]
        self.cache = self.new_cache()
        if request.cache:
            join_projections(model, self.cache)
        self.steps: list[Step] = []

    def new_cache(self) -> Cache:
        """Room for all that may come; texts are padded to the longest at their left."""
        longest = max(map(len, self.texts))
        return Cache(
            self.model.config,
            len(self.texts),
            longest + self.request.max_new_tokens - 1,
            self.like,
            [longest - len(text) for text in self.texts],
        )

    def run(self) -> Generated:
        if isinstance(self.model, EncoderDecoder):
            started = time.perf_counter()
            read_sources(self.model, self.sources, self.cache)
            m = max(map(len, self.sources))
            self.steps.append(Step("encode", m, m, time.perf_counter() - started, 0))
        token_ids: Int[Tensor, "B n"] = left_padded(self.texts, self.like)
        for _ in range(self.request.max_new_tokens):
            started = time.perf_counter()
            next_ids: Int[Tensor, " B"] = self.step(token_ids)
            seconds = time.perf_counter() - started
            tokens = [_UNKNOWN] * len(self.texts) if next_ids.is_meta else next_ids.tolist()
            self.note(tokens, token_ids.shape[1], seconds)
            if all(self.ended):
                break
            token_ids = next_ids[:, None]
        return Generated(tuple(map(tuple, self.made)), tuple(self.steps))

    def step(self, token_ids: Int[Tensor, "B n"]) -> Int[Tensor, " B"]:
        """The next token of each text, after the new ones in `token_ids`."""
        if self.request.cache:
            return advance(
                self.model, token_ids, self.cache, self.request.sampling, self.generators
            )
        return self.recompute()

    def recompute(self) -> Int[Tensor, " B"]:
        """The next token of each text, with everything worked out anew."""
        rows = [text + made for text, made in zip(self.texts, self.made, strict=True)]
        last = [len(row) - 1 for row in rows]
        memory: Float[Tensor, "B m d_model"] | None = self.cache.memory
        logits: Float[Tensor, "B n vocab_size"] = recomputed(
            self.model, rows, memory, self.cache.memory_mask, self.like.device
        )
        final: Float[Tensor, "B vocab_size"] = logits[range(len(rows)), last]
        return choose_token(final, self.request.sampling, self.generators)

    def note(self, tokens: list[int], n: int, seconds: float) -> None:
        """Keep what a step made, and tell whoever listens."""
        new = [None if over else token for over, token in zip(self.ended, tokens, strict=True)]
        for number, token in enumerate(new):
            if token is not None:
                self.made[number].append(token)
                self.ended[number] = not self.like.is_meta and token in self.request.stop_ids
        m = max(map(len, self.texts)) + max(map(len, self.made)) - 1
        kept = self.cache.nbytes if self.request.cache else 0
        first = all(step.kind == "encode" for step in self.steps)
        kind: Literal["prefill", "decode"] = "prefill" if first else "decode"
        self.steps.append(Step(kind, n if self.request.cache else m, m, seconds, kept))
        if self.on_token is not None:
            self.on_token(new)


def join_projections(model: Decoder | EncoderDecoder, cache: Cache) -> None:
    """Let the cache of each small layer hold its three projections as one."""
    blocks = model.blocks if isinstance(model, Decoder) else model.decoder.blocks
    for block, kept in zip(blocks, cache.layers, strict=True):
        layer = block.attention
        if isinstance(layer, Attention):
            layer.join(kept)


def advance(
    model: Decoder | EncoderDecoder,
    token_ids: Int[Tensor, "B n"],
    cache: Cache,
    sampling: Sampling,
    generators: Sequence[Generator],
) -> Int[Tensor, " B"]:
    """One step with the cache: read the new tokens, choose the next."""
    logits: Float[Tensor, "B vocab_size"] = model.extend(token_ids, cache)
    next_ids: Int[Tensor, " B"] = choose_token(logits, sampling, generators)
    return next_ids


def recomputed(
    model: Decoder | EncoderDecoder,
    rows: Sequence[Sequence[int]],
    memory: Float[Tensor, "B m d_model"] | None,
    memory_mask: Bool[Tensor, "B m"] | None,
    device: torch.device,
) -> Float[Tensor, "B n vocab_size"]:
    """The scores at every position by the ordinary forward; shorter texts padded at the right."""
    n = max(map(len, rows))
    padded = [list(row) + [0] * (n - len(row)) for row in rows]
    token_ids: Int[Tensor, "B n"] = torch.tensor(padded, device=device)
    real = [[place < len(row) for place in range(n)] for row in rows]
    mask: Bool[Tensor, "B n"] | None = (
        None if all(map(all, real)) else torch.tensor(real, device=device)
    )
    if isinstance(model, Decoder) or memory is None:
        logits: Float[Tensor, "B n vocab_size"] = model(token_ids, mask)
        return logits
    x: Float[Tensor, "B n d_model"] = model.decoder(token_ids, memory, mask, memory_mask)
    scores: Float[Tensor, "B n vocab_size"] = model.head(x)
    return scores


def read_sources(model: EncoderDecoder, rows: Sequence[Sequence[int]], cache: Cache) -> None:
    """Run the encoder, once; shorter sources are padded at the right."""
    m = max(map(len, rows))
    device = cache.layers[0].k.device
    padded = [list(row) + [0] * (m - len(row)) for row in rows]
    token_ids: Int[Tensor, "B m"] = torch.tensor(padded, device=device)
    real = [[place < len(row) for place in range(m)] for row in rows]
    mask: Bool[Tensor, "B m"] | None = (
        None if all(map(all, real)) else torch.tensor(real, device=device)
    )
    model.read(token_ids, mask, cache)


def left_padded(rows: Sequence[Sequence[int]], like: Tensor) -> Int[Tensor, "B n"]:
    """Ids with shorter texts padded at the left, by an id that is never looked at."""
    n = max(map(len, rows))
    return torch.tensor([[0] * (n - len(row)) + list(row) for row in rows], device=like.device)
