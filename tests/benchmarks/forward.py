"""What tracing a forward pass costs beside its peers, and our forward beside transformers'.

    python -m tests.benchmarks.forward [--rounds 30] [--only tiny|gpt2]

Prints CPU-time ratios to the bare forward, medians of interleaved rounds in one run on one
thread. The set-up of each tool (rewriting code, wrapping modules) is not part of the pass;
its own line tells what it takes. torchlens is shown where it is installed (`pip install
torchlens`: it is no dependency, not even of the tests).
"""

from __future__ import annotations

import argparse
import contextlib
import statistics
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from shapetrace.api.preparing.probe_names import probed
from shapetrace.capture import record
from shapetrace.capture.target.inputs import CallInputs
from shapetrace.capture.target.instances import subject_of
from shapetrace.model import ModelConfig, from_pretrained

Pass = Callable[[], float]
TINY = {"n_layer": 4, "n_embd": 128, "n_head": 4, "vocab_size": 1000, "n_positions": 128}
SIZES = {"tiny": (TINY, 2, 32), "gpt2": ({}, 2, 128)}


def timed(run: Callable[[], object]) -> float:
    """CPU seconds of one call."""
    start = time.process_time()
    run()
    return time.process_time() - start


class Empty(TorchDispatchMode):
    """Sees every operator and notes nothing."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


@contextlib.contextmanager
def hooked(model: nn.Module) -> Iterator[None]:
    """Hooks that note each module's output shape."""
    seen: list[tuple[str, torch.Size]] = []

    def hook(module, _, output):
        if isinstance(output, torch.Tensor):
            seen.append((type(module).__name__, output.shape))

    handles = [module.register_forward_hook(hook) for module in model.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def traced(model: nn.Module, ids: torch.Tensor, **options: bool) -> float:
    """CPU seconds of the pass under our full trace."""
    with record(model, **options):
        return timed(lambda: model(ids))


def peers(model: nn.Module, ids: torch.Tensor) -> dict[str, Pass]:
    """One pass of a model under each tool."""
    from torch.distributed._tools.mem_tracker import MemTracker  # noqa: PLC0415

    def under(context: Callable[[], contextlib.AbstractContextManager[object]]) -> Pass:
        def run() -> float:
            with context():
                return timed(lambda: model(ids))

        return run

    def profiled() -> contextlib.AbstractContextManager[object]:
        return torch.profiler.profile(record_shapes=True, with_flops=True, profile_memory=True)

    def summarised() -> float:
        import torchinfo  # noqa: PLC0415

        options = {"verbose": 0, "cache_forward_pass": False}
        return timed(lambda: torchinfo.summary(model, input_data=ids, **options))

    def lensed() -> float:
        import torchlens  # noqa: PLC0415

        return timed(lambda: torchlens.trace(model, ids))

    def tracked() -> contextlib.AbstractContextManager[object]:
        tracker = MemTracker()
        tracker.track_external(model)
        return tracker

    return {
        "bare": lambda: timed(lambda: model(ids)),
        "shapetrace, all of it": lambda: traced(model, ids),
        "shapetrace, no operators": lambda: traced(model, ids, operators=False),
        "module forward hooks": under(lambda: hooked(model)),
        "an empty TorchDispatchMode": under(Empty),
        "torchinfo": summarised,
        "FlopCounterMode": under(lambda: FlopCounterMode(display=False)),
        "torch.profiler": under(profiled),
        "MemTracker": under(tracked),
        **({"torchlens": lensed} if find_spec("torchlens") else {}),
    }


def naming(model: nn.Module, ids: torch.Tensor) -> float:
    """CPU seconds of probing a model that is handed over: on its inputs' sizes."""
    subject = subject_of(model, CallInputs((ids,)), {"B": ids.shape[0], "n": ids.shape[1]})
    return timed(lambda: probed(subject))


def medians(passes: dict[str, Pass], rounds: int) -> dict[str, float]:
    """Median CPU seconds of each pass, interleaved, after a warm-up round."""
    seconds: dict[str, list[float]] = {name: [] for name in passes}
    working = dict(passes)
    for round_ in range(rounds + 2):
        for name, run in list(working.items()):
            try:
                taken = run()
            except Exception as error:  # noqa: BLE001 - a peer that fails is a result too
                print(f"  {name} fails on this model: {type(error).__name__}: {error}")
                del working[name]
                continue
            if round_ >= 2:
                seconds[name].append(taken)
    return {name: statistics.median(seconds[name]) for name in working}


def pair(settings: dict[str, int], folder: str) -> tuple[nn.Module, nn.Module]:
    """Transformers' GPT-2 and ours on the same random weights."""
    from transformers import GPT2Config, GPT2LMHeadModel  # noqa: PLC0415

    torch.manual_seed(0)
    ends = {"bos_token_id": 0, "eos_token_id": 0} if settings else {}
    theirs = GPT2LMHeadModel(GPT2Config(**settings, **ends, use_cache=False)).eval()
    theirs.save_pretrained(folder)
    return theirs, from_pretrained(folder, config=ModelConfig.from_file(folder))


def compare(name: str, rounds: int) -> None:
    """Print the two tables of one size."""
    import tempfile  # noqa: PLC0415

    settings, batch, length = SIZES[name]
    with tempfile.TemporaryDirectory() as folder:
        theirs, ours = pair(settings, folder)
    ids = torch.randint(0, 1000, (batch, length))
    assert torch.allclose(ours(ids), theirs(ids).logits, atol=1e-4)
    for title, model in (("our decoder", ours), ("transformers' GPT-2", theirs)):
        found = medians(peers(model, ids), rounds)
        print(f"\n{name}, {title} (B={batch}, n={length}): bare {found['bare'] * 1e3:.2f} ms")
        for tool, seconds in found.items():
            print(f"  {tool:28} {seconds / found['bare']:6.2f}")
        setup = timed(lambda model=model: record(model).__enter__().__exit__(None, None, None))
        print(f"  (set-up of our trace: {setup * 1e3:.0f} ms, not part of the pass)")
        print(f"  (names by probes of its sizes: {naming(model, ids):.2f} s, not part of the pass)")
    both = {"ours": lambda: timed(lambda: ours(ids)), "theirs": lambda: timed(lambda: theirs(ids))}
    found = medians(both, 2 * rounds)
    print(f"\n{name}, untraced: ours / transformers {found['ours'] / found['theirs']:.2f}")


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--only", choices=sorted(SIZES))
    options = parser.parse_args()
    torch.set_num_threads(1)
    with torch.no_grad():
        for name in [options.only] if options.only else SIZES:
            compare(name, options.rounds if name == "tiny" else max(options.rounds // 4, 3))


if __name__ == "__main__":
    main()
