"""The running part of a generation: the model, its text as it comes, its trace."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from shapetrace.api.transformer.building import build_model, check_device
from shapetrace.api.transformer.memory import ITEM_BYTES, activation_bytes, check_fits
from shapetrace.api.transformer.requests import PassRequest
from shapetrace.capture.record_steps import StepRecording
from shapetrace.capture.source.discover import joined, reachable
from shapetrace.cost import flops
from shapetrace.cost.symbolic import encoder_flops, forward_flops, source_flops, step_flops
from shapetrace.model.generation import (
    Generated,
    GenerationInput,
    Sampling,
    filters,
    loop,
    sampling,
)
from shapetrace.model.generation import generate_tokens as make
from shapetrace.model.layers.cache import Cache, LayerCache, doubled
from shapetrace.model.transformer import frame
from shapetrace.records.folds import steps_of
from shapetrace.report.generation.records import STEPS, Generation, Pass, Sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from shapetrace.api.transformer.requests import GenerationRequest, OnText
    from shapetrace.model.transformer import Transformer
    from shapetrace.records.trace import OpRecord, Trace

_SMALLER = "a smaller --dtype or model, fewer --prompt and --samples, or fewer --max-new-tokens"
"""The way out of a generation that does not fit."""

UNFINISHED = "\N{REPLACEMENT CHARACTER}"


def run_generation(wish: GenerationRequest, on_text: OnText | None) -> Generation:
    """Generate.

    Raises:
        ShapetraceError: If the device is missing or the memory does not suffice.
        ModelError: If the request does not suit the model.
    """
    check_device(wish.device)
    request = _loop_request(wish)
    loop.check_input(wish.config, request)
    valued = wish.device != "meta"
    if valued:
        _check_memory(wish, request)
    built = PassRequest(
        name=wish.name,
        config=wish.config,
        weights=wish.weights,
        device=wish.device,
        dtype=wish.dtype,
        seed=wish.seed,
    )
    model: Any = build_model(built)
    voice = Voice(wish, on_text if valued else None)
    made, trace = _made(wish, model, request, voice)
    voice.finish()
    passes, counted = _passes(wish, made, trace)
    return Generation(
        name=wish.name,
        config=tuple(wish.config.to_dict().items()),
        samples=voice.samples(made) if valued else _unknown(wish),
        passes=passes,
        counted=counted,
        flops_without_cache=_without_cache(wish, made),
        trace=trace,
        valued=valued,
    )


def _unknown(wish: GenerationRequest) -> tuple[Sample, ...]:
    """The texts of a run without values: nobody knows them."""
    return tuple(Sample(prompt, "", ()) for prompt in wish.prompts for _ in range(wish.samples))


def _loop_request(wish: GenerationRequest) -> GenerationInput:
    return GenerationInput(
        prompts=wish.prompt_ids,
        max_new_tokens=wish.max_new_tokens,
        sampling=Sampling(
            temperature=wish.temperature, top_k=wish.top_k, top_p=wish.top_p, seed=wish.seed
        ),
        stop_ids=wish.stop_ids,
        samples=wish.samples,
        start_id=wish.start_id,
        cache=wish.cache,
    )


def _check_memory(wish: GenerationRequest, request: GenerationInput) -> None:
    item = ITEM_BYTES[wish.dtype]
    parameters = sum(parameter.numel() * item for parameter in frame(wish.config).parameters())
    B, n = len(request.prompts) * request.samples, max(map(len, request.prompts))
    kept = 2 * wish.config.decoder_layers * B * wish.config.h_kv * wish.config.d_k * item
    activations = activation_bytes(wish.config, B, n, item) + kept * (n + wish.max_new_tokens)
    check_fits(wish.name, parameters, activations, wish.device, _SMALLER)


class Voice:
    """Turns tokens into text as they come; a part of a character waits for the rest."""

    def __init__(self, wish: GenerationRequest, on_text: OnText | None) -> None:
        self._decode = wish.tokenizer.decode
        self._wish = wish
        self._on_text = on_text
        reads = wish.config.kind == "encoder-decoder"
        rows = [() if reads else ids for ids in wish.prompt_ids for _ in range(wish.samples)]
        self._before = [tuple(row) for row in rows]
        self._made: list[list[int]] = [[] for _ in rows]
        self._said = [""] * len(rows)

    def hear(self, tokens: Sequence[int | None]) -> None:
        """A step's token of each text; None where one has ended."""
        for number, token in enumerate(tokens):
            if token is not None:
                self._made[number].append(token)
                if self._on_text is not None:
                    self._say(number, self.text(number).rstrip(UNFINISHED))

    def finish(self) -> None:
        """Say what was still waiting."""
        if self._on_text is not None:
            for number in range(len(self._made)):
                self._say(number, self.text(number))

    def text(self, number: int) -> str:
        """What was made of a text so far: all of it, less what the prompt alone gives."""
        before = self._decode(self._before[number]) if self._before[number] else ""
        whole = self._decode([*self._before[number], *self._made[number]])
        return (
            whole[len(before) :] if whole.startswith(before) else self._decode(self._made[number])
        )

    def samples(self, made: Generated) -> tuple[Sample, ...]:
        """The texts with their prompts."""
        prompts = [prompt for prompt in self._wish.prompts for _ in range(self._wish.samples)]
        return tuple(
            Sample(prompt, self.text(number), made.rows[number])
            for number, prompt in enumerate(prompts)
        )

    def _say(self, number: int, text: str) -> None:
        said = self._said[number]
        if text.startswith(said) and len(text) > len(said) and self._on_text is not None:
            self._on_text(number, text[len(said) :])
            self._said[number] = text


