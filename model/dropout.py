"""Dropout that a processor can afford."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class Dropout(nn.Module):
    """Zeroes elements with a probability while training, and scales the others up.

    On a processor torch draws twice per element, on one core: a sixth of an update's time. Here one draw of eight
    random bytes decides over eight elements, so that the probability is rounded to a multiple of 1/256, from 1/256 to
    255/256.
    """

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Maps a tensor of any shape to one of the same shape."""
        if not self.training or self.probability == 0:
            return x
        if x.is_cuda:
            return functional.dropout(x, self.probability)
        count, threshold = x.numel(), min(255, max(1, round(256 * self.probability)))
        draws = torch.empty((count + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
        kept = draws.view(torch.uint8)[:count].view(x.shape) >= threshold
        return x * kept.to(x.dtype).mul_(256 / (256 - threshold))


def replace_words(target_in: Tensor, share: float, last_special_id: int, vocab_size: int) -> Tensor:
    """Replaces a random `share` of the decoder's input tokens [B, T] (special ones apart) by random tokens."""
    if share == 0:
        return target_in
    chosen = (torch.rand(target_in.shape) < share) & (target_in > last_special_id)
    return torch.where(chosen, torch.randint_like(target_in, last_special_id + 1, vocab_size), target_in)
