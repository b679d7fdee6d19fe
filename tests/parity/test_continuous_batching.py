"""Whatever shares a step with a sentence, and whenever it joins or leaves: its fp32 ids are those it gives alone.

Source of the idea: text-generation-inference's tests of its seq2seq model.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any

import onnxruntime
import pytest
from prometheus_client import CollectorRegistry

from model.search import default_max_tokens, search
from model.transformer import Transformer
from server.bundle.bundle import Bundle
from server.bundle.tokenizer import Tokenizer
from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.engine import Engine
from server.engine.limits import EngineLimits
from server.runtime.cuda_device import has_cuda_device
from server.runtime.runner import open_runner
from server.telemetry.metrics import Metrics
from tests.fakes import lane_limits

Ids = tuple[int, ...]
WIDTHS = (1, 4, 2, 5)


class Stepper:
    """An engine of one lane over a real bundle, stepped by hand."""

    def __init__(
        self,
        bundle: Bundle,
        variant: str,
        max_rows: int = 64,
        device: str = "cpu",
        placeholder_ids: Sequence[int] = (),
    ) -> None:
        self.engine = Engine(
            open_runner(bundle, variant, device),
            bundle.manifest,
            Metrics(CollectorRegistry()).of_model(bundle.manifest.name, bundle.manifest.version),
            EngineLimits(
                num_lanes=1,
                lane=lane_limits(max_rows, max_encode_tokens=256),
                max_waiting_tokens=10**6,
                max_waiting_sentences=10**6,
            ),
            placeholder_ids=placeholder_ids,
        )

        self.futures: list[Future[Result]] = []

    def submit(self, source: list[int], beam_size: int = 1, **options: Any) -> Future[Result]:
        chosen = DecodingOptions(beam_size=beam_size, **options)
        self.futures += self.engine.submit([source], chosen)
        return self.futures[-1]

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.engine.lanes[0].step()

    def finish(self) -> None:
        for future in self.futures:
            while not future.done():
                self.step()
        self.futures = []  # so that the next call need not look at them again

    def alone(self, source: list[int], beam_size: int) -> Ids:
        future = self.submit(source, beam_size)
        self.finish()
        return best(future)


def best(future: Future[Result]) -> Ids:
    return future.result(0).hypotheses[0].ids


@pytest.fixture
def stepper(tiny_bundle: Bundle) -> Stepper:
    return Stepper(tiny_bundle, "cpu-fp32")


@pytest.fixture(scope="module")
def alone(tiny_bundle: Bundle, sources: list[list[int]]) -> list[Ids]:
    """The ids of each of 60 sentences by itself; sentence i with beam width WIDTHS[i % len(WIDTHS)]."""
    stepper = Stepper(tiny_bundle, "cpu-fp32")
    return [stepper.alone(source, WIDTHS[i % len(WIDTHS)]) for i, source in enumerate(sources[:60])]


def test_alone_is_what_the_oracle_says(
    tiny_model: Transformer, tiny_bundle: Bundle, sources: list[list[int]], alone: list[Ids]
) -> None:
    limit = tiny_bundle.manifest.limits.max_target_tokens
    for i, (source, ids) in enumerate(zip(sources, alone, strict=False)):
        max_tokens = default_max_tokens(len(source), limit)
        oracle = search(tiny_model, [source], beam_size=WIDTHS[i % len(WIDTHS)], max_tokens=max_tokens)

        assert list(ids) == oracle[0][0].ids


def test_forced_prefixes_share_steps_and_each_sentence_goes_on_from_its_own(
    tiny_bundle: Bundle, sources: list[list[int]], alone: list[Ids]
) -> None:
    """A prefix that a greedy translation has anyway changes nothing of it; with any other it is as it is alone."""
    stepper, single = Stepper(tiny_bundle, "cpu-fp32"), Stepper(tiny_bundle, "cpu-fp32", max_rows=5)
    prefixes = [(alone[i] if i % 2 else alone[i - 1])[: i % 4] for i in range(60)]
    options: list[dict[str, Any]] = [
        {"beam_size": WIDTHS[i % len(WIDTHS)], "forced_prefix": prefixes[i]} for i in range(60)
    ]

    futures = []
    for i in range(60):
        futures.append(stepper.submit(sources[i], **options[i]))
        stepper.step(i % 3)
    stepper.finish()

    for i, future in enumerate(futures):
        expected = single.submit(sources[i], **options[i])
        single.finish()
        assert best(future) == best(expected)
    own = [stepper.submit(sources[i], 1, forced_prefix=alone[i][:2]) for i in range(0, 60, len(WIDTHS))]
    stepper.finish()
    assert [best(future) for future in own] == [alone[i][2:] for i in range(0, 60, len(WIDTHS))]
    assert {best(future) for future in futures} != set(alone)


@pytest.mark.parametrize("max_rows", [5, 17, 200])
def test_batch_of_mixed_widths_equals_alone(
    tiny_bundle: Bundle, sources: list[list[int]], alone: list[Ids], max_rows: int
) -> None:
    stepper = Stepper(tiny_bundle, "cpu-fp32", max_rows)
    futures = [stepper.submit(sources[i], WIDTHS[i % len(WIDTHS)]) for i in range(60)]

    stepper.finish()

    assert [best(future) for future in futures] == alone


def test_sentences_that_join_mid_flight_equal_alone(
    stepper: Stepper, sources: list[list[int]], alone: list[Ids]
) -> None:
    futures = []
    for i in range(60):
        futures.append(stepper.submit(sources[i], WIDTHS[i % len(WIDTHS)]))
        stepper.step(i % 4)

    stepper.finish()

    assert [best(future) for future in futures] == alone


def test_neighbours_that_leave_mid_flight_change_nothing(
    stepper: Stepper, sources: list[list[int]], alone: list[Ids]
) -> None:
    futures = [stepper.submit(sources[i], WIDTHS[i % len(WIDTHS)]) for i in range(24)]
    for i in range(0, 24, 2):
        stepper.step()
        futures[i].cancel()

    stepper.finish()

    assert [best(future) for future in futures[1::2]] == alone[1:24:2]


def test_rows_reused_after_a_long_sentence_hold_nothing_of_it(
    stepper: Stepper, sources: list[list[int]], alone: list[Ids]
) -> None:
    by_length = sorted(range(60), key=lambda i: -len(sources[i]))
    for i in by_length:
        future = stepper.submit(sources[i], WIDTHS[i % len(WIDTHS)])
        stepper.finish()
        assert best(future) == alone[i]


def test_each_row_stops_at_its_own_limit(stepper: Stepper, sources: list[list[int]], alone: list[Ids]) -> None:
    limits = [1, 2, 5, 8]
    cut = [stepper.submit(sources[len(WIDTHS) * i], 1, max_output_tokens=limit) for i, limit in enumerate(limits)]

    stepper.finish()

    for i, (future, limit) in enumerate(zip(cut, limits, strict=True)):
        assert best(future) == alone[len(WIDTHS) * i][:limit]


def test_scores_and_hypotheses_equal_the_oracles(
    tiny_model: Transformer, stepper: Stepper, sources: list[list[int]]
) -> None:
    futures = [
        stepper.submit(source, 4, num_hypotheses=4, length_penalty=0.5, max_output_tokens=20) for source in sources[:16]
    ]

    stepper.finish()

    oracle = search(tiny_model, sources[:16], beam_size=4, length_penalty=0.5, max_tokens=20)
    for future, expected in zip(futures, oracle, strict=True):
        found = future.result(0).hypotheses
        assert [list(hypothesis.ids) for hypothesis in found] == [hypothesis.ids for hypothesis in expected]
        # float32 log-probabilities of up to 20 tokens, summed in another order
        assert [h.score for h in found] == pytest.approx([h.score for h in expected], abs=1e-4)


def test_beams_copy_placeholders_as_the_oracle_does(
    tiny_model: Transformer, tiny_bundle: Bundle, sources: list[list[int]]
) -> None:
    placeholder_ids = Tokenizer(tiny_bundle.manifest, tiny_bundle.read).placeholder_ids
    stepper = Stepper(tiny_bundle, "cpu-fp32", placeholder_ids=placeholder_ids)
    marked = [
        [*source[:2], placeholder_ids[i % 16], *source[2:-1], placeholder_ids[(i * 7 + 1) % 16], source[-1]]
        for i, source in enumerate(sources[:40])
    ]
    futures = [stepper.submit(source, WIDTHS[i % 4], max_output_tokens=40) for i, source in enumerate(marked)]
    stepper.finish()

    for i, (source, future) in enumerate(zip(marked, futures, strict=True)):
        (oracle,) = search(
            tiny_model, [source], beam_size=WIDTHS[i % 4], max_tokens=40, placeholder_ids=placeholder_ids
        )
        assert list(best(future)) == oracle[0].ids
        assert WIDTHS[i % 4] == 1 or all(best(future).count(each) <= source.count(each) for each in placeholder_ids)


def test_greedy_search_without_scores_gives_the_same_ids(
    stepper: Stepper, sources: list[list[int]], alone: list[Ids]
) -> None:
    greedy = range(0, 60, len(WIDTHS))
    spared = [stepper.submit(sources[i], 1, with_scores=False) for i in greedy]
    stepper.step(2)  # steps without a softmax, then among beams that need it
    scored = [stepper.submit(sources[i], WIDTHS[i % len(WIDTHS)]) for i in range(20)]

    stepper.finish()

    assert [best(future) for future in spared] == [alone[i] for i in greedy]
    assert [best(future) for future in scored] == alone[:20]
    assert {future.result(0).hypotheses[0].score for future in spared} == {0.0}
    assert all(future.result(0).hypotheses[0].score < 0 for future in scored)


has_cuda = has_cuda_device() and "CUDAExecutionProvider" in onnxruntime.get_available_providers()
on_cuda = pytest.param(
    ("cuda-fp16", "cuda"),
    marks=[pytest.mark.gpu, pytest.mark.skipif(not has_cuda, reason="no CUDA device, or no onnxruntime-gpu")],
)


@pytest.fixture(params=[("cpu-int8", "cpu"), ("cuda-fp16", "cpu"), on_cuda])
def rounded(request: pytest.FixtureRequest, tiny_bundle: Bundle) -> Stepper:
    """The other variants; ONNX Runtime runs fp16 on a CPU by way of fp32, which tries the graphs that CUDA will run."""
    variant, device = request.param
    return Stepper(tiny_bundle, variant, device=device)


def test_rounded_variants_are_close_to_fp32(rounded: Stepper, stepper: Stepper, sources: list[list[int]]) -> None:
    chosen = sources[:40]
    exact, close = ([s.submit(source, 4) for source in chosen] for s in (stepper, rounded))
    stepper.finish()
    rounded.finish()

    differences = [
        abs(a.result(0).hypotheses[0].score - b.result(0).hypotheses[0].score)
        for a, b in zip(exact, close, strict=True)
    ]
    assert sorted(differences)[len(differences) // 2] < 0.02  # per-token log-probability of the median sentence
    assert max(differences) < 0.5


def test_int8_sentence_is_the_same_alone_and_in_a_batch(tiny_bundle: Bundle, sources: list[list[int]]) -> None:
    stepper = Stepper(tiny_bundle, "cpu-int8")
    futures = [stepper.submit(source) for source in sources[:100]]
    stepper.finish()

    same = sum(best(future) == stepper.alone(source, 1) for future, source in zip(futures, sources, strict=False))

    assert same >= 99
