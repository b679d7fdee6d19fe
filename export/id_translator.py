"""Translates token ids with the engine that serves, and without a server."""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from export.examples import Example
from server.bundle.bundle import Bundle
from server.bundle.languages import Ids
from server.decoding.options import DecodingOptions
from server.decoding.result import Hypothesis, Result
from server.engine.engine import Engine
from server.engine.limits import EngineLimits, LaneLimits
from server.network import Runner
from server.telemetry.metrics import Metrics


@dataclass(frozen=True, slots=True)
class IdTranslator:
    """An engine over one variant, for translating token ids without a server.

    Attributes:
        engine: running.
        let_go: frees the memory of its weights until it runs again.
        placeholder_ids: of the vocabulary.
    """

    engine: Engine
    let_go: Callable[[], None] = lambda: None
    placeholder_ids: Sequence[int] = ()

    def __call__(
        self, sources: list[list[int]], options: DecodingOptions, prefixes: Sequence[Ids] = ()
    ) -> list[Hypothesis]:
        """Returns each sentence's best hypothesis, in shared batches; `prefixes`, or those of `options`, are forced."""
        return [future.result().hypotheses[0] for future in self._submit(sources, options, prefixes)]

    def one_by_one(
        self, sources: list[list[int]], options: DecodingOptions, prefixes: Sequence[Ids] = ()
    ) -> list[Hypothesis]:
        """As `__call__`, but each sentence runs alone."""
        prefixes = prefixes or [options.forced_prefix] * len(sources)
        return [self([source], options, [prefix])[0] for source, prefix in zip(sources, prefixes, strict=True)]

    def of_examples(self, examples: Sequence[Example], options: DecodingOptions) -> list[Hypothesis]:
        """As `__call__`, for sentences with the prefixes of their languages."""
        return self([list(each.source_ids) for each in examples], options, [each.prefix for each in examples])

    def _submit(
        self, sources: list[list[int]], options: DecodingOptions, prefixes: Sequence[Ids]
    ) -> list[Future[Result]]:
        futures: dict[int, Future[Result]] = {}
        prefixes = prefixes or [options.forced_prefix] * len(sources)
        for prefix in dict.fromkeys(prefixes):
            places = [i for i, each in enumerate(prefixes) if each == prefix]
            of_prefix = dataclasses.replace(options, forced_prefix=prefix)
            found = self.engine.submit([sources[i] for i in places], of_prefix)
            futures.update(zip(places, found, strict=True))
        return [futures[i] for i in range(len(sources))]


@contextmanager
def open_translator(
    runner: Runner,
    bundle: Bundle,
    max_rows: int = 64,
    let_go: Callable[[], None] = lambda: None,
    placeholder_ids: Sequence[int] = (),
) -> Iterator[IdTranslator]:
    """Runs an engine of one lane for the time of a `with` block; the last two are as in `IdTranslator`."""
    engine = Engine(
        runner,
        bundle.manifest,
        Metrics(CollectorRegistry()).of_model(bundle.manifest.name, bundle.manifest.version),
        EngineLimits(
            num_lanes=1,
            lane=LaneLimits(max_rows=max_rows, max_cached_positions=10**9, max_encode_tokens=2048),
            max_waiting_tokens=10**9,
            max_waiting_sentences=10**9,
        ),
        placeholder_ids=placeholder_ids,
    )
    engine.start()
    try:
        yield IdTranslator(engine, let_go, placeholder_ids)
    finally:
        engine.stop()
