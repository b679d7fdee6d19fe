"""A sentence cache before any engine, and what its tests ask of it."""

from concurrent.futures import Future

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.models.model import SentenceEngine
from server.models.sentence_cache import SentenceCache
from server.telemetry.metrics import Metrics
from tests.fakes import EOS, FakeClock

MODEL = ("echo", "7", "abc")
GREEDY = DecodingOptions(beam_size=1)
A, B, C = (5, EOS), (6, 7, EOS), (8, 9, 10, EOS)
SECONDS = 100.0  # far above what any of these needs; a hang fails


def new_cache(
    engine: SentenceEngine,
    metrics: Metrics,
    max_sentences: int = 10,
    is_single_flight: bool = True,
    clock: FakeClock | None = None,
) -> SentenceCache:
    return SentenceCache(
        engine,
        MODEL,
        metrics.of_model("echo", "1"),
        max_sentences=max_sentences,
        is_single_flight=is_single_flight,
        clock=clock or FakeClock(),
    )


def submit(
    cache: SentenceCache, source: tuple[int, ...], options: DecodingOptions = GREEDY, deadline: float | None = None
) -> Future[Result]:
    (future,) = cache.submit([source], options, deadline)
    return future


def ids(future: Future[Result]) -> tuple[int, ...]:
    return future.result(SECONDS).hypotheses[0].ids


def counted(metrics: Metrics, model: str = "echo", version: str = "1") -> dict[str, float]:
    value = metrics.registry.get_sample_value
    results = ("hit", "joined", "miss")
    return {
        result: value("babelserve_sentence_cache_total", {"model": model, "version": version, "result": result}) or 0
        for result in results
    }
