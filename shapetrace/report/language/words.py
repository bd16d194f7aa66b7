"""The report's own words in English and Chinese: headings, totals, parts of a model."""

from __future__ import annotations

from typing import Literal, get_args

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = get_args(Language)

_CHINESE = {
    "tensor": "张量",
    "module": "模块",
    "operator": "算子",
    "named shape": "命名形状",
    "sizes": "大小",
    "dtype": "类型",
    "bytes": "字节",
    "FLOPs": "FLOPs",
    "meaning": "含义",
    "configuration": "配置",
    "run": "运行",
    "text": "文本",
    "target": "目标",
    "no target text was given: the text itself is the target": "未给目标文本：以原文为目标",
    "total": "合计",
    "parameters": "参数",
    "share": "占比",
    "part": "部分",
    "embedding": "嵌入",
    "attention": "注意力",
    "feed-forward": "前馈",
    "norm": "归一化",
    "head": "输出头",
    "other": "其他",
    "peak activations": "激活峰值",
    "wall time": "用时",
    "not counted": "未计入",
    "convention": "约定",
    "note": "注",
    "mismatch": "不符",
    "failed": "失败",
    "more": "更多",
    "nothing": "无",
    "nothing was recorded": "没有记录到张量",
    "one multiply-add is 2 FLOPs; a causal mask is not discounted": (
        "一次乘加计 2 FLOPs；因果掩码不打折扣"
    ),
    "columns not shown at this width": "此宽度下未显示的列",
    "? marks a statement of which some operators have no formula": ("? 表示该语句中有算子没有公式"),
    "`B?` is a name guessed from the axis's place in the input; `dims` gives others": (
        "`B?` 是按轴在输入中的位置猜测的名字；可用 `dims` 指定"
    ),
    "`width~` is an attribute that has the axis's size; no probe could move it": (
        "`width~` 是大小相同的属性名；没有探测能改变它"
    ),
    "parameter": "参数",
    "shape": "形状",
    "gradient": "梯度",
    "gradients": "梯度",
    "optimizer state": "优化器状态",
    "kept for the backward pass": "为反向传播保留",
    "largest": "最大的几项",
    "memory and work": "内存与计算量",
    "tied to": "共享自",
    "peak beyond the parameters": "参数之外的峰值",
    "the same before there is a state": "同上，优化器状态尚未建立时",
    "none seen": "未见",
    "FLOPs forward": "前向 FLOPs",
    "FLOPs backward": "反向 FLOPs",
    "pass": "阶段",
    "times": "次数",
    "n": "n",
    "m": "m",
    "encode": "编码",
    "prefill": "预填充",
    "decode": "解码",
    "tokens": "token 数",
    "tokens per second": "token/秒",
    "KV cache": "KV 缓存",
    "per token": "每 token",
    "FLOPs without the cache": "不用缓存的 FLOPs",
    "saved by the cache": "缓存节省",
    "counted from the operators": "由实际运行的算子计得",
    "counted from the closed form": "由公式计得",
    "counted from the closed form, the last position scored": "由公式计得，只给最后一个位置打分",
    "not known without values": "没有数值则不可知",
    "the text and its time": "文本及其用时",
    "mean of all heads": "所有头的平均",
    "read by": "查询者",
    "sum": "合计",
    "of": "/",
    "rows read, columns are read from": "行为查询者，列为被查询者",
    "rows": "行",
    "columns": "列",
    "shown": "显示",
    "the JSON has all": "JSON 中有全部",
    "shades from": "深浅，自",
    "may not look": "不可见",
    "farthest row sum from 1": "行和与 1 的最大偏差",
    "random": "随机",
    "none": "无",
    "forward, backward and update": "前向、反向与更新",
    "checkpoint": "检查点",
    "one step without values: the loss is not known": "只有形状没有数值的一步：损失未知",
    "nothing was left to train": "没有剩余的训练步骤",
}


def word(text: str, language: Language) -> str:
    """One of the report's own words in a language; what has no translation stays as it is."""
    return _CHINESE.get(text, text) if language == "zh" else text
