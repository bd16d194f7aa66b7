"""Failures of recurrent nets, attention and positions, as people reported them."""

import torch
from reports import f, ids, reported, yes
from torch import nn
from torch.nn import functional as F


@reported(
    f(3, 5, 4),
    axes=[(1, "self.hidden", 8), (0, "x", 3)],
    origins=["argument `x`"],
)
class LastBatchIsSmaller(nn.Module):
    """A state made once for the usual batch, and the last batch of an epoch."""

    def __init__(self, batch=8):
        super().__init__()
        self.gru = nn.GRU(4, 6, batch_first=True)
        self.hidden = torch.zeros(1, batch, 6)

    def forward(self, x):
        out, self.hidden = self.gru(x, self.hidden)
        return out


@reported(f(3, 5, 4), axes=[(0, "h0", 2)], words=["4"])
class StateOfOneDirection(nn.Module):
    """Bidirectional, and the state is for one direction."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 6, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        h0 = torch.zeros(self.lstm.num_layers, x.size(0), 6)
        c0 = torch.zeros(self.lstm.num_layers, x.size(0), 6)
        out, _ = self.lstm(x, (h0, c0))
        return out


@reported(f(3, 4), axes=[(1, "state", 5)], words=["6"])
class CellState(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(4, 6)

    def forward(self, x):
        state = torch.zeros(x.shape[0], 5)
        return self.cell(x, state)


@reported(f(2, 3, 5, 4), words=["`x` has 4 axes"])
class FramesIntoRecurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 6, batch_first=True)

    def forward(self, x):
        out, _ = self.rnn(x)
        return out


@reported(f(3, 5, 4), axes=[(0, "self.gru(x)[1]", 1)], words=["2 names"])
class GruIsNoLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 6, batch_first=True)

    def forward(self, x):
        h, c = self.gru(x)[1]
        return h + c


@reported(
    f(2, 12, 8),
    axes=[(1, "x", 12), (1, "self.pe[:, :x.size(1)]", 10)],
    origins=["longest", "argument `x`"],
)
class SinesTooShort(nn.Module):
    def __init__(self, longest=10):
        super().__init__()
        self.register_buffer("pe", torch.zeros(1, longest, 8))

    def forward(self, x):
        return x + self.pe[:, : x.size(1)]


@reported(
    ids(2, 16, below=5),
    words=["`places` holds 0 to 15", "`self.positions` has rows 0 to 11"],
)
class PositionsTooFew(nn.Module):
    def __init__(self, longest=12):
        super().__init__()
        self.words = nn.Embedding(5, 8)
        self.positions = nn.Embedding(longest, 8)

    def forward(self, ids):
        places = torch.arange(ids.shape[1])
        return self.words(ids) + self.positions(places)


@reported(
    ids(3, 11, below=5),
    axes=[(1, "self.kinds", 8)],
    words=["11"],
    origins=["axis 1 of argument `ids`"],
)
class TokenTypes(nn.Module):
    """A buffer of token types, expanded to a batch of longer texts."""

    def __init__(self):
        super().__init__()
        self.register_buffer("kinds", torch.zeros(1, 8, dtype=torch.long))

    def forward(self, ids):
        B, n = ids.shape
        return self.kinds.expand(B, n)


@reported(
    f(2, 8, 5, 4),
    f(2, 2, 5, 4),
    axes=[(1, "q", 8), (1, "k.transpose(-2, -1)", 2)],
    origins=["argument `k`"],
)
class FewerKeyHeads(nn.Module):
    """Grouped queries whose keys were not repeated."""

    def forward(self, q, k):
        scores = q @ k.transpose(-2, -1)
        return scores.softmax(-1)


@reported(
    f(2, 4, 6, 8),
    yes(2, 6),
    axes=[(0, "mask", 2), (2, "x", 6)],
    origins=["argument `mask`"],
)
class PaddingIntoSdpa(nn.Module):
    """A padding mask of batch and keys where queries and keys are compared."""

    def forward(self, x, mask):
        return F.scaled_dot_product_attention(x, x, x, attn_mask=mask)


@reported(
    f(2, 6, 8),
    yes(6, 2),
    axes=[(0, "padding", 6), (1, "padding", 2), (0, "x", 2), (1, "x", 6)],
)
class PaddingTransposed(nn.Module):
    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, padding):
        out, _ = self.attn(x, x, x, key_padding_mask=padding)
        return out


@reported(f(3, 5, 8), f(3, 5, 5), axes=[(0, "mask", 3)], words=["12"])
class MaskPerSample(nn.Module):
    """A mask of each sample, where one of each sample and head is wanted."""

    def __init__(self):
        super().__init__()
        self.attn = nn.MultiheadAttention(8, 4, batch_first=True)

    def forward(self, x, mask):
        out, _ = self.attn(x, x, x, attn_mask=mask)
        return out


@reported(
    f(2, 5, 12),
    axes=[(2, "x", 12), (1, "self.encoder.layers[0].self_attn.in_proj_weight", 16)],
    origins=["argument `x`"],
)
class EncoderOfAnotherWidth(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x):
        return self.encoder(x)


@reported(f(5, 2, 8), f(6, 3, 8), axes=[(1, "source", 2), (1, "target", 3)])
class BatchesOfTwoSides(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Transformer(8, 2, 1, 1, 16)

    def forward(self, source, target):
        return self.net(source, target)


@reported(
    f(2, 5, 8),
    f(2, 7, 8),
    f(2, 7, 5),
    axes=[*[(1, "mask == 0", 7), (2, "mask == 0", 5), (1, "scores", 5), (2, "scores", 7)]],
)
class MaskTheOtherWay(nn.Module):
    def forward(self, q, k, mask):
        scores = q @ k.mT
        scores = scores.masked_fill(mask == 0, float("-inf"))
        return scores.softmax(-1)


@reported(f(2, 5, 12), words=["3 pieces", "2 names"])
class ThreeForTwo(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(12, 24)

    def forward(self, x):
        gate, value = self.up(x).chunk(3, dim=-1)
        return gate.sigmoid() * value


@reported(f(2, 5, 12), axes=[(2, "x", 12)], words=["8 + 2 + 2 + 2", "14"])
class SectionsDoNotAddUp(nn.Module):
    def forward(self, x):
        q, k, v, g = torch.split(x, [8, 2, 2, 2], dim=-1)
        return q, k, v, g


@reported(
    f(2, 5, 8),
    f(2, 5, 6),
    axes=[(2, "x", 8), (2, "y", 6), (1, "x", 5), (1, "y", 5)],
)
class EllipsisSum(nn.Module):
    def forward(self, x, y):
        return torch.einsum("...id,...jd->...ij", x, y)


@reported(
    f(2, 5, 8),
    yes(5, 2),
    axes=[(0, "padding", 5), (1, "padding", 2), (0, "x", 2), (1, "x", 5)],
)
class EncoderPaddingTransposed(nn.Module):
    """Padding as sequence and batch for an encoder that takes the batch first."""

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)
        self.eval()

    @torch.no_grad()
    def forward(self, x, padding):
        return self.encoder(x, src_key_padding_mask=padding)


@reported(
    f(2, 5, 8),
    f(4, 4),
    axes=[(0, "mask", 4), (1, "x", 5)],
)
class EncoderMaskTooSmall(nn.Module):
    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, 1)

    def forward(self, x, mask):
        return self.encoder(x, mask=mask)


@reported(f(4, 6), words=["`x` has 2 axes", "axis 2 is asked for"])
class MeanOverPixels(nn.Module):
    def forward(self, x):
        return x.mean(dim=2)


@reported(f(4, 6), words=["`x` has 2 axes", "3 are put in order"])
class PermutedTooFar(nn.Module):
    def forward(self, x):
        return x.permute(0, 2, 1)


@reported(f(2, 5, 8), words=["`self.attend(x)` is None"])
class NothingReturned(nn.Module):
    """A helper that forgot its return."""

    def attend(self, x):
        x.softmax(-1)

    def forward(self, x):
        return x + self.attend(x)


@reported(f(2, 5, 8), words=["never ends"])
class CallsItself(nn.Module):
    def forward(self, x):
        return self.block(x)

    def block(self, x):
        return self.forward(x * 2)
