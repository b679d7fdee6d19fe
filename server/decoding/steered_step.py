"""What searches ask of a step beside its best tokens: their options change it, and they want other tokens' chances.

All that is changed is changed in place. So a search takes a step that is steered as any other.
"""

from collections.abc import Sequence

from server.decoding.beam_search import BeamSearch
from server.decoding.steering import Step, log_probs_of


def change_step(searches: Sequence[tuple[BeamSearch, Sequence[int]]], step: Step) -> list[list[float]]:
    """Changes rows of a step as options ask for it, and looks up what is wanted, before the searches take the step.

    Args:
        searches: that are steered or want log-probabilities, each with the rows of its live beams.
        step: with as many best tokens as each search's `top_k` at least.

    Returns:
        For each search the log-probabilities that it wants.
    """
    for search, rows in searches:
        if search.is_steered:
            search.change(rows, step)
    return [
        log_probs_of(step, [(rows[beam], token) for beam, token in search.wanted]) if search.wanted else []
        for search, rows in searches
    ]
