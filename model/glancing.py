"""Glancing: a one-pass network is shown some of the words while it learns the others, the fewer the better it writes.

Without it each position chooses among all good translations and does not know which one the other positions write.

Sources: "Glancing Transformer for Non-Autoregressive Neural Machine Translation" (arXiv:2008.07905); with CTC,
"Fully Non-autoregressive Neural Machine Translation: Tricks of the Trade" (arXiv:2012.15833).
The letters of shapes are those of `model.ctc`.
"""

import torch
from torch import Tensor
from torch.nn import functional

from model.ctc import columns_of
from model.one_pass import OnePass


def glance(
    model: OnePass, upsampled: Tensor, visible: Tensor, targets: Tensor, num_targets: Tensor, share: float
) -> Tensor:
    """Returns `upsampled`, where some are replaced by the embedding of the token that the position should write.

    The network first writes a translation. Each position is replaced with the probability of `share` times the share of
    positions that differ from the target's best path.

    Args:
        model: in training.
        upsampled: [B, T, M], as `OnePass.upsample` returns them.
        visible: bool [B, 1, 1, T], likewise.
        targets: int64 [B, L].
        num_targets: int64 [B].
        share: in [0, 1).
    """
    columns = columns_of(targets, model.config.bos_id)
    is_real = visible[:, 0, 0]
    num_positions = is_real.sum(dim=1)
    with torch.no_grad():
        states = model.decode(upsampled, visible)
        scores = states @ model.output_weight[columns].mT
        if model.output_bias is not None:
            scores = scores + model.output_bias[columns][:, None]
        right = columns.gather(1, best_alignments(scores.float(), num_positions, targets, num_targets))
        wrong = (model.best_tokens(states) != right) & is_real
        probability = share * wrong.sum(dim=1) / num_positions
        draws = torch.rand(right.shape).to(upsampled.device)  # the same on any device
        shown = (draws < probability[:, None]) & is_real
    return torch.where(
        shown[:, :, None], (model.embedding.tokens(right) * model.embedding.scale).to(upsampled.dtype), upsampled
    )


def best_alignments(scores: Tensor, num_positions: Tensor, targets: Tensor, num_targets: Tensor) -> Tensor:
    """Returns which column each position of the target's most probable path has, int64 [B, T].

    Args:
        scores: float32 [B, T, K], of the columns, up to a constant for each position.
        num_positions: int64 [B], the positions N of each sentence.
        targets: int64 [B, L].
        num_targets: int64 [B]. A target that has no path, as it is too long, is aligned to no purpose.
    """
    size, length, num_columns = scores.shape
    states = torch.arange(2 * num_columns - 1, device=scores.device)  # blank, token, blank, ..., token, blank
    column = torch.where(states % 2 == 1, states // 2 + 1, 0).expand(size, -1)
    may_skip = torch.zeros_like(column, dtype=torch.bool)  # the blank between two tokens
    may_skip[:, 3::2] = targets[:, 1:] != targets[:, :-1]
    best = scores[:, 0].gather(1, column).masked_fill(states > 1, -torch.inf)
    origins = [torch.zeros_like(column)]
    for t in range(1, length):
        one, two = (functional.pad(best, (back, -back), value=-torch.inf) for back in (1, 2))
        before = torch.stack([best, one, two.masked_fill(~may_skip, -torch.inf)]).max(dim=0)
        is_real = (t < num_positions)[:, None]
        origins.append(torch.where(is_real, before.indices, 0))
        best = torch.where(is_real, before.values + scores[:, t].gather(1, column), best)
    last = 2 * num_targets[:, None]  # the blank behind the last token
    state = last - best.gather(1, torch.cat([last, last - 1], dim=1)).argmax(dim=1, keepdim=True)
    path = []
    for origin in reversed(origins):
        path.append(column.gather(1, state))
        state = state - origin.gather(1, state)
    return torch.cat(path[::-1], dim=1)
