"""Penalties, bans and sampling over a real network: they hold, and they neither see nor touch what runs beside them."""

from typing import Any

import pytest

from server.bundle.bundle import Bundle
from server.decoding.options import Sampling
from server.decoding.result import FinishReason
from tests.parity.test_continuous_batching import Stepper, best

OPTIONS: list[dict[str, Any]] = [
    {"beam_size": 1},
    {"beam_size": 1, "sampling": Sampling(seed=1)},
    {"beam_size": 4, "no_repeat_ngram_size": 2},
    {"beam_size": 1, "repetition_penalty": 1.5},
    {"beam_size": 3, "num_hypotheses": 3, "sampling": Sampling(seed=2, top_p=0.9, temperature=0.7)},
    {"beam_size": 4},
    {"beam_size": 2, "min_output_tokens": 12, "suppressed": ((20,), (21, 22)), "end_loops": True},
    {"beam_size": 1, "end_loops": True},
    {"beam_size": 4, "target_prefix": (20, 21, 22)},
    {"beam_size": 2, "num_hypotheses": 2, "return_alternatives": True},
    {"beam_size": 2, "target_prefix": (23, 24), "prefix_bias_beta": 0.4},
    {
        "beam_size": 1,
        "num_hypotheses": 4,
        "return_alternatives": True,
        "target_prefix": (25,),
        "repetition_penalty": 1.2,
        "min_output_tokens": 6,
    },
    {"beam_size": 3, "coverage_penalty": 0.5, "max_length_ratio": 1.5},
]


@pytest.mark.parametrize("variant", ["cpu-fp32", "cuda-fp16"])
def test_options_share_steps_and_each_sentence_is_as_it_is_alone(
    tiny_bundle: Bundle, sources: list[list[int]], variant: str
) -> None:
    stepper, single = Stepper(tiny_bundle, variant), Stepper(tiny_bundle, variant, max_rows=5)
    asked = [(source, OPTIONS[i % len(OPTIONS)]) for i, source in enumerate(sources[:65])]

    futures = []
    for i, (source, options) in enumerate(asked):
        futures.append(stepper.submit(source, **options))
        stepper.step(i % 3)
    stepper.finish()

    for (source, options), future in zip(asked, futures, strict=True):
        expected = single.submit(source, **options)
        single.finish()
        ids = [hypothesis.ids for hypothesis in future.result(0).hypotheses]
        assert ids == [hypothesis.ids for hypothesis in expected.result(0).hypotheses]
        assert len(ids) == options.get("num_hypotheses", 1)


def test_options_hold(tiny_bundle: Bundle, sources: list[list[int]]) -> None:
    stepper = Stepper(tiny_bundle, "cpu-fp32")
    plain = [stepper.submit(source, 4) for source in sources[:20]]
    greedy = [stepper.submit(source, 1) for source in sources[:20]]
    best_drawn = [stepper.submit(source, 1, sampling=Sampling(top_k=1)) for source in sources[:20]]
    different = [stepper.submit(source, 4, no_repeat_ngram_size=1) for source in sources[:20]]
    long = [stepper.submit(source, 4, min_output_tokens=15) for source in sources[:20]]
    stepper.finish()
    frequent = max(
        {token for each in plain for token in best(each)}, key=[t for each in plain for t in best(each)].count
    )
    without = [stepper.submit(source, 4, suppressed=((frequent,),)) for source in sources[:20]]
    stepper.finish()

    assert [best(each) for each in best_drawn] == [best(each) for each in greedy]
    assert all(len(set(best(each))) == len(best(each)) for each in different)
    assert any(len(set(best(each))) < len(best(each)) for each in plain)
    assert all(
        len(best(each)) >= 15 or each.result(0).hypotheses[0].finish_reason is FinishReason.LENGTH for each in long
    )
    assert not any(frequent in best(each) for each in without)


def test_other_seeds_draw_others(tiny_bundle: Bundle, sources: list[list[int]]) -> None:
    stepper = Stepper(tiny_bundle, "cpu-fp32")
    futures = [stepper.submit(sources[0], 1, sampling=Sampling(seed=seed)) for seed in (1, 2, 3, 1)]
    stepper.finish()

    drawn = [best(future) for future in futures]
    assert drawn[0] == drawn[3]
    assert len(set(drawn)) == 3
