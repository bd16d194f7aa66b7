"""Our generation beside transformers', and what tracing it costs.

    python -m tests.benchmarks.generation [--rounds 7] [--only tiny|gpt2|llama] [--thousand]

Prints CPU-time ratios, medians of interleaved rounds in one run on one thread: our greedy
generation with cache, untraced, as a multiple of transformers' tokens per second on the same
weights (16 tokens of prompt, 64 new), and our traced generation as a multiple of the
untraced; then transformers' own `generate` of a tiny Llama (100 tokens), recorded and its
trace put together, as multiples of the bare run. `--thousand` traces 1,000 tokens of the tiny model and prints the trace's size.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable

import torch

from shapetrace.api.transformer.generate_run import more_functions
from shapetrace.capture import record
from shapetrace.capture.record_steps import StepRecording
from shapetrace.capture.source.discover import joined, reachable
from shapetrace.model import from_pretrained
from shapetrace.model.generation import GenerationInput, generate_tokens
from shapetrace.records.storage import dumps
from shapetrace.records.trace import Trace

PROMPT, NEW = 16, 64
TINY = {"n_layer": 4, "n_embd": 128, "n_head": 4, "vocab_size": 1000, "n_positions": 1100}
LLAMA = {
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "bos_token_id": 1,
    "eos_token_id": None,
    "pad_token_id": 0,
}
SIZES = {"tiny": TINY, "gpt2": {}}


def models(size: str):
    """Theirs and ours, with the same random weights."""
    import transformers  # noqa: PLC0415 - only this comparison needs it

    torch.manual_seed(0)
    config = transformers.GPT2Config(**SIZES[size], bos_token_id=None, eos_token_id=None)
    theirs = transformers.GPT2LMHeadModel(config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        return theirs, from_pretrained(folder)


def timed(run: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


def traced(model, request: GenerationInput) -> tuple[float, float, Trace]:
    """CPU seconds of a traced generation, of making its trace afterwards, and the trace."""
    recording = StepRecording(model, wanted=joined(reachable(model), more_functions()))

    def run() -> None:
        recording.step()
        generate_tokens(model, request, lambda _: recording.step())

    with recording:
        during = timed(run)
    after = timed(lambda: recording.trace)
    return during, after, recording.trace


def compare(size: str, rounds: int) -> None:
    """Print the ratios for one model."""
    theirs, ours = models(size)
    ids = torch.randint(0, theirs.config.vocab_size, (1, PROMPT))
    request = GenerationInput(prompts=ids.tolist(), max_new_tokens=NEW)

    def their_run() -> object:
        with torch.no_grad():
            mask = torch.ones_like(ids)
            return theirs.generate(
                ids, attention_mask=mask, max_new_tokens=NEW, do_sample=False, pad_token_id=0
            )

    assert their_run()[0, PROMPT:].tolist() == list(generate_tokens(ours, request).rows[0])
    faster, dearer, whole = [], [], []
    for _ in range(rounds):
        base = timed(lambda: generate_tokens(ours, request))
        faster.append(timed(their_run) / base)
        during, after, _ = traced(ours, request)
        dearer.append(during / base)
        whole.append((during + after) / base)
    print(f"{size}: tokens per second, ours / transformers': {statistics.median(faster):.2f}")
    print(f"{size}: traced / untraced: {statistics.median(dearer):.2f}")
    print(f"{size}: traced with its trace put together / untraced: {statistics.median(whole):.2f}")


def compare_llama(rounds: int) -> None:
    """Print what recording transformers' own generation costs."""
    import transformers  # noqa: PLC0415 - only this comparison needs it

    torch.manual_seed(0)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**LLAMA)).eval()
    ids = torch.tensor([[5, 6, 7, 8]])

    def run() -> object:
        mask = torch.ones_like(ids)
        return model.generate(ids, attention_mask=mask, max_new_tokens=100, do_sample=False)

    recorded, built, tensors = [], [], 0
    for number in range(rounds + 1):  # the first warms up
        before = timed(run)
        with record(model) as recording:
            during = timed(run)
        after = timed(lambda recording=recording: recording.trace)
        bare = (before + timed(run)) / 2
        if number:
            recorded.append(during / bare)
            built.append(after / bare)
        tensors = len(recording.trace.tensors)
    print(f"llama: recorded / bare: {statistics.median(recorded):.2f} (most {max(recorded):.2f})")
    print(f"llama: putting the trace of {tensors} tensors together: {statistics.median(built):.2f}")


def deep_size(value: object, seen: set[int]) -> int:
    """Bytes of a record and all that it holds."""
    if id(value) in seen:
        return 0
    seen.add(id(value))
    size = sys.getsizeof(value)
    if isinstance(value, tuple):
        return size + sum(deep_size(item, seen) for item in value)
    if hasattr(value, "__dataclass_fields__"):
        return size + sum(deep_size(getattr(value, name), seen) for name in value.__slots__)
    return size


def thousand() -> None:
    """Print how much room the trace of 1,000 tokens takes."""
    _, ours = models("tiny")
    request = GenerationInput(prompts=[[1] * PROMPT], max_new_tokens=1000)
    _, _, trace = traced(ours, request)
    memory, disk = deep_size(trace, set()), len(dumps(trace))
    print(
        f"tiny, 1,000 tokens: trace of {memory / 1e6:.2f} MB in memory, {disk / 1e6:.2f} MB on disk"
    )


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=(*SIZES, "llama"))
    parser.add_argument("--thousand", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(1)
    for size in [given.only] if given.only else (*SIZES, "llama"):
        if size == "llama":
            compare_llama(given.rounds)
        else:
            compare(size, given.rounds)
    if given.thousand:
        thousand()


if __name__ == "__main__":
    main()
