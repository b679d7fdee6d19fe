"""Stands in for `server.engine.engine.Engine`: real futures, no network."""

import asyncio
import dataclasses
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field

from prometheus_client import CollectorRegistry

from server.bundle.files import FileFacts
from server.bundle.graphs import WEIGHTS_FILE
from server.bundle.manifest import Manifest
from server.bundle.variant_files import Variant
from server.decoding.options import DecodingOptions
from server.decoding.result import FinishReason, Hypothesis, Result, Timings
from server.engine.engine import Engine
from server.engine.flow import ANYONE, Flow
from server.errors import NotServing, TranslationError
from server.models.catalogue import Catalogue
from server.models.golden_sentence import GoldenSentence
from server.models.model import Model
from server.models.supervisor import Supervisor
from server.telemetry.catalogue_metrics import CatalogueMetrics
from server.telemetry.metrics import Metrics
from tests.fakes import CountingRunner, engine_limits


@dataclass(slots=True)
class EchoEngine:
    """Answers each sentence with its own ids; the k-th hypothesis lacks the last k of them.

    Attributes:
        refuses: raised by `check_room`, and by `submit` instead of taking anything.
        translates: gives the ids that a sentence is answered with, eos included.
        fails: gives a sentence's error, or None for it to be answered.
        is_holding: sentences wait for `release`.
        is_long: of results.
        alone_seconds: told by `check_room`.
        deadlines, options, flows: of each request.
        observed: characters and source tokens of each text.
        futures: of all sentences.
        looked: somebody has asked what sentences have so far.
    """

    refuses: TranslationError | None = None
    translates: Callable[[tuple[int, ...]], tuple[int, ...]] = lambda source: source
    fails: Callable[[tuple[int, ...]], BaseException | None] = lambda _: None
    is_holding: bool = False
    is_long: bool = False
    score: float = -1.0
    alone_seconds: float = 0.0
    deadlines: list[float] = field(default_factory=list)
    options: list[DecodingOptions] = field(default_factory=list)
    flows: list[Flow] = field(default_factory=list)
    observed: list[tuple[int, int]] = field(default_factory=list)
    futures: list[Future[Result]] = field(default_factory=list)
    looked: asyncio.Event = field(default_factory=asyncio.Event)
    submitted: asyncio.Event = field(default_factory=asyncio.Event)
    loop: asyncio.AbstractEventLoop | None = None  # set where `submit` is called from other threads
    _answers: list[Callable[[], None]] = field(default_factory=list)
    _held: dict[Future[Result], tuple[int, ...]] = field(default_factory=dict)

    def submit(
        self,
        sources: Sequence[Sequence[int]],
        options: DecodingOptions,
        deadline: float = math.inf,
        flow: Flow = ANYONE,
    ) -> list[Future[Result]]:
        self.check_room([], options, deadline, flow)
        self.flows.append(flow)
        self.deadlines.append(deadline)
        self.options.append(options)
        futures = [self._take(tuple(source), options) for source in sources]
        self.futures.extend(futures)
        if self.loop is None:
            self.submitted.set()
        else:
            self.loop.call_soon_threadsafe(self.submitted.set)
        return futures

    def check_room(
        self,
        lengths: Sequence[int],
        options: DecodingOptions,
        deadline: float = math.inf,
        flow: Flow = ANYONE,
    ) -> float:
        if self.refuses is not None:
            raise self.refuses
        return self.alone_seconds

    def observe_text(self, num_characters: int, source_tokens: int) -> None:
        self.observed.append((num_characters, source_tokens))

    def predict_seconds(self, source_tokens: Iterable[int], options: DecodingOptions) -> float:
        """As if each token took a second of each beam."""
        return float(sum(source_tokens) * options.beam_size)

    def most_sentences(self, options: DecodingOptions) -> int:
        """As if it had eight rows."""
        return 8 // options.beam_size

    def ids_so_far(self, futures: Collection[Future[Result]]) -> dict[Future[Result], list[int]]:
        """The first half of each translation that is held."""
        self.looked.set()
        held = {future: self.translates(source)[:-1] for future, source in self._held.items() if future in futures}
        return {future: list(ids[: len(ids) // 2]) for future, ids in held.items()}

    def stop(self) -> None:
        self.refuses = NotServing("the server has shut down")

    def release(self, index: int) -> None:
        """Answers the index-th of all sentences."""
        self._answers[index]()

    def forget(self) -> None:
        """Knows nothing of any sentence any more, as an engine that has answered them."""
        self.futures.clear()
        self._answers.clear()

    def _take(self, source: tuple[int, ...], options: DecodingOptions) -> Future[Result]:
        future: Future[Result] = Future()

        def answer() -> None:
            error = self.fails(source)
            if error is not None:
                future.set_exception(error)
                return
            future.set_result(self._echo(source, options))

        self._answers.append(answer)
        self._held[future] = source
        future.add_done_callback(self._held.pop)
        if not self.is_holding:
            answer()
        return future

    def _echo(self, source: tuple[int, ...], options: DecodingOptions) -> Result:
        ids = self.translates(source)[:-1]
        limit = options.max_output_tokens or len(ids)
        reason = FinishReason.LENGTH if limit < len(ids) else FinishReason.STOP
        hypotheses = tuple(
            Hypothesis(ids=ids[: max(1, min(limit, len(ids) - rank))], score=self.score - rank, finish_reason=reason)
            for rank in range(options.num_hypotheses)
        )
        timings = Timings(queue_seconds=0.25, encode_seconds=0.5, decode_seconds=1.0)
        return Result(hypotheses, timings, is_long=self.is_long)


def idle_supervisor(manifest: Manifest) -> Supervisor:
    """Returns one for a model whose engine is an echo: what it watches does not run."""
    metrics = Metrics(CollectorRegistry()).of_model("idle", "1")
    engine = Engine(CountingRunner(), manifest, metrics, engine_limits())
    return Supervisor(engine, GoldenSentence(manifest, "cpu-fp32"), metrics)


def catalogue_of(*models: Model, preferred: Sequence[str] = ()) -> Catalogue:
    """Returns a catalogue with models."""
    catalogue = Catalogue(CatalogueMetrics(CollectorRegistry()), preferred)
    for model in models:
        catalogue.put(model)
    return catalogue


def with_weights(model: Model) -> Model:
    """The model, whose variant has a file of weights."""
    variant = Variant(
        dtype="float32", embedding_offset=0, opsets={}, files={WEIGHTS_FILE: FileFacts(sha256="0", bytes=1 << 20)}
    )
    manifest = dataclasses.replace(model.manifest, variants={"cpu-fp32": variant})
    return dataclasses.replace(model, manifest=manifest)
