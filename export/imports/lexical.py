"""Other people's lexical shortlists as ours."""

import numpy as np
from numpy.typing import NDArray

from export.imports.formats.marian_bin import MAX_CANDIDATES
from export.imports.formats.tensors import FormatError
from server.bundle.graphs import MAX_BEAM_SIZE
from server.bundle.shortlist import Shortlist


def shortlist_of(first: int, candidates: list[NDArray[np.uint32]], vocab_size: int, num_targets: int) -> Shortlist:
    """Makes a bundle's shortlist.

    Args:
        first: so many of the first target ids every sentence may use; at least as many as the widest beam needs are
            taken, which is twice its size.
        candidates: target ids of each source id.
        vocab_size: rows of the bundle's table, one for each id of the network.
        num_targets: ids that a target may have.

    Raises:
        FormatError: it names other ids, or more for a token than a bundle may have.
    """
    longest = max((len(ids) for ids in candidates), default=0)
    if longest > MAX_CANDIDATES:
        raise FormatError(f"has {longest} candidates for a token, at most {MAX_CANDIDATES} are read")
    largest = max((int(ids.max(initial=0)) for ids in candidates), default=0)
    if max(largest, first - 1) >= num_targets:
        raise FormatError(f"names target id {max(largest, first - 1)}, the model has {num_targets}")
    by_token = np.zeros((vocab_size, max(longest, 1)), np.int32)  # eos: common in any case
    for token, ids in enumerate(candidates):
        if len(ids):
            by_token[token] = ids[0]
            by_token[token, : len(ids)] = ids
    return Shortlist(by_token, np.arange(min(max(first, 2 * MAX_BEAM_SIZE), num_targets), dtype=np.int32))
