"""Models as people post them in public questions, each broken in one place.

The line that fails is marked ``# breaks``.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class FlattenedImage(nn.Module):
    """The first linear layer does not fit what the convolutions leave."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)
        self.fc = nn.Linear(16 * 5 * 5, 10)

    def forward(self, x):
        x = F.relu(self.conv(x))
        x = torch.flatten(x, 1)
        return self.fc(x)  # breaks


class ForgottenTranspose(nn.Module):
    def forward(self, q, k):
        scores = q @ k  # breaks
        return scores.softmax(-1)


class WrongChannels(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(16, 4, 3))

    def forward(self, image):
        return self.features(image)  # breaks


class ChannelsLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)

    def forward(self, image):
        return self.conv(image)  # breaks


class SkipConnection(nn.Module):
    """A U-Net whose upsampled map misses the skip by one pixel."""

    def __init__(self):
        super().__init__()
        self.down = nn.Conv2d(4, 4, 3, stride=2)
        self.up = nn.ConvTranspose2d(4, 4, 2, stride=2)

    def forward(self, x):
        skip = x
        x = self.down(x)
        x = self.up(x)
        return torch.cat([x, skip], dim=1)  # breaks


class StackedSequences(nn.Module):
    def forward(self, first, second):
        return torch.stack([first, second])  # breaks


class HeadsThatDoNotDivide(nn.Module):
    def __init__(self, heads=3):
        super().__init__()
        self.heads = heads

    def forward(self, x):
        B, n, d = x.shape
        return x.view(B, n, self.heads, d // self.heads)  # breaks


class ViewAfterTranspose(nn.Module):
    def forward(self, x):
        x = x.transpose(1, 2)
        return x.view(x.shape[0], -1)  # breaks


class MaskedScores(nn.Module):
    def forward(self, scores, mask):
        scores = scores + mask  # breaks
        return scores.softmax(-1)


class Residual(nn.Module):
    def __init__(self):
        super().__init__()
        self.mix = nn.Linear(8, 6)

    def forward(self, x):
        mixed = self.mix(x)
        return x + mixed  # breaks


class Contraction(nn.Module):
    def forward(self, q, k):
        return torch.einsum("bhid,bhjd->bhij", q, k)  # breaks


class VocabularyTooSmall(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    def forward(self, ids):
        return self.embed(ids)  # breaks


class FloatIndices(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)

    def forward(self, ids):
        return self.embed(ids)  # breaks


class MixedPrecision(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        half = x.half()
        return self.fc(half)  # breaks


class ForgottenDevice(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 8)

    def forward(self, x):
        bias = torch.zeros(8, device="meta")
        return torch.addmm(bias, x, self.fc.weight)  # breaks


class Normalised(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(16)

    def forward(self, x):
        return self.norm(x)  # breaks


class BatchNormed(nn.Module):
    def __init__(self):
        super().__init__()
        self.bn = nn.BatchNorm1d(16)

    def forward(self, x):
        return self.bn(x)  # breaks


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(10, 20, batch_first=True)

    def forward(self, x):
        out, _ = self.lstm(x)  # breaks
        return out


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 5)

    def forward(self, x, labels):
        logits = self.fc(x)
        return F.cross_entropy(logits, labels)  # breaks


class BatchedProduct(nn.Module):
    def forward(self, attention, values):
        return torch.bmm(attention, values)  # breaks


class Helper(nn.Module):
    """The failure lies in a function that the model calls."""

    def forward(self, q, k):
        return scaled(q, k, 8**-0.5)


def scaled(queries, keys, scale):
    scores = torch.matmul(queries, keys.transpose(-2, -1))  # breaks
    return scores * scale


class Block(nn.Module):
    def __init__(self, width, out):
        super().__init__()
        self.proj = nn.Linear(width, out)

    def forward(self, hidden):
        return F.gelu(self.proj(hidden))  # breaks


class Checkpointed(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(8, 8), Block(8, 12), Block(8, 8)])

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return x


class Unpacked(nn.Module):
    def forward(self, image):
        B, C, H, W = image.shape  # breaks
        return image.reshape(B, C, H * W)


class OutOfBounds(nn.Module):
    def forward(self, x):
        return x[:, 7]  # breaks


class Checked(nn.Module):
    def __init__(self):
        super().__init__()
        self.patch = 16

    def forward(self, image):
        if image.shape[-1] % self.patch:
            raise ValueError("image size must be a multiple of the patch size")  # breaks
        return image


class Temporaries(nn.Module):
    """Operands that no variable holds."""

    def __init__(self):
        super().__init__()
        self.left = nn.Linear(8, 4)
        self.right = nn.Linear(8, 6)

    def forward(self, x):
        return torch.cat([self.left(x), self.right(x)], dim=0)  # breaks


class InPlace(nn.Module):
    def forward(self, x, update):
        x = x.clone()
        x += update  # breaks
        return x


class WrongGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x, w)
        return x @ w

    @staticmethod
    def backward(ctx, grad):
        x, w = ctx.saved_tensors
        return grad @ w, x.t() @ grad  # breaks


class OwnBackward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.ones(8, 5))

    def forward(self, x):
        return WrongGradient.apply(x, self.w)


class ChangedInPlace(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)

    def forward(self, x):
        h = torch.sigmoid(self.up(x))
        h += 1  # changes what sigmoid's backward needs
        return h.sum()


class WeightsChanged(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)
        self.down = nn.Linear(8, 8)

    def forward(self, x):
        loss = self.down(self.up(x)).sum()
        with torch.no_grad():
            self.down.weight.mul_(0.9)
        return loss


class FlatGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad.sum(-1)  # not the input's shape


class WrongGradientShape(nn.Module):
    def forward(self, x):
        return FlatGradient.apply(x).sum()


class NotANumber(nn.Module):
    def forward(self, x):
        return x * 2


class Detached(nn.Module):
    def forward(self, x):
        return (x.detach() * 2).sum()


class CrossWidths(nn.Module):
    def __init__(self):
        super().__init__()
        self.up = nn.Linear(8, 8)
        self.attn = nn.MultiheadAttention(8, 2, batch_first=True)

    def forward(self, x, memory):
        q = self.up(x)
        out, _ = self.attn(q, memory, memory)  # breaks
        return out


class FloatLabels(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 5)

    def forward(self, x, labels):
        logits = self.fc(x)
        return F.nll_loss(logits, labels)  # breaks


class FloatGather(nn.Module):
    def forward(self, x, places):
        return x.gather(1, places)  # breaks


class CompareChoice(nn.Module):
    def forward(self, x, y):
        return torch.where(x > 0, y, 0)  # breaks


class InvertedMask(nn.Module):
    def forward(self, mask, other, y):
        return y.masked_fill(~(mask & other), 0)  # breaks


class CrossedHeads(nn.Module):
    def forward(self, x, y):
        return F.scaled_dot_product_attention(x, y, y)  # breaks
