"""Where each of our parameters lies in a family's weights file.

Adding a family takes one `ParameterNames` here and its configuration in `files/huggingface.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from shapetrace.model.errors import ModelError


@dataclass(frozen=True)
class TensorSource:
    """A tensor in a file, and what to do with it.

    Attributes:
        name: Its name.
        transposed: Whether the file keeps matrices as [in, out] (GPT-2's Conv1D).
        part: Which third of the output axis it is; None for all of it.
    """

    name: str
    transposed: bool = False
    part: int | None = None


@dataclass(frozen=True)
class ParameterNames:
    """The names of a family.

    Attributes:
        prefix: What the file's names may begin with, or not.
        parameters: Our parameter to its source; ``{i}`` is the number of the block.
        ignored: Patterns of names that hold no parameter of ours: fixed buffers, copies of
            tied matrices, heads that we do not have.
    """

    prefix: str
    parameters: Mapping[str, TensorSource | str]
    ignored: tuple[str, ...] = field(default=())

    def source(self, parameter: str) -> TensorSource:
        """Where one of our parameters lies, by a name without prefix.

        Raises:
            ModelError: The family has no such parameter.
        """
        number = re.search(r"\.(\d+)\.", parameter)
        i = number.group(1) if number else ""
        known = parameter.replace(f".{i}.", ".{i}.", 1) if number else parameter
        if known not in self.parameters:
            raise ModelError(f"this family of models has no place for parameter {parameter!r}")
        source = self.parameters[known]
        if isinstance(source, str):
            source = TensorSource(source)
        return replace(source, name=source.name.replace("{i}", i))

    def ignores(self, name: str) -> bool:
        """Whether a tensor in the file, named without prefix, holds nothing of ours."""
        return any(re.fullmatch(pattern, name) for pattern in self.ignored)

    def present(self, keys: Iterable[str]) -> dict[str, str]:
        """The file's names, by their names without prefix and in today's spelling."""
        return {_modern(key.removeprefix(self.prefix)): key for key in keys}


class OwnNames(ParameterNames):
    """Our own layout: the file's names are the parameters' own."""

    def source(self, parameter: str) -> TensorSource:
        """The parameter itself."""
        return TensorSource(parameter)


def _modern(name: str) -> str:
    """Early BERT files, converted from TensorFlow, call a norm's parameters gamma and beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace(
        "LayerNorm.beta", "LayerNorm.bias"
    )


GPT2 = ParameterNames(
    prefix="transformer.",
    parameters={
        "embedding.token.weight": "wte.weight",
        "embedding.position.weight": "wpe.weight",
        "blocks.{i}.attention_norm.weight": "h.{i}.ln_1.weight",
        "blocks.{i}.attention_norm.bias": "h.{i}.ln_1.bias",
        "blocks.{i}.attention.wq": TensorSource(
            "h.{i}.attn.c_attn.weight", transposed=True, part=0
        ),
        "blocks.{i}.attention.bq": TensorSource("h.{i}.attn.c_attn.bias", part=0),
        "blocks.{i}.attention.wk": TensorSource(
            "h.{i}.attn.c_attn.weight", transposed=True, part=1
        ),
        "blocks.{i}.attention.bk": TensorSource("h.{i}.attn.c_attn.bias", part=1),
        "blocks.{i}.attention.wv": TensorSource(
            "h.{i}.attn.c_attn.weight", transposed=True, part=2
        ),
        "blocks.{i}.attention.bv": TensorSource("h.{i}.attn.c_attn.bias", part=2),
        "blocks.{i}.attention.output.wo": TensorSource("h.{i}.attn.c_proj.weight", transposed=True),
        "blocks.{i}.attention.output.bo": "h.{i}.attn.c_proj.bias",
        "blocks.{i}.feedforward_norm.weight": "h.{i}.ln_2.weight",
        "blocks.{i}.feedforward_norm.bias": "h.{i}.ln_2.bias",
        "blocks.{i}.feedforward.w_up": TensorSource("h.{i}.mlp.c_fc.weight", transposed=True),
        "blocks.{i}.feedforward.b_up": "h.{i}.mlp.c_fc.bias",
        "blocks.{i}.feedforward.w_down": TensorSource("h.{i}.mlp.c_proj.weight", transposed=True),
        "blocks.{i}.feedforward.b_down": "h.{i}.mlp.c_proj.bias",
        "final_norm.weight": "ln_f.weight",
        "final_norm.bias": "ln_f.bias",
        "head.weight": "lm_head.weight",
    },
    # The causal mask and its fill value, which old files keep as buffers.
    ignored=(r"h\.\d+\.attn\.bias", r"h\.\d+\.attn\.masked_bias"),
)

