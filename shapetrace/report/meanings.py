"""What the tensors of a Transformer mean, by the names that the spec gives them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shapetrace.report.words import Language

_MEANINGS: dict[str, tuple[str, str]] = {
    "token_ids": ("a row of vocabulary ids per sample", "每个样本的一串词表编号"),
    "target_ids": ("the target's ids, shifted right", "目标序列的编号（右移一位）"),
    "x": ("one vector per token: the residual stream", "每个 token 一个向量：残差流"),
    "q": ("query: what each token looks for", "查询：每个 token 要找什么"),
    "k": ("key: what each token offers to be found by", "键：每个 token 供匹配的标签"),
    "v": ("value: what is taken from a matched token", "值：匹配后被取走的内容"),
    "scores": ("every token against every token, per head", "每个头内 token 两两的相关分数"),
    "head_output": ("values gathered by each head", "每个头汇总 V 的结果"),
    "concat": ("all heads side by side again", "所有头重新拼接"),
    "ffn_hidden": ("each token's widened features", "每个 token 扩张后的特征"),
    "logits": ("a score for every word of the vocabulary", "对整个词表的预测分数"),
    "weights": ("who reads how much from whom; rows sum to 1", "读取权重，每行之和为 1"),
    "change": ("what the sublayer adds to the stream", "子层对残差流的修正"),
    "visible": ("who may read whom", "谁可以看到谁"),
    "memory_visible": ("which source tokens may be read", "可以读取哪些源 token"),
    "blind": ("tokens that may read nobody", "什么都看不到的 token"),
    "mask": ("which tokens are real, not padding", "哪些 token 不是填充"),
    "attention_mask": ("which tokens are real, not padding", "哪些 token 不是填充"),
    "target_mask": ("which target tokens are real", "目标序列中哪些 token 不是填充"),
    "memory_mask": ("which source tokens are real", "源序列中哪些 token 不是填充"),
    "padding_mask": ("which tokens are real, not padding", "哪些 token 不是填充"),
    "causal_mask": ("no token reads a later one", "不看未来的 token"),
    "memory": ("the encoder's output, read by the decoder", "编码器输出，供解码器读取"),
    "positions": ("a vector for each place in the sequence", "每个位置的向量"),
    "position": ("places in the sequence: 0, 1, 2, ...", "序列中的位置：0、1、2……"),
    "angles": ("place times frequency", "位置乘以频率"),
    "frequencies": ("how fast each feature turns with the place", "各特征随位置转动的快慢"),
    "even": ("which features take the sine", "哪些特征取正弦"),
    "rotation": ("rotary angles: cosines and sines", "旋转角的余弦和正弦"),
    "cosines": ("rotary angles: cosines", "旋转角的余弦"),
    "sines": ("rotary angles: sines", "旋转角的正弦"),
    "shared_k": ("keys, repeated for the heads that share them", "共享的键，复制给各查询头"),
    "shared_v": ("values, repeated for the heads that share them", "共享的值，复制给各查询头"),
    "gate": ("how far each hidden feature opens", "各隐藏特征的门控"),
    "hidden": ("one vector per token, in context", "每个 token 的上下文表示"),
    "token_type_ids": ("which of the two texts a token is in", "token 属于两段文本中的哪一段"),
    "pooled": ("one vector for the whole text", "整段文本的一个向量"),
    "loss": ("how unlikely the right tokens were", "正确 token 有多不可能"),
}


def meaning(name: str, language: Language) -> str:
    """What a tensor of this name is, in a few words; empty for a name the spec has not."""
    found = _MEANINGS.get(name)
    if found is None:
        return ""
    english, chinese = found
    return chinese if language == "zh" else english
