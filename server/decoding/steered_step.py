"""What searches ask of a step beside its best tokens: their options change it, and they want other tokens' chances.

All that is changed is changed in place. So a search takes a step that is steered as any other, and its neighbours wait
for little more than for the few numpy calls that serve all steered rows at once.
"""

from collections.abc import Sequence

from server.decoding.beam_search import BeamSearch
from server.decoding.sample_search import SampleSearch
from server.decoding.steering import Step, draw_to, log_probs_of, steer


def change_step(searches: Sequence[tuple[BeamSearch, Sequence[int]]], step: Step) -> list[list[float]]:
    """Changes rows of a step as options ask for it, and looks up what is wanted, before the searches take the step.

    Args:
        searches: that are steered or want log-probabilities, each with the rows of its live beams.
        step: with as many best tokens as each search's `top_k` at least.

    Returns:
        For each search the log-probabilities that it wants.
    """
    steered = [(search, rows) for search, rows in searches if search.is_steered]
    factors = {rows[beam]: own for search, rows in steered for beam, own in search.factors().items()}
    if factors:
        steer(step, factors)
    drawn = {rows[beam]: own for search, rows in steered for beam, own in search.drawn().items()}
    if drawn:
        draw_to(step, drawn)
    for search, rows in steered:
        if isinstance(search, SampleSearch):
            search.draw(rows, step)
    wanted = [(rows[beam], token) for search, rows in searches for beam, token in search.wanted]
    found = iter(log_probs_of(step, *zip(*wanted, strict=True)) if wanted else ())
    return [[next(found) for _ in search.wanted] for search, _ in searches]