LLAMA = ParameterNames(
    prefix="model.",
    parameters={
        "embedding.token.weight": "embed_tokens.weight",
        "blocks.{i}.attention_norm.weight": "layers.{i}.input_layernorm.weight",
        "blocks.{i}.attention.wq": "layers.{i}.self_attn.q_proj.weight",
        "blocks.{i}.attention.bq": "layers.{i}.self_attn.q_proj.bias",
        "blocks.{i}.attention.wk": "layers.{i}.self_attn.k_proj.weight",
        "blocks.{i}.attention.bk": "layers.{i}.self_attn.k_proj.bias",
        "blocks.{i}.attention.wv": "layers.{i}.self_attn.v_proj.weight",
        "blocks.{i}.attention.bv": "layers.{i}.self_attn.v_proj.bias",
        "blocks.{i}.attention.output.wo": "layers.{i}.self_attn.o_proj.weight",
        "blocks.{i}.feedforward_norm.weight": "layers.{i}.post_attention_layernorm.weight",
        "blocks.{i}.feedforward.w_gate": "layers.{i}.mlp.gate_proj.weight",
        "blocks.{i}.feedforward.w_up": "layers.{i}.mlp.up_proj.weight",
        "blocks.{i}.feedforward.w_down": "layers.{i}.mlp.down_proj.weight",
        "final_norm.weight": "norm.weight",
        "head.weight": "lm_head.weight",
    },
    # Rotary frequencies, which old files keep as buffers.
    ignored=(r"layers\.\d+\.self_attn\.rotary_emb\.inv_freq", r"rotary_emb\.inv_freq"),
)

BERT = ParameterNames(
    prefix="bert.",
    parameters={
        "embedding.token.weight": "embeddings.word_embeddings.weight",
        "embedding.position.weight": "embeddings.position_embeddings.weight",
        "embedding.token_type.weight": "embeddings.token_type_embeddings.weight",
        "embedding.norm.weight": "embeddings.LayerNorm.weight",
        "embedding.norm.bias": "embeddings.LayerNorm.bias",
        "blocks.{i}.attention.wq": "encoder.layer.{i}.attention.self.query.weight",
        "blocks.{i}.attention.bq": "encoder.layer.{i}.attention.self.query.bias",
        "blocks.{i}.attention.wk": "encoder.layer.{i}.attention.self.key.weight",
        "blocks.{i}.attention.bk": "encoder.layer.{i}.attention.self.key.bias",
        "blocks.{i}.attention.wv": "encoder.layer.{i}.attention.self.value.weight",
        "blocks.{i}.attention.bv": "encoder.layer.{i}.attention.self.value.bias",
        "blocks.{i}.attention.output.wo": "encoder.layer.{i}.attention.output.dense.weight",
        "blocks.{i}.attention.output.bo": "encoder.layer.{i}.attention.output.dense.bias",
        "blocks.{i}.attention_norm.weight": "encoder.layer.{i}.attention.output.LayerNorm.weight",
        "blocks.{i}.attention_norm.bias": "encoder.layer.{i}.attention.output.LayerNorm.bias",
        "blocks.{i}.feedforward.w_up": "encoder.layer.{i}.intermediate.dense.weight",
        "blocks.{i}.feedforward.b_up": "encoder.layer.{i}.intermediate.dense.bias",
        "blocks.{i}.feedforward.w_down": "encoder.layer.{i}.output.dense.weight",
        "blocks.{i}.feedforward.b_down": "encoder.layer.{i}.output.dense.bias",
        "blocks.{i}.feedforward_norm.weight": "encoder.layer.{i}.output.LayerNorm.weight",
        "blocks.{i}.feedforward_norm.bias": "encoder.layer.{i}.output.LayerNorm.bias",
        "pooler.w_dense": "pooler.dense.weight",
        "pooler.b_dense": "pooler.dense.bias",
        "head.w_dense": "cls.predictions.transform.dense.weight",
        "head.b_dense": "cls.predictions.transform.dense.bias",
        "head.norm.weight": "cls.predictions.transform.LayerNorm.weight",
        "head.norm.bias": "cls.predictions.transform.LayerNorm.bias",
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

NAMES: dict[str, ParameterNames] = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "mistral": LLAMA,
    "qwen2": LLAMA,
    "bert": BERT,
    "shapetrace": OwnNames(prefix="", parameters={}),
}
