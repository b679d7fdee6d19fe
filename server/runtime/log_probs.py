"""The log-probability of any token, of what a step has projected."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def log_probs_of(logits: NDArray[np.float32], ids: Sequence[int]) -> NDArray[np.float32]:
    """Returns the log-probability of one token in each row of logits, [n, V] to [n]."""
    logits = logits - logits.max(axis=1, keepdims=True)
    chosen: NDArray[np.float32] = logits[np.arange(len(logits)), ids]
    chosen -= np.log(np.exp(logits).sum(axis=1))
    return chosen
