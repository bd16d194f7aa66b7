"""A Transformer that is annotated everywhere, to be annotated wrongly by the tests."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class Attention(nn.Module):
    def __init__(self, d_model, h, d_k):
        super().__init__()
        self.h, self.d_k = h, d_k
        self.wq, self.wk, self.wv = (nn.Linear(d_model, h * d_k) for _ in range(3))
        self.wo = nn.Linear(h * d_k, d_model)

    def split(
        self, flat: Float[Tensor, "B n {self.h}*{self.d_k}"]
    ) -> Float[Tensor, "B {self.h} n {self.d_k}"]:
        return flat.unflatten(-1, (self.h, self.d_k)).transpose(1, 2)

    def forward(
        self, x: Float[Tensor, "B n d_model"], visible: Bool[Tensor, "1 1 n n"]
    ) -> Float[Tensor, "B n d_model"]:
        q: Float[Tensor, "B h n d_k"] = self.split(self.wq(x))
        k: Float[Tensor, "B h n d_k"] = self.split(self.wk(x))
        v: Float[Tensor, "B h n d_k"] = self.split(self.wv(x))
        scores: Float[Tensor, "B h n n"] = q @ k.transpose(-2, -1)
        weights: Float[Tensor, "B h n n"] = scores.masked_fill(~visible, -1e9).softmax(-1)
        joined: Float[Tensor, "B n h*d_k"] = (weights @ v).transpose(1, 2).flatten(2)
        return self.wo(joined)


class Block(nn.Module):
    def __init__(self, d_model, h, d_k, d_ff):
        super().__init__()
        self.attention = Attention(d_model, h, d_k)
        self.w1, self.w2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(
        self, x: Float[Tensor, "B n d_model"], visible: Bool[Tensor, "1 1 n n"]
    ) -> Float[Tensor, "B n d_model"]:
        change: Float[Tensor, "B n d_model"] = self.attention(x, visible)
        hidden: Float[Tensor, "B n d_ff"] = self.w1(x + change).relu()
        return x + self.w2(hidden)


class Net(nn.Module):
    def __init__(
        self, d_model: int = 16, h: int = 2, d_k: int = 8, d_ff: int = 24, vocab_size: int = 50
    ):
        super().__init__()
        self.embed = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(Block(d_model, h, d_k, d_ff) for _ in range(1))

    def forward(self, ids: Int[Tensor, "B n"]) -> Float[Tensor, "B n vocab_size"]:
        n = ids.shape[1]
        visible: Bool[Tensor, "1 1 n n"] = torch.ones(1, 1, n, n).tril().bool()
        x: Float[Tensor, "B n d_model"] = self.embed(ids)
        for block in self.blocks:
            x = block(x, visible)
        mean: Float[Tensor, "B d_model"] = x.mean(1)
        gram: Float[Tensor, "d_model d_model"] = mean.mT @ mean
        return (x @ gram) @ self.embed.weight.mT
