"""How tracing grows with the model: layers, and modules.

    python -m tests.benchmarks.scaling

Prints CPU time per layer and per module of the traced pass and of all work after it, at
sizes that double; a flat last column is linear growth.
"""

from __future__ import annotations

import time

import torch
from torch import nn

from shapetrace.capture import record
from shapetrace.cost import summarise


class Layer(nn.Module):
    """A small residual block."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.up = nn.Linear(width, 2 * width)
        self.down = nn.Linear(2 * width, width)

    def forward(self, x):
        return x + self.down(self.up(self.norm(x)).relu())


class Deep(nn.Module):
    """Layers one after the other."""

    def __init__(self, layers: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(8) for _ in range(layers))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


class Wide(nn.Module):
    """Modules of which each is another: no call is equal to an earlier one."""

    def __init__(self, modules: int) -> None:
        super().__init__()
        self.parts = nn.ModuleList(nn.Linear(4, 4, bias=bool(i % 2)) for i in range(modules))

    def forward(self, x):
        return torch.stack([part(x) for part in self.parts]).sum(0)


def measure(model: nn.Module, x: torch.Tensor) -> tuple[float, float]:
    """CPU seconds of making the recorder and running, and of the trace and its summary."""
    start = time.process_time()
    with torch.no_grad(), record(model) as recording:
        model(x)
    ran = time.process_time()
    summarise(recording.trace)
    return ran - start, time.process_time() - ran


def main() -> None:
    """Run the benchmark."""
    torch.set_num_threads(1)
    curves = (
        ("layers", Deep, 8, (125, 250, 500, 1000)),
        ("modules", Wide, 4, (2500, 5000, 10000, 20000)),
    )
    for name, build, width, sizes in curves:
        print(f"{name:>8}   traced    after   microseconds per one of {name}")
        for size in sizes:
            run, after = measure(build(size).eval(), torch.randn(2, width))
            print(f"{size:8} {run:7.2f}s {after:7.2f}s {(run + after) / size * 1e6:12.0f}")


if __name__ == "__main__":
    main()
