"""The objective: how surprised the model is by the tokens that are to be predicted."""

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from shapetrace.model.training.data import IGNORED, TrainingBatch


def loss_of(
    logits: Float[Tensor, "B n vocab_size"], labels: Int[Tensor, "B n"]
) -> Float[Tensor, ""]:
    """Cross-entropy, summed over the positions that have a label."""
    return cross_entropy(
        logits.flatten(0, 1).float(), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )


def logits_of(model: nn.Module, batch: TrainingBatch) -> Float[Tensor, "B n vocab_size"]:
    """The scores at every position of a batch, in one pass."""
    target_ids: Int[Tensor, "B n"] | None = batch.target_ids
    if target_ids is None:
        logits: Float[Tensor, "B n vocab_size"] = model(batch.token_ids, batch.mask)
    else:
        logits = model(batch.token_ids, target_ids, batch.mask, batch.target_mask)
    return logits


def mean_loss(model: nn.Module, batch: TrainingBatch) -> Float[Tensor, ""]:
    """Cross-entropy per predicted token: about ln(vocab_size) for a model that knows nothing."""
    loss: Float[Tensor, ""] = loss_of(logits_of(model, batch), batch.labels)
    return loss / batch.predicted
