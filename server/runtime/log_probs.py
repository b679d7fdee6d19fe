"""The log-probability of any token, of what a step has projected and of the best tokens that it has returned."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def log_probs_of(
    logits: NDArray[np.float32],
    best_ids: NDArray[np.int64],
    best_log_probs: NDArray[np.float32],
    rows: Sequence[int],
    ids: Sequence[int],
) -> NDArray[np.float32]:
    """Returns the log-probability of one token in each of some rows, [n].

    A step has the sum over the vocabulary already: what its best token's log-probability is less than its logit. To add
    it up again would take a hundred times as long.

    Args:
        logits: of the step, [B, V].
        best_ids: of each row the best token, [B].
        best_log_probs: its log-probability, [B].
        rows: [n].
        ids: [n].
    """
    rows = list(rows)
    chosen: NDArray[np.float32] = logits[rows, list(ids)] - logits[rows, best_ids[rows]] + best_log_probs[rows]
    return chosen
