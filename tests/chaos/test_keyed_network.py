"""The network that proves whose answer is whose is itself right alone, right in company, and wrong when mixed up."""

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from server.bundle.bundle import open_bundle
from server.bundle.manifest import Manifest
from server.bundle.manifest_file import read_manifest
from server.decoding.options import DecodingOptions
from server.engine.engine import Engine
from server.network import StepInputs, StepKind
from server.telemetry.metrics import Metrics
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.chaos.keyed_network import KeyedDecoder, KeyedFunction, KeyedRunner
from tests.fakes import engine_limits

SOURCES = [(*(300 + index, 400, 500)[: 1 + index % 3], 3) for index in range(40)]


@pytest.fixture(scope="module")
def manifest() -> Manifest:
    """Of the built-in bundle."""
    return read_manifest(BUILTIN_BUNDLE)


@pytest.fixture
def runner() -> KeyedRunner:
    """The network."""
    return KeyedRunner(KeyedFunction(open_bundle(BUILTIN_BUNDLE, "cpu-fp32")))


@pytest.mark.parametrize("beam_size", [1, 4])
def test_sentences_get_their_own_answers_in_company(manifest: Manifest, runner: KeyedRunner, beam_size: int) -> None:
    metrics = Metrics(CollectorRegistry()).of_model("keyed", "1")
    engine = Engine(runner, manifest, metrics, engine_limits(max_rows=16))
    engine.start()

    futures = engine.submit(SOURCES, DecodingOptions(beam_size=beam_size))
    answers = [future.result(30.0).hypotheses[0].ids for future in futures]
    engine.stop()

    assert answers == [runner.function.target_ids(source) for source in SOURCES]


def first_tokens(decoder: KeyedDecoder, count: int) -> list[int]:
    bos = np.full(count, 2, np.int64)
    inputs = StepInputs(bos, np.zeros(count, np.int32), np.full(count, 3, np.int32), top_k=1)
    ids, _ = decoder.step(inputs)
    tokens: list[int] = ids[:, 0].tolist()
    return tokens


def test_a_row_that_reads_anothers_cache_answers_as_nobody_expects(runner: KeyedRunner) -> None:
    sources = [(301, 400, 3), (302, 400, 3)]
    decoder = runner.open_decoder(StepKind.PLAIN, 4)
    decoder.reserve(0, 8, 8)
    decoder.admit(0, runner.encode(np.array(sources), np.array([3, 3], np.int32)), sources)
    right = [runner.function.target_ids(source)[0] for source in sources]
    assert first_tokens(decoder, 2) == right

    decoder.cache.cross_attention[0][:2] = decoder.cache.cross_attention[0][[1, 0]]

    assert first_tokens(decoder, 2) == right[::-1]


def test_positions_of_two_sentences_in_one_row_show(runner: KeyedRunner) -> None:
    sources = [(301, 400, 3), (302, 400, 3)]
    decoder = runner.open_decoder(StepKind.PLAIN, 4)
    decoder.reserve(0, 8, 8)
    decoder.admit(0, runner.encode(np.array(sources), np.array([3, 3], np.int32)), sources)

    decoder.cache.cross_attention[0][0, 0, 1] += 1  # a stale position

    assert first_tokens(decoder, 2)[0] not in [runner.function.target_ids(source)[0] for source in sources]
