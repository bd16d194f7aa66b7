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
    "weights": ("who reads how much from whom; rows sum to 1", "读取权重，每行之和为 1"),
    "head_output": ("values gathered by each head", "每个头汇总 V 的结果"),
    "concat": ("all heads side by side again", "所有头重新拼接"),
    "ffn_hidden": ("each token's widened features", "每个 token 扩张后的特征"),
    "logits": ("a score for every word of the vocabulary", "对整个词表的预测分数"),
    "mask": ("who may read whom", "谁可以看到谁"),
    "attention_mask": ("who may read whom", "谁可以看到谁"),
    "causal_mask": ("no token reads a later one", "不看未来的 token"),
    "padding_mask": ("which tokens are real, not padding", "哪些 token 不是填充"),
    "positions": ("each token's place in the sequence", "每个 token 在序列中的位置"),
    "embedded": ("each id's row of the embedding table", "每个编号在嵌入表中的一行"),
    "memory": ("the encoder's output, read by the decoder", "编码器输出，供解码器读取"),
    "normed": ("normalised before the sublayer", "进入子层前归一化"),
    "residual": ("the input on the shortcut", "走捷径的原输入"),
    "gate": ("how far each hidden feature opens", "各隐藏特征的门控"),
    "cos": ("rotary angles: cosines", "旋转角的余弦"),
    "sin": ("rotary angles: sines", "旋转角的正弦"),
    "loss": ("how unlikely the right tokens were", "正确 token 有多不可能"),
    "pooled": ("one vector for the whole text", "整段文本的一个向量"),
}


def meaning(name: str, language: Language) -> str:
    """What a tensor of this name is, in a few words; empty for a name the spec has not."""
    found = _MEANINGS.get(name)
    if found is None:
        return ""
    english, chinese = found
    return chinese if language == "zh" else english
