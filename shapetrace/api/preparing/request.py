"""What is asked for: a target and what it is to be run on, as the user wrote it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from shapetrace.errors import ShapetraceError


@dataclass(frozen=True, slots=True)
class Request:
    """What is to be run.

    Attributes:
        target: ``package.module:Class``, ``package.module:factory``, ``path/to/file.py:thing``.
        inputs: Input specs.
        inputs_file: Instead of specs, ``file.py:make_inputs``, a ``.pt`` or ``.safetensors``.
        arguments: ``key=value`` arguments of the constructor or factory.
        hf_config: A ``config.json`` or ``key=value`` fields, for a Hugging Face class.
        aliases: ``name=other`` names for dimensions.
        device: ``cpu``, ``cuda`` or ``meta``.
        seed: Of random weights and inputs.
        train: Run in training mode and with gradients.
        backward: Run the backward pass too, with gradients.
        check: Whether declared annotations are checked.
        dtype: Of the model's floating-point weights; ``auto`` for its own.
    """

    target: str
    inputs: Sequence[str] = ()
    inputs_file: str | None = None
    arguments: Sequence[str] = ()
    hf_config: Sequence[str] = ()
    aliases: Sequence[str] = ()
    device: str = "cpu"
    seed: int = 0
    train: bool = False
    check: bool = True
    dtype: str = "auto"
    backward: bool = False

    def require_inputs(self) -> None:
        """Refuse a request without inputs, for what has to run the model at several sizes.

        Raises:
            ShapetraceError: With an example.
        """
        if not self.inputs and self.inputs_file is None:
            raise ShapetraceError(
                f"no input is given for {self.target}; give --input, such as "
                "--input x:float32[B=2,n=16]"
            )


def read_aliases(texts: Sequence[str]) -> dict[str, str]:
    """The names to use in place of others.

    Raises:
        ShapetraceError: For a text that is no pair of names.
    """
    found = {}
    for text in texts:
        name, equals, other = (part.strip() for part in text.partition("="))
        if not equals or not name or not other.isidentifier():
            raise ShapetraceError(
                f"--alias {text!r} is not of the form name=other, such as hidden_size=d_model"
            )
        found[name] = other
    return found
