"""Watch a model of your own: no change to it, and its tensors by name.

python examples/watch_your_model.py
"""

import torch
from torch import Tensor, nn

import shapetrace


class Gate(nn.Module):
    """Lets a part of each feature through."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.open = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, features: Tensor) -> Tensor:
        opening = torch.sigmoid(self.open(features))
        widened = self.up(features) * opening
        return features + self.down(widened)


def main() -> None:
    model = Gate(width=24, hidden=40)
    features = torch.randn(2, 7, 24)
    print(shapetrace.trace(model, features, dims={"B": 2, "n": 7}))

    with shapetrace.record(model) as recording:  # any code, not only one call
        loss = model(features).square().mean()
    names = [recording.trace.sites[tensor.site].name for tensor in recording.trace.tensors]
    print("recorded:", ", ".join(dict.fromkeys(names)))
    print("loss:", tuple(loss.shape))


if __name__ == "__main__":
    main()
