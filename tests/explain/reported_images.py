"""Failures of image nets and of reshaping, as people reported them."""

import torch
from reports import f, reported
from torch import nn
from torch.nn import functional as F


@reported(
    f(2, 1, 28, 28),
    axes=[(1, "x", 784), (1, "self.out.weight", 525)],
    origins=["in_features of `self.out`"],
)
class FlattenedPages(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(1, 4, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2))
        self.out = nn.Linear(525, 10)

    def forward(self, x):
        x = self.conv(x)
        x = x.view(x.size(0), -1)
        return self.out(x)


@reported(f(1, 28, 28), axes=[(0, "image", 1), (1, "self.stem[0].weight", 3)])
class GreyIntoColour(nn.Module):
    """One grey picture, without a batch, into a net for colour."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())

    def forward(self, image):
        return self.stem(image)


@reported(
    f(4, 6, 6),
    axes=[(0, "image", 4), (0, "self.mean", 3)],
    origins=["argument `image`", "buffer `mean`"],
)
class Transparent(nn.Module):
    """A PNG with transparency, normalised by the means of three colours."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(3, 1, 1))

    def forward(self, image):
        return image - self.mean


@reported(f(2, 10, 6), axes=[(1, "x", 10), (1, "self.conv.weight", 6)])
class FeaturesLast(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(6, 8, 3)

    def forward(self, x):
        return self.conv(x)


@reported(f(2, 16, 9, 9), axes=[(1, "x", 16)], words=["8"])
class Depthwise(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(8, 8, 3, groups=8)

    def forward(self, x):
        return self.conv(x)


@reported(
    f(1, 4, 7, 7),
    axes=[(2, "up", 6), (2, "skip", 7), (3, "up", 6), (3, "skip", 7)],
    origins=["argument `skip`"],
)
class OddUnet(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2)

    def forward(self, skip):
        down = self.pool(skip)
        up = F.interpolate(down, scale_factor=2.0)
        return torch.cat((up, skip), 1)


@reported(
    f(2, 4, 8, 8),
    axes=[
        *[(1, "out", 6), (1, "identity", 4), (2, "out", 4), (2, "identity", 8)],
        *[(3, "out", 4), (3, "identity", 8)],
    ],
)
class ShortcutWithoutProjection(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(4, 6, 3, stride=2, padding=1)

    def forward(self, x):
        identity = x
        out = self.conv(x)
        out += identity
        return out


@reported(
    f(1, 3, 20, 20),
    axes=[(1, "x", 26), (1, "self.position", 17)],
)
class OtherResolution(nn.Module):
    """A vision transformer, given a larger picture than its positions are for."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 8, 4, stride=4)
        self.cls = nn.Parameter(torch.zeros(1, 1, 8))
        self.position = nn.Parameter(torch.zeros(1, 17, 8))

    def forward(self, image):
        x = self.patch(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls, x], 1)
        return x + self.position


@reported(f(2, 3, 30, 30), words=["5400 elements", "2 x 3 x 7 x 4 x 7 x 4 is 4704"])
class PatchesDoNotDivide(nn.Module):
    def forward(self, image):
        B, C, H, W = image.shape
        return image.reshape(B, C, H // 4, 4, W // 4, 4)


@reported(f(1, 3, 2, 6), axes=[(2, "x", 2)], words=["kernel", "3"])
class KernelTooLarge(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 4, 3)

    def forward(self, x):
        return self.conv(x)


@reported(f(1, 8, 1, 1), axes=[(2, "x", 1), (3, "x", 1)], words=["window", "2"])
class PooledAway(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(2)

    def forward(self, x):
        return self.pool(x)


@reported(f(2, 8, 5), axes=[(1, "x", 8), (0, "self.norm.weight", 12)])
class GroupsOfOtherChannels(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.GroupNorm(4, 12)

    def forward(self, x):
        return self.norm(x)


@reported(
    f(2, 8, 5, 5),
    axes=[(2, "x", 5), (3, "x", 5), (1, "self.norm.weight", 6), (2, "self.norm.weight", 6)],
)
class NormOfFixedSize(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm([8, 6, 6])

    def forward(self, x):
        return self.norm(x)


@reported(f(2, 5, 16), axes=[(1, "x", 5), (0, "self.norm.weight", 16)])
class NormOfTokens(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(16)

    def forward(self, x):
        return self.norm(x)


@reported(f(1, 8), axes=[(0, "x", 1)], words=["more than one value per channel"])
class BatchOfOne(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(8)
        self.train()

    def forward(self, x):
        return self.norm(x)


@reported(f(1, 4, 5), words=["`x` has 3 axes"])
class InterpolatedLine(nn.Module):
    def forward(self, x):
        return F.interpolate(x, size=(4, 4))


@reported(f(1, 2, 3, 9), axes=[(2, "x", 3)], words=["3"])
class ReflectedTooFar(nn.Module):
    def forward(self, x):
        return F.pad(x, (3, 3, 3, 3), mode="reflect")


@reported(f(2, 5), f(2, 5, 6), words=["`a` has 2 axes", "`b` has 3"])
class JoinedRanks(nn.Module):
    def forward(self, a, b):
        return torch.cat([a, b], dim=1)


@reported(f(3, 5), f(4, 5, 6), words=["`a` has 2 axes"])
class BatchedByHand(nn.Module):
    def forward(self, a, b):
        return torch.bmm(a, b)


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, scale):
        ctx.save_for_backward(scale)
        return x * scale

    @staticmethod
    def backward(ctx, grad):
        (scale,) = ctx.saved_tensors
        return grad * scale, None


@reported(
    f(2, 5),
    axes=[(1, "x", 5), (0, "scale", 4)],
    origins=["argument `x`", "parameter `scale`"],
)
class OwnFunction(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(4))

    def forward(self, x):
        return Doubled.apply(x, self.scale)


@reported(f(2, 7), axes=[(1, "x", 7)], words=["3 x -1", "multiple of 3"])
class SplitIntoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = 3

    def forward(self, x):
        return x.unflatten(-1, (self.heads, -1))


@reported(f(2, 3, 6), f(2, 4, 5), axes=[(2, "a", 6), (1, "b", 4)])
class ProductOfPieces(nn.Module):
    def forward(self, a, b):
        return torch.matmul(a, b)
