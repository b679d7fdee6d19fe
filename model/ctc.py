"""The loss of networks that write all words at once.

The loss of a translation is the negative logarithm of its probability, the sum over all its paths (`model.ctc_search`):
it does not matter which position writes which word. Letters: a sentence has N positions, which a batch pads to T, and
a target of at most L tokens. Its K = 1 + L columns stand for the blank and for the target's tokens, as no other token
is on its paths.

Source: "Connectionist Temporal Classification" (Graves et al., 2006).
"""

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from model.loss import chunk_rows, with_bias


def ctc_loss(
    states: Tensor,
    weight: Tensor,
    num_positions: Tensor,
    targets: Tensor,
    num_targets: Tensor,
    *,
    blank: int,
    smoothing: float = 0.0,
    bias: Tensor | None = None,
) -> Tensor:
    """Returns the sum over all sentences of the label-smoothed loss, in nats.

    A sentence whose target is too long to have a path has no loss. The scores of a few sentences at a time are made and
    turned into gradients while they are in the cache, as in `model.loss`.

    Args:
        states: [B, T, M], what the network projects to scores.
        weight: [V, M], the output projection.
        num_positions: int64 [B], the positions N of each sentence.
        targets: int64 [B, L]; what stands behind a target does not matter.
        num_targets: int64 [B], the tokens of each target.
        blank: its id.
        smoothing: share of the loss, in [0, 1), that is each position's mean surprise at all tokens.
        bias: [V], of the output projection; finite.
    """
    states, weight = with_bias(states, weight, bias)
    loss: Tensor = _Loss.apply(  # type: ignore[no-untyped-call]
        states, weight, num_positions, targets, num_targets, blank, smoothing
    )
    return loss


def columns_of(targets: Tensor, blank: int) -> Tensor:
    """Returns the token of each column, int64 [B, K], of targets [B, L]."""
    return functional.pad(targets, (1, 0), value=blank)


class _Loss(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        states: Tensor,
        weight: Tensor,
        num_positions: Tensor,
        targets: Tensor,
        num_targets: Tensor,
        blank: int,
        smoothing: float,
    ) -> Tensor:
        length, vocab_size = states.shape[1], weight.shape[0]
        states_gradient, weight_gradient = torch.empty_like(states), torch.zeros_like(weight)
        loss = torch.zeros((), device=states.device)
        is_real = torch.arange(length, device=states.device) < num_positions[:, None]
        columns = columns_of(targets, blank)
        rows = chunk_rows(states, length * vocab_size)
        for start in range(0, len(states), rows):
            some = slice(start, start + rows)
            chosen = columns[some, None].expand(-1, length, -1)
            scores = (states[some] @ weight.t()).float()
            total = scores.logsumexp(-1, keepdim=True)
            surprise, shares = _paths(
                scores.gather(2, chosen) - total, num_positions[some], targets[some], num_targets[some]
            )
            counts = (is_real[some] & (surprise > 0)[:, None])[:, :, None]
            loss += (1 - smoothing) * surprise.sum()
            loss += smoothing * ((total - scores.mean(-1, keepdim=True)) * counts).sum()
            # The gradient of the scores is the model's distribution less that of the paths, smoothed.
            gradient = scores.sub_(total).exp_().sub_(smoothing / vocab_size)
            gradient.scatter_add_(2, chosen, shares.mul_(smoothing - 1)).mul_(counts)
            states_gradient[some] = gradient @ weight
            weight_gradient += gradient.flatten(0, 1).t() @ states[some].flatten(0, 1)
        ctx.save_for_backward(states_gradient, weight_gradient)
        return loss

    @staticmethod
    def backward(ctx: Any, loss_gradient: Tensor) -> tuple[Tensor | None, ...]:
        states_gradient, weight_gradient = ctx.saved_tensors
        return states_gradient * loss_gradient, weight_gradient * loss_gradient, None, None, None, None, None


def _paths(log_probs: Tensor, num_positions: Tensor, targets: Tensor, num_targets: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the loss of each sentence, [B], and which share of its paths has which column where, [B, T, K].

    Args:
        log_probs: [B, T, K], of the columns; those of a position need not sum up to 1.
        num_positions: int64 [B].
        targets: int64 [B, L].
        num_targets: int64 [B].
    """
    # A token that the target has twice is one column, its first: equal neighbours need a blank between them.
    columns = (targets[:, :, None] == targets[:, None, :]).int().argmax(-1) + 1
    with torch.enable_grad():
        log_probs = log_probs.detach().requires_grad_()
        surprise = functional.ctc_loss(
            log_probs.transpose(0, 1), columns, num_positions, num_targets, reduction="none", zero_infinity=True
        )
        (gradient,) = torch.autograd.grad(surprise.sum(), log_probs)
    # torch's gradient is of what is normalised to `log_probs`: probabilities less shares.
    return surprise.detach(), log_probs.detach().exp() - gradient
