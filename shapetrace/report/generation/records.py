"""What a generation made and cost: its texts, its passes and their sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from shapetrace.records.trace import Trace
from shapetrace.units import FLOP_CONVENTION

STEPS = ("read_sources()", "advance()", "recomputed()")
"""The calls that are a generation's passes."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One text that was made.

    Attributes:
        prompt: What it continues; of an encoder-decoder, the source.
        text: What was made.
        token_ids: The ids of what was made.
    """

    prompt: str
    text: str
    token_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of a generation, and what it cost.

    Attributes:
        kind: ``encode``, ``prefill`` or ``decode``.
        n: Tokens that went in, of each text.
        m: Tokens that could be looked at.
        flops: Counted from the operators that ran, or by the closed form.
        kv_cache_bytes: Bytes of keys and values kept after it.
        seconds: Wall time.
    """

    kind: str
    n: int
    m: int
    flops: int
    kv_cache_bytes: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Generation:
    """What a generation made and cost.

    Attributes:
        name: The model.
        config: Its configuration, name and value pairs.
        samples: The texts.
        passes: Its passes, in order.
        counted: Where the passes' FLOPs come from: ``operators`` or ``closed form``.
        flops_without_cache: FLOPs of the same steps with everything worked out anew each
            time and the last position scored, by the closed form.
        trace: The run, equal steps folded; None where it was not traced.
        valued: Whether tensors had values; without (on ``meta``) which text is made, and how
            long a pass takes, is not known, and as many tokens are made as were wanted.
    """

    name: str
    config: tuple[tuple[str, int | float | bool | str | None], ...]
    samples: tuple[Sample, ...]
    passes: tuple[Pass, ...]
    counted: str
    flops_without_cache: int
    trace: Trace | None
    valued: bool = True

    @property
    def flops(self) -> int:
        """FLOPs of all passes."""
        return sum(step.flops for step in self.passes)

    @property
    def seconds(self) -> float:
        """Wall time of all passes."""
        return sum(step.seconds for step in self.passes)

    @property
    def uses_cache(self) -> bool:
        """Whether keys and values were kept."""
        return self.passes[-1].kv_cache_bytes > 0

    @property
    def tokens(self) -> int:
        """Tokens that were made."""
        if not self.valued:
            return len(self.samples) * sum(step.kind != "encode" for step in self.passes)
        return sum(len(sample.token_ids) for sample in self.samples)


@dataclass(frozen=True, slots=True)
class PassRun:
    """Passes of one kind that follow each other.

    Attributes:
        passes: The passes.
    """

    passes: tuple[Pass, ...]

    @property
    def kind(self) -> str:
        """What they are."""
        return self.passes[0].kind

    def span(self, name: str) -> str:
        """The first and last of a number: ``17 ... 48``, or the one that all have."""
        first, last = (getattr(self.passes[place], name) for place in (0, -1))
        return str(first) if first == last else f"{first} ... {last}"

    def label(self, kind: str = "") -> str:
        """What they are and over how many tokens: ``decode x32: n = 1, m = 17 ... 48``.

        Args:
            kind: What they are called, where that is not `kind`.
        """
        times = f" x{len(self.passes)}" if len(self.passes) > 1 else ""
        return f"{kind or self.kind}{times}: n = {self.span('n')}, m = {self.span('m')}"


def pass_runs(generation: Generation) -> list[PassRun]:
    """The passes folded: equal kinds together."""
    found: list[list[Pass]] = []
    for step in generation.passes:
        if found and found[-1][0].kind == step.kind:
            found[-1].append(step)
        else:
            found.append([step])
    return [PassRun(tuple(passes)) for passes in found]


def totals(generation: Generation) -> dict[str, Any]:
    """The sums, by name, as the JSON has them."""
    last = generation.passes[-1]
    seconds = generation.seconds
    per_token = last.kv_cache_bytes // last.m if generation.uses_cache else 0
    saved = generation.flops_without_cache - generation.flops if generation.uses_cache else None
    return {
        "tokens": generation.tokens,
        "passes": len(generation.passes),
        "seconds": seconds if generation.valued else None,
        "tokens_per_second": generation.tokens / seconds if seconds and generation.valued else None,
        "kv_cache_bytes": last.kv_cache_bytes,
        "kv_cache_bytes_per_token": per_token,
        "flops": generation.flops,
        "flops_counted_from": generation.counted,
        "flops_without_cache": generation.flops_without_cache,
        "flops_without_cache_counted_from": "closed form, the last position scored",
        "flops_saved": saved,
        "convention": FLOP_CONVENTION,
    }
