"""Where each of our parameters lies in a family's weights file.

Adding a family takes one `Names` here and its configuration in `huggingface.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from shapetrace.model.errors import ModelError


@dataclass(frozen=True)
class Source:
    """A tensor in a file, and what to do with it.

    Attributes:
        name: Its name; for a module, without ``.weight`` or ``.bias``.
        transposed: Whether the file keeps matrices as [in, out] (GPT-2's Conv1D).
        part: Which third of the output axis it is; None for all of it.
    """

    name: str
    transposed: bool = False
    part: int | None = None


@dataclass(frozen=True)
class Names:
    """The names of a family.

    Attributes:
        prefix: What the file's names may begin with, or not.
        modules: Our module to its source; ``{i}`` is the number of the block.
        ignored: Patterns of names that hold no parameter of ours: fixed buffers, copies of
            tied matrices, heads that we do not have.
    """

    prefix: str
    modules: Mapping[str, Source | str]
    ignored: tuple[str, ...] = field(default=())

    def source(self, parameter: str) -> Source:
        """Where one of our parameters lies, by a name without prefix.

        Raises:
            ModelError: The family has no such parameter.
        """
        module, _, leaf = parameter.rpartition(".")
        number = re.search(r"\.(\d+)\.", module)
        i = number.group(1) if number else ""
        key = module.replace(f".{i}.", ".{i}.", 1) if number else module
        for known in (f"{key}.{leaf}", key):
            if known in self.modules:
                source = self.modules[known]
                source = Source(source) if isinstance(source, str) else source
                name = source.name.replace("{i}", i) + ("" if known != key else f".{leaf}")
                return Source(name, source.transposed and leaf == "weight", source.part)
        raise ModelError(f"this family of models has no place for parameter {parameter!r}")

    def ignores(self, name: str) -> bool:
        """Whether a tensor in the file, named without prefix, holds nothing of ours."""
        return any(re.fullmatch(pattern, name) for pattern in self.ignored)

    def present(self, keys: Iterable[str]) -> dict[str, str]:
        """The file's names, by their names without prefix and in today's spelling."""
        return {_modern(key.removeprefix(self.prefix)): key for key in keys}


class OwnNames(Names):
    """Our own layout: the file's names are the parameters' own."""

    def source(self, parameter: str) -> Source:
        """The parameter itself."""
        return Source(parameter)


def _modern(name: str) -> str:
    """Early BERT files, converted from TensorFlow, call a norm's parameters gamma and beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


_C_ATTN = "h.{i}.attn.c_attn"
GPT2 = Names(
    prefix="transformer.",
    modules={
        "embedding.token": "wte",
        "embedding.position": "wpe",
        "blocks.{i}.attention_norm": "h.{i}.ln_1",
        "blocks.{i}.attention.wq": Source(_C_ATTN, transposed=True, part=0),
        "blocks.{i}.attention.wk": Source(_C_ATTN, transposed=True, part=1),
        "blocks.{i}.attention.wv": Source(_C_ATTN, transposed=True, part=2),
        "blocks.{i}.attention.wo": Source("h.{i}.attn.c_proj", transposed=True),
        "blocks.{i}.feedforward_norm": "h.{i}.ln_2",
        "blocks.{i}.feedforward.w_up": Source("h.{i}.mlp.c_fc", transposed=True),
        "blocks.{i}.feedforward.w_down": Source("h.{i}.mlp.c_proj", transposed=True),
        "final_norm": "ln_f",
        "head": "lm_head",
    },
    # The causal mask and its fill value, which old files keep as buffers.
    ignored=(r"h\.\d+\.attn\.bias", r"h\.\d+\.attn\.masked_bias"),
)

LLAMA = Names(
    prefix="model.",
    modules={
        "embedding.token": "embed_tokens",
        "blocks.{i}.attention_norm": "layers.{i}.input_layernorm",
        "blocks.{i}.attention.wq": "layers.{i}.self_attn.q_proj",
        "blocks.{i}.attention.wk": "layers.{i}.self_attn.k_proj",
        "blocks.{i}.attention.wv": "layers.{i}.self_attn.v_proj",
        "blocks.{i}.attention.wo": "layers.{i}.self_attn.o_proj",
        "blocks.{i}.feedforward_norm": "layers.{i}.post_attention_layernorm",
        "blocks.{i}.feedforward.w_gate": "layers.{i}.mlp.gate_proj",
        "blocks.{i}.feedforward.w_up": "layers.{i}.mlp.up_proj",
        "blocks.{i}.feedforward.w_down": "layers.{i}.mlp.down_proj",
        "final_norm": "norm",
        "head": "lm_head",
    },
    # Rotary frequencies, which old files keep as buffers.
    ignored=(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq", r"rotary_emb\.inv_freq"),
)

BERT = Names(
    prefix="bert.",
    modules={
        "embedding.token": "embeddings.word_embeddings",
        "embedding.position": "embeddings.position_embeddings",
        "embedding.token_type": "embeddings.token_type_embeddings",
        "embedding.norm": "embeddings.LayerNorm",
        "blocks.{i}.attention.wq": "encoder.layer.{i}.attention.self.query",
        "blocks.{i}.attention.wk": "encoder.layer.{i}.attention.self.key",
        "blocks.{i}.attention.wv": "encoder.layer.{i}.attention.self.value",
        "blocks.{i}.attention.wo": "encoder.layer.{i}.attention.output.dense",
        "blocks.{i}.attention_norm": "encoder.layer.{i}.attention.output.LayerNorm",
        "blocks.{i}.feedforward.w_up": "encoder.layer.{i}.intermediate.dense",
        "blocks.{i}.feedforward.w_down": "encoder.layer.{i}.output.dense",
        "blocks.{i}.feedforward_norm": "encoder.layer.{i}.output.LayerNorm",
        "pooler.dense": "pooler.dense",
        "head.dense": "cls.predictions.transform.dense",
        "head.norm": "cls.predictions.transform.LayerNorm",
        "head.weight": "cls.predictions.decoder.weight",
        "head.bias": "cls.predictions.bias",
    },
    # Position numbers; the head's bias under its second name; next-sentence prediction.
    ignored=(
        r"embeddings\.position_ids",
        r"cls\.predictions\.decoder\.bias",
        r"cls\.seq_relationship\.(weight|bias)",
    ),
)

TIED_HEADS = ("lm_head.weight", "cls.predictions.decoder.weight")
"""Copies of the token embedding, which some files keep although the model ties them."""

NAMES: dict[str, Names] = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "bert": BERT,
    "shapetrace": OwnNames(prefix="", modules={}),
}
