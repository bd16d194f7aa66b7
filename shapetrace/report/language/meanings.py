"""What the tensors of a Transformer mean, by the names that the spec gives them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.report.language.words import Language

_NAMES = re.compile(r"[A-Za-z_]\w*")

# By name: the axes of which it must have one, and the meaning in English and in Chinese.
_MEANINGS: dict[str, tuple[str, str, str]] = {
    "token_ids": ("n m", "a row of vocabulary ids per sample", "每个样本的一串词表编号"),
    "target_ids": (
        "n m",
        "the target's ids, as the decoder reads them",
        "目标序列的编号，供解码器读取",
    ),
    "x": ("d_model", "one vector per token: the residual stream", "每个 token 一个向量：残差流"),
    "q": ("d_k", "query: what each token looks for", "查询：每个 token 要找什么"),
    "k": ("d_k", "key: what each token offers to be found by", "键：每个 token 供匹配的标签"),
    "v": ("d_k", "value: what is taken from a matched token", "值：匹配后被取走的内容"),
    "scores": ("h", "every token against every token, per head", "每个头内 token 两两的相关分数"),
    "head_output": ("h", "values gathered by each head", "每个头汇总 V 的结果"),
    "concat": ("d_model", "all heads side by side again", "所有头重新拼接"),
    "ffn_hidden": ("d_ff", "each token's widened features", "每个 token 扩张后的特征"),
    "logits": ("vocab_size", "a score for every word of the vocabulary", "对整个词表的预测分数"),
    "weights": ("h", "who reads how much from whom; rows sum to 1", "读取权重，每行之和为 1"),
    "change": ("d_model", "what the sublayer adds to the stream", "子层对残差流的修正"),
    "visible": ("n m", "who may read whom", "谁可以看到谁"),
    "memory_visible": ("n m", "which source tokens may be read", "可以读取哪些源 token"),
    "blind": ("n m", "tokens that may read nobody", "什么都看不到的 token"),
    "mask": ("n m", "which tokens are real, not padding", "哪些 token 不是填充"),
    "attention_mask": ("n m", "which tokens are real, not padding", "哪些 token 不是填充"),
    "target_mask": ("n m", "which target tokens are real", "目标序列中哪些 token 不是填充"),
    "memory_mask": ("n m", "which source tokens are real", "源序列中哪些 token 不是填充"),
    "padding_mask": ("n m", "which tokens are real, not padding", "哪些 token 不是填充"),
    "causal_mask": ("n m", "no token reads a later one", "不看未来的 token"),
    "memory": ("d_model", "the encoder's output, read by the decoder", "编码器输出，供解码器读取"),
    "positions": ("d_model", "a vector for each place in the sequence", "每个位置的向量"),
    "position": ("n m", "places in the sequence: 0, 1, 2, ...", "序列中的位置：0、1、2……"),
    "angles": ("n m", "place times frequency", "位置乘以频率"),
    "frequencies": ("", "how fast each feature turns with the place", "各特征随位置转动的快慢"),
    "even": ("d_model", "which features take the sine", "哪些特征取正弦"),
    "rotation": ("n m", "rotary angles: cosines and sines", "旋转角的余弦和正弦"),
    "cosines": ("n m", "rotary angles: cosines", "旋转角的余弦"),
    "sines": ("n m", "rotary angles: sines", "旋转角的正弦"),
    "shared_k": ("d_k", "keys, repeated for the heads that share them", "共享的键，复制给各查询头"),
    "shared_v": (
        "d_k",
        "values, repeated for the heads that share them",
        "共享的值，复制给各查询头",
    ),
    "gate": ("d_ff", "how far each hidden feature opens", "各隐藏特征的门控"),
    "hidden": ("d_model", "one vector per token, in context", "每个 token 的上下文表示"),
    "token_type_ids": (
        "n m",
        "which of the two texts a token is in",
        "token 属于两段文本中的哪一段",
    ),
    "pooled": ("d_model", "one vector for the whole text", "整段文本的一个向量"),
    "left": (
        "n m",
        "which tokens stand no later: the causal mask",
        "哪些 token 不在其后：因果掩码",
    ),
    "ids": ("n m", "a row of vocabulary ids per sample", "每个样本的一串词表编号"),
    "output": ("d_model", "what leaves the layer, per token", "该层对每个 token 的输出"),
    "loss": ("", "how unlikely the right tokens were", "正确 token 有多不可能"),
}


def meaning(name: str, dims: str, language: Language) -> str:
    """What a tensor is, in a few words; empty for one that the spec has not.

    A name alone says little: another model's `x` may be a picture. So the named shape must
    have an axis that makes the name mean what the spec says.

    Args:
        name: The tensor's name.
        dims: Its named shape.
        language: Of the words.
    """
    axes, english, chinese = _MEANINGS.get(name, ("", "", ""))
    if axes and not {*axes.split()} & {*_NAMES.findall(dims)}:
        return ""
    return chinese if language == "zh" else english
