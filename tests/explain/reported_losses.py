"""Failures in losses and in what is taken out by index, as people reported them."""

import torch
from reports import f, ids, reported, yes
from torch import nn
from torch.nn import functional as F


@reported(
    f(10, 8),
    f(10),
    axes=[(1, "scores", 13), (0, "target", 10)],
    origins=["argument `target`"],
)
class SquaredErrorOfClasses(nn.Module):
    """A squared error where a cross entropy ran before."""

    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(8, 13)

    def forward(self, x, target):
        scores = self.fc(x)
        return F.mse_loss(scores, target)


@reported(f(4, 5), ids(4, 1, below=5), words=["`labels` has 2 axes"])
class LabelsAsColumn(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels)


@reported(f(2, 3, 4, 6), ids(2, 1, 4, 6, below=3), words=["`mask` has 4 axes"])
class MaskWithChannel(nn.Module):
    """Segmentation: the label image still has the channel axis that it was loaded with."""

    def __init__(self):
        super().__init__()
        self.loss = nn.CrossEntropyLoss()

    def forward(self, logits, mask):
        return self.loss(logits, mask)


@reported(
    ids(2, 6, below=9),
    axes=[(0, "logits[:, :-1].reshape(-1, 9)", 10), (0, "ids.view(-1)", 12)],
)
class LabelsNotShifted(nn.Module):
    """A language model's loss where the labels were not shifted with the logits."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(9, 9)

    def forward(self, ids):
        logits = self.embed(ids)
        return F.cross_entropy(logits[:, :-1].reshape(-1, 9), ids.view(-1))


@reported(f(4, 5), torch.tensor([0, 2, 5, 1]), axes=[(1, "logits", 5)], words=["holds 0 to 5"])
class OneClassTooMany(nn.Module):
    def forward(self, logits, labels):
        return F.cross_entropy(logits, labels)


@reported(f(2, 3, 5), f(2, 5, 3), axes=[(1, "p", 3), (1, "y", 5), (2, "p", 5), (2, "y", 3)])
class TransposedTarget(nn.Module):
    def forward(self, p, y):
        return F.binary_cross_entropy_with_logits(p, y)


@reported(
    f(6, 2, 5),
    ids(2, 3, below=5),
    torch.tensor([7, 6]),
    axes=[(0, "scores.log_softmax(-1)", 6)],
    words=["`lengths` holds 6 to 7"],
)
class LengthsBeforeTheConvolution(nn.Module):
    """CTC with the lengths of the audio, not of what the network left of it."""

    def forward(self, scores, targets, lengths):
        return F.ctc_loss(scores.log_softmax(-1), targets, lengths, torch.tensor([3, 3]))


@reported(
    f(16, 5),
    ids(32, below=5),
    axes=[(0, "values", 16), (0, "action.unsqueeze(1)", 32)],
    origins=["argument `action`"],
)
class ActionsOfAnotherBatch(nn.Module):
    def forward(self, values, action):
        return values.gather(1, action.unsqueeze(1))


@reported(f(8, 5), ids(8, below=5), words=["`action` has 1 axis", "`values` has 2"])
class ActionsWithoutAxis(nn.Module):
    def forward(self, values, action):
        return torch.gather(values, 1, action)


@reported(ids(4, below=3), words=["`labels` has 1 axis", "`onehot` has 2"])
class OneHotByScatter(nn.Module):
    def forward(self, labels):
        onehot = torch.zeros(labels.shape[0], 3)
        return onehot.scatter_(1, labels, 1.0)


@reported(torch.tensor([0, 3, 1]), words=["holds 0 to 3"])
class OneHotTooFew(nn.Module):
    def __init__(self, classes=3):
        super().__init__()
        self.classes = classes

    def forward(self, labels):
        return F.one_hot(labels, self.classes)


@reported(
    f(1, 7, 16),
    yes(1, 6),
    axes=[(1, "hidden", 7), (1, "found", 6)],
    origins=["argument `found`", "argument `hidden`"],
)
class SpecialTokens(nn.Module):
    """The mask of a token was made before image tokens were inserted."""

    def forward(self, hidden, found):
        return hidden[found]


@reported(
    f(2, 4, 3, 5),
    yes(2, 60),
    axes=[(0, "best[b]", 60), (0, "kept[b]", 4)],
)
class FlatMask(nn.Module):
    """A detector's mask over flattened cells on cells that are not."""

    def forward(self, kept, best):
        for b in range(kept.shape[0]):
            kept[b][best[b]] = 0
        return kept


@reported(f(3, 4), axes=[(0, "x", 3)], words=["index 3"])
class LastByLength(nn.Module):
    def forward(self, x):
        return x[x.shape[0]]


@reported(f(3, 4), words=["`x` has 2 axes"])
class TooManyIndices(nn.Module):
    def forward(self, x):
        return x[:, 0, :]


@reported(
    f(3, 2, 4),
    axes=[(1, "outputs[t]", 9), (1, "step", 7)],
    origins=["argument `size`", "argument `other`"],
)
class DecoderOutputs(nn.Module):
    """A translator whose table of outputs has the other vocabulary's size."""

    def __init__(self, size=9, other=7):
        super().__init__()
        self.size = size
        self.out = nn.Linear(4, other)

    def forward(self, memory):
        T, B, _ = memory.shape
        outputs = torch.zeros(T, B, self.size)
        for t in range(T):
            step = self.out(memory[t])
            outputs[t] = step
        return outputs


@reported(f(4, 6, 8), torch.tensor([6, 5, 3]), axes=[(0, "x", 4), (0, "lengths", 3)])
class LengthsOfAnotherBatch(nn.Module):
    def forward(self, x, lengths):
        return nn.utils.rnn.pack_padded_sequence(x, lengths, batch_first=True)


@reported(f(4, 8), f(4, 6), axes=[(1, "a", 8), (1, "b", 6)])
class Similarity(nn.Module):
    def forward(self, a, b):
        return F.cosine_similarity(a, b)


@reported(f(5, 4), torch.tensor([1, 9]), axes=[(0, "table", 5)], words=["holds 1 to 9"])
class SelectedRows(nn.Module):
    def forward(self, table, rows):
        return table.index_select(0, rows)
