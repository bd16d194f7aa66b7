"""Trained weights: a Hugging Face directory into our model."""

from __future__ import annotations

from itertools import groupby
from pathlib import Path

import torch
from torch import Tensor

from shapetrace.model.checkpoints.names import NAMES, TIED_HEADS, ParameterNames, TensorSource
from shapetrace.model.config import ModelConfig
from shapetrace.model.errors import ModelError, did_you_mean
from shapetrace.model.files.json_file import read_json
from shapetrace.model.files.shards import opened, tensor_files
from shapetrace.model.layers.stack import Transformer
from shapetrace.model.transformer import build


def from_pretrained(
    path: str | Path,
    config: ModelConfig | None = None,
    device: torch.device | str = "cpu",
    dtype: torch.dtype | None = None,
) -> Transformer:
    """A model with the weights of a directory, ready to use (in evaluation mode).

    Args:
        path: A directory with ``config.json`` and ``model.safetensors``, or its shards.
        config: The directory's configuration with something changed that needs no other
            weights (`attention`, `dropout`); read from the directory when None.
        device: Where to put the weights.
        dtype: Of the parameters; as the file keeps them when None.

    Raises:
        ModelError: A file is missing or damaged; a tensor is missing, surplus, or of
            another shape than the configuration says.
    """
    directory = Path(path)
    if not directory.is_dir():
        raise ModelError(f"{directory} is not a directory with config.json and model.safetensors")
    config = ModelConfig.from_file(directory) if config is None else config
    model = build(config, device="meta")
    state = _state(model, _names(directory), directory, torch.device(device), dtype)
    model.load_state_dict(state, assign=True, strict=False)
    model.tie()
    return model.eval()


def _names(directory: Path) -> ParameterNames:
    family = read_json(directory / "config.json").get("model_type")
    if not isinstance(family, str) or family not in NAMES:
        raise ModelError(f"no model_type {family!r}: {did_you_mean(str(family), NAMES)}")
    return NAMES[family]


def _state(
    model: Transformer,
    names: ParameterNames,
    directory: Path,
    device: torch.device,
    dtype: torch.dtype | None,
) -> dict[str, Tensor]:
    """A tensor for each parameter, after checking that the file has them and no others."""
    files = tensor_files(directory)
    present = names.present(files)
    expected = dict(model.named_parameters())  # a tied parameter once, by its first name
    sources = {name: names.source(name) for name in expected}
    _check_names(directory, names, present, sources, tied=model.config.tie_embeddings)
    state: dict[str, Tensor] = {}

    def file_of(name: str) -> Path:
        return files[present[sources[name].name]]

    for path, group in groupby(sorted(sources, key=lambda name: str(file_of(name))), file_of):
        with opened(path, device=str(device)) as file:
            for name in group:
                key = present[sources[name].name]
                tensor = _fitted(file.get_tensor(key), sources[name], key, expected[name], path)
                state[name] = tensor if dtype is None else tensor.to(dtype)
    return state


def _check_names(
    directory: Path,
    names: ParameterNames,
    present: dict[str, str],
    sources: dict[str, TensorSource],
    *,
    tied: bool,
) -> None:
    used = {source.name for source in sources.values()}
    missing = sorted(used - present.keys())
    if missing:
        known = present.values()
        raise ModelError(
            f"{directory} has no tensor {_listed(missing)}; "
            f"it is not a complete model of this configuration ({len(known)} tensors found)"
        )
    surplus = [
        present[name]
        for name in sorted(present.keys() - used)
        if not names.ignores(name) and not (tied and name in TIED_HEADS)
    ]
    if surplus:
        raise ModelError(
            f"{directory} has a tensor that the model does not: {_listed(surplus)}; "
            "does config.json belong to these weights?"
        )


def _fitted(found: Tensor, source: TensorSource, key: str, expected: Tensor, path: Path) -> Tensor:
    """The tensor as the parameter wants it: transposed, its third, and of its shape."""
    if not found.is_floating_point():
        raise ModelError(
            f"tensor {key!r} in {path} holds {str(found.dtype).removeprefix('torch.')}; "
            "only weights in floating point can be used"
        )
    tensor = found.t() if source.transposed and found.dim() > 1 else found
    thirds = 1 if source.part is None else 3
    wanted = [expected.shape[0] * thirds, *expected.shape[1:]]
    if list(tensor.shape) != wanted:
        if source.transposed:
            wanted.reverse()
        raise ModelError(
            f"tensor {key!r} in {path} is {list(found.shape)}, "
            f"but the configuration makes it {wanted}"
        )
    if source.part is not None:
        tensor = tensor.chunk(thirds)[source.part]
    return tensor.contiguous()


def _listed(names: list[str]) -> str:
    more = len(names) - 1
    return repr(names[0]) + (f" (and {more} more)" if more else "")
