"""Does a long queue cost anything? CPU per token and memory of our engine while 10 to 10,000 sentences wait.

The engine is kept saturated, so that batches are equally full however many wait: it runs as many sentences as it has
rows, N more wait, and the next one of the text is submitted whenever one is done. CPU time is taken between two
finished sentences whose numbers are the same for every N, whole passes over the text apart; tokens are counted where
they are made, as the sum of all steps' rows. Each sentence is a request of its own, which is the hardest for the
queue's round robin, or N of them are one request; then half of it to one and a half times it waits. Each run has a
process of its own: `python -m tests.bench.backlog`, a run by JSON on stdin, what was measured by JSON on stdout.

The last run offers the same to a queue with the server's default limits, which refuses what is too much.
"""

import dataclasses
import itertools
import json
import math
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass

from prometheus_client import CollectorRegistry

from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.engine import Engine
from server.errors import NotServing, Overloaded
from server.settings.settings import Settings as ServerSettings
from tests.bench.record import Row, rows_of
from tests.bench.report import print_table
from tests.bench.systems import NO_LIMIT, Ids, Settings, open_engine, peak_resident_bytes, resident_bytes
from tests.bench.text import ROOT
from tests.samples import total

_SIZES = (10, 100, 1_000, 10_000)
_MIN_TOKENS = 20_000
_GREEDY = DecodingOptions(beam_size=1, with_scores=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One run of one process.

    Attributes:
        settings: of our engine.
        num_waiting: N.
        is_one_request: whether N sentences make a request, or each does.
        max_waiting_tokens: limit of the queue.
        max_waiting_sentences: limit of the queue.
        first: finished sentence from which on is measured.
        last: the one up to which is measured.
    """

    settings: Settings
    num_waiting: int
    is_one_request: bool
    max_waiting_tokens: int = NO_LIMIT
    max_waiting_sentences: int = NO_LIMIT
    first: int
    last: int

    @property
    def name(self) -> str:
        """What its row of the table is called."""
        if self.max_waiting_sentences < NO_LIMIT:
            return f"{self.num_waiting} offered, default limits"
        return f"{self.num_waiting}, {'one request' if self.is_one_request else 'a request each'}"


class Backlog:
    """Keeps sentences waiting in an engine: as many as its rows and N more are in it at any time."""

    def __init__(
        self, engine: Engine, sources: Iterable[Ids], *, num_rows: int, num_waiting: int, num_per_request: int
    ) -> None:
        self._engine = engine
        self._sources = itertools.cycle(sources)
        self._num_per_request = num_per_request
        self._num_first = num_rows + num_waiting + num_per_request // 2
        self._changed = threading.Condition()  # the lanes answer at the same time
        self.num_finished = 0
        self.num_refused = 0

    def fill(self) -> None:
        """Submits the first sentences; before the engine starts, for the same beginning whatever N is."""
        size = self._num_first if self._num_per_request > 1 else 1
        for _ in range(self._num_first // size):
            self._submit(size)

    def wait(self, num_finished: int) -> None:
        """Returns when so many sentences are done."""
        with self._changed:
            self._changed.wait_for(lambda: self.num_finished >= num_finished)

    def _submit(self, size: int) -> None:
        try:
            futures = self._engine.submit(itertools.islice(self._sources, size), _GREEDY)
        except Overloaded:
            self.num_refused += size
            return
        except NotServing:
            return  # the run is over
        for future in futures:
            future.add_done_callback(self._replace)

    def _replace(self, future: Future[Result]) -> None:
        if future.exception() is not None:
            return  # as above
        with self._changed:
            self.num_finished += 1
            if self.num_finished % self._num_per_request == 0:
                self._submit(self._num_per_request)
            self._changed.notify_all()


def plan_runs(settings: Settings, num_sentences: int, num_tokens: int, *, quick: bool) -> list[Run]:
    """Returns the runs of one round: each N as requests of one sentence and as one request, and the default limits."""
    first = 2 * settings.workers * settings.batch
    window = {"first": first, "last": first + num_sentences * (1 if quick else math.ceil(_MIN_TOKENS / num_tokens))}
    limits = ServerSettings()
    return [
        *(
            Run(settings=settings, num_waiting=num_waiting, is_one_request=is_one_request, **window)
            for is_one_request in (False, True)
            for num_waiting in (_SIZES[::2] if quick else _SIZES)
        ),
        Run(
            settings=settings,
            num_waiting=_SIZES[-1],
            is_one_request=False,
            max_waiting_tokens=limits.max_waiting_tokens,
            max_waiting_sentences=limits.max_waiting_sentences,
            **window,
        ),
    ]


def measure_backlog(model: str, settings: Settings, sources: Sequence[Ids], rounds: int, *, quick: bool) -> list[Row]:
    """Runs every N in alternated rounds and prints the table; returns each N beside 10 waiting."""
    runs = plan_runs(settings, len(sources), sum(map(len, sources)), quick=quick)
    measured: dict[str, dict[str, list[float]]] = {run.name: defaultdict(list) for run in runs}
    for number in range(1 if quick else rounds):
        for run in runs if number % 2 else reversed(runs):  # none is always first
            for measure, value in _figures(_in_own_process(run, sources)).items():
                measured[run.name][measure].append(value)
    rows: list[Row] = []
    for run in runs:
        fewest = next(each.name for each in runs if each.is_one_request == run.is_one_request)
        rows += rows_of(
            measured[run.name],
            measured[fewest],
            section="backlog",
            model=model,
            setting=run.name,
            against=f"{_SIZES[0]} waiting",
            rounds=1 if quick else rounds,
            settings=(str(settings),),
        )
    measures = list(measured[runs[0].name])
    header = ["waiting", *measures, "ratio of CPU"]
    table = [
        [setting, *(row.ours for row in found), found[0].quotient]
        for setting, found in ((run.name, [row for row in rows if row.setting == run.name]) for run in runs)
    ]
    print_table(f"A long queue, medians of {rows[0].rounds} rounds, {settings}", header, table)
    return rows


def _figures(facts: dict[str, float]) -> dict[str, float]:
    return {
        "CPU s/1000 tokens": 1000 * facts["cpu_seconds"] / facts["tokens"],
        "rows/step": facts["tokens"] / facts["steps"],
        "resident MB": facts["resident_bytes"] / 1e6,
        "peak MB": facts["peak_resident_bytes"] / 1e6,
        "waiting at the end": facts["waiting"],
        "refused": facts["refused"],
        "tokens": facts["tokens"],
    }


def main() -> None:
    """The side of the run's own process."""
    given = json.load(sys.stdin)
    run = Run(**{**given["run"], "settings": Settings(**given["run"]["settings"])})
    print(json.dumps(_measure(run, given["sources"])))


def _measure(run: Run, sources: Sequence[Ids]) -> dict[str, float]:
    registry = CollectorRegistry()
    engine = open_engine(run.settings, registry, run.max_waiting_tokens, run.max_waiting_sentences)
    backlog = Backlog(
        engine,
        sources,
        num_rows=run.settings.workers * run.settings.batch,
        num_waiting=run.num_waiting,
        num_per_request=run.num_waiting if run.is_one_request else 1,
    )
    backlog.fill()
    engine.start()
    backlog.wait(run.first)
    before = _counts(registry)
    backlog.wait(run.last)
    after = _counts(registry)
    facts = {
        **{name: after[name] - before[name] for name in after},
        "waiting": total(registry, "babelserve_queue_depth"),
        "refused": backlog.num_refused,
        "resident_bytes": resident_bytes(),
        "peak_resident_bytes": peak_resident_bytes(),
    }
    engine.stop()
    return facts


def _counts(registry: CollectorRegistry) -> dict[str, float]:
    return {
        "cpu_seconds": time.process_time(),
        "tokens": total(registry, "babelserve_batch_rows_sum"),  # each row of a step is a token
        "steps": total(registry, "babelserve_batch_rows_count"),
    }


def _in_own_process(run: Run, sources: Sequence[Ids]) -> dict[str, float]:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bench.backlog"],
        input=json.dumps({"run": dataclasses.asdict(run), "sources": sources}),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=ROOT,
    )
    facts: dict[str, float] = json.loads(done.stdout)
    return facts


if __name__ == "__main__":
    main()
