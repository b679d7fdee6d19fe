"""What a translation loses for words of its source that it leaves out: CTranslate2's `coverage_penalty`.

Source of the idea: Wu et al., "Google's Neural Machine Translation System", 2016.
"""

import numpy as np
from numpy.typing import NDArray


def coverage(attention: NDArray[np.float32]) -> float:
    """Returns the sum of log(min(attention, 1)) over the source, at most 0; a token that nothing attends to is none.

    Args:
        attention: [T, S], of each token of a translation, eos included, a distribution over the source.
    """
    covered = attention.sum(axis=0, dtype=np.float64)
    return float(np.log(np.minimum(covered[covered > 0], 1.0)).sum())