def _made(
    wish: GenerationRequest, model: Transformer, request: GenerationInput, voice: Voice
) -> tuple[Generated, Trace | None]:
    running: Any = model
    if not wish.trace:
        return make(running, request, voice.hear), None
    recording = StepRecording(
        model,
        wanted=joined(reachable(model), more_functions()),
        target=wish.name,
        config=wish.config.to_dict(),
        sizes={"B": len(request.rows())},
    )

    def hear(tokens: Sequence[int | None]) -> None:
        voice.hear(tokens)
        recording.step()

    with recording:
        recording.step()
        made = make(running, request, hear)
    facts = [("device", wish.device), ("dtype", wish.dtype), ("seed", str(wish.seed))]
    if wish.device == "meta":
        facts.append(("weights", "none"))
    trace = recording.trace
    return made, replace(trace, environment=(*trace.environment, *facts))


def more_functions() -> dict[str, frozenset[int]]:
    """Functions that take part in a step and that no module's forward names."""
    functions: list[Callable[..., Any]] = [
        loop.advance,
        loop.recomputed,
        loop.read_sources,
        LayerCache.append,
        LayerCache.keys,
        LayerCache.values,
        Cache.position_ids,
        Cache._visible,  # noqa: SLF001 - one package
        doubled,
        sampling.choose_token,
        sampling.filtered,
        sampling.draw,
        filters.tempered,
        filters.only_top_k,
        filters.only_top_p,
    ]
    lines: dict[str, set[int]] = {}
    for function in functions:
        code = function.__code__
        lines.setdefault(code.co_filename, set()).add(code.co_firstlineno)
    return {file: frozenset(found) for file, found in lines.items()}


def _passes(
    wish: GenerationRequest, made: Generated, trace: Trace | None
) -> tuple[tuple[Pass, ...], str]:
    """The passes with their costs, and where the costs come from."""
    closed = [_closed(wish, made, number) for number in range(len(made.steps))]
    costs = closed if trace is None else flops_by_step(trace)
    passes = tuple(
        Pass(
            kind=step.kind,
            n=step.n,
            m=step.m,
            flops=cost,
            kv_cache_bytes=step.cache_bytes,
            seconds=step.seconds,
        )
        for step, cost in zip(made.steps, costs, strict=True)
    )
    return passes, "closed form" if trace is None else "operators"


def flops_by_step(trace: Trace) -> list[int]:
    """FLOPs of each pass, from the operators that ran; a folded one's from its own shapes."""
    costs: list[int] = []
    for scope in trace.scopes:
        if scope.path not in STEPS:
            continue
        fold = next((f for f in trace.folds if f.start <= scope.start < f.start + f.stride), None)
        if fold is None:
            costs.append(_cost(op for op in trace.ops if scope.start <= op.at < scope.end))
        else:
            kept = steps_of(trace, fold)
            costs += [_cost(kept.ops(trace, number)) for number in range(fold.times + 1)]
    return costs


def _cost(ops: Iterable[OpRecord]) -> int:
    return sum(flops(op) or 0 for op in ops)


def _closed(wish: GenerationRequest, made: Generated, number: int) -> int:
    """FLOPs of a pass by the closed form."""
    config, step = wish.config.to_dict(), made.steps[number]
    sizes = {**_sizes(wish, made), "n": step.n, "m": step.m}
    if step.kind == "encode":
        return encoder_flops(config).value(sizes)
    if not wish.cache:
        return _forward(wish, sizes)
    return _step(wish, sizes, anew=step.kind == "prefill")


def _without_cache(wish: GenerationRequest, made: Generated) -> int:
    """FLOPs of the same steps with nothing kept but an encoder's output.

    What a step must do without a cache: every token anew, but a score for the last position
    alone, as with the cache; otherwise the head's work would pass for the cache's merit.
    """
    total = 0
    for number, step in enumerate(made.steps):
        if step.kind == "encode":
            total += _closed(wish, made, number)
        else:
            total += _step(wish, {**_sizes(wish, made), "n": step.m, "m": step.m}, anew=True)
    return total


def _step(wish: GenerationRequest, sizes: dict[str, int], *, anew: bool) -> int:
    """FLOPs of a step over `n` new tokens; `anew` if a source's keys and values are made."""
    cost = sum(form.value(sizes) for form in step_flops(wish.config.to_dict()))
    makes = anew and wish.config.kind == "encoder-decoder"
    return cost + (source_flops().value(sizes) if makes else 0)


def _forward(wish: GenerationRequest, sizes: dict[str, int]) -> int:
    """FLOPs of a forward over `n` tokens, the encoder's left out."""
    config = wish.config.to_dict()
    whole = sum(form.value({**sizes, "m": sizes["s"]}) for form in forward_flops(config))
    reads = wish.config.kind == "encoder-decoder"
    return whole - (encoder_flops(config).value(sizes) if reads else 0)


def _sizes(wish: GenerationRequest, made: Generated) -> dict[str, int]:
    numbers = {name: value for name, value in wish.config.to_dict().items() if type(value) is int}
    return {**numbers, "B": len(made.rows), "s": made.steps[0].n}
