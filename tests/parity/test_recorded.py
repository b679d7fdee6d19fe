"""Recorded searches over a real network: they share steps with others, and find what these would find."""

from typing import Any

from server.bundle.bundle import Bundle
from server.decoding.options import Sampling
from tests.parity.test_continuous_batching import Stepper

OPTIONS: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 4, "num_hypotheses": 4},
    {"beam_size": 2, "num_hypotheses": 2, "sampling": Sampling(seed=2)},
    {"beam_size": 1, "repetition_penalty": 1.5},
]


def test_a_recorded_search_finds_the_same_beside_others(tiny_bundle: Bundle, sources: list[list[int]]) -> None:
    stepper = Stepper(tiny_bundle, "cpu-fp32")
    asked = [(source, OPTIONS[i % len(OPTIONS)]) for i, source in enumerate(sources[:40])]
    plain, recorded = (
        [stepper.submit(source, with_search=with_search, **options) for source, options in asked]
        for with_search in (False, True)
    )
    stepper.finish()

    for one, other in zip(plain, recorded, strict=True):
        assert one.result(0).tree == ()
        hypotheses = other.result(0).hypotheses
        assert [each.ids for each in hypotheses] == [each.ids for each in one.result(0).hypotheses]
        scores = {node.score for node in other.result(0).tree}
        assert scores >= {each.score for each in hypotheses}
