"""How much of the engine's speed a job of `babelserve-bulk` has, in this process.

    python -m tests.bench.bulk
    python -m tests.bench.bulk --beam-size 4 --lines 2000 --rounds 5
    python -m tests.bench.bulk -- --bundle bundle

In each round the job translates the lines of a text, and then the same engine the sentences that the job gave it: all
at once and the longest first, as `tests.bench.systems` does. These are token ids, so what is left to the job is to read
and split texts, to write translations, and to keep the lanes busy meanwhile. They include second searches, of which
the job writes only one translation. What loads the model is not timed.
"""

import argparse
import contextlib
import itertools
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from server.bulk.command import build_parser, read_job, read_model_settings
from server.bulk.worker import Worker
from server.decoding.options import DecodingOptions
from server.decoding.result import Result
from server.engine.engine import Engine
from tests.bench.report import print_table
from tests.bench.statistics import median_ratio
from tests.bench.systems import Ids
from tests.bench.text import DEFAULT_TEXT


class _Asked(NamedTuple):
    """Sentences that a job gave an engine, with their options."""

    engine: Engine
    sources: Sequence[Ids]
    options: DecodingOptions


class Times(NamedTuple):
    """Seconds, and those of all cores."""

    wall: float
    cores: float


def main() -> int:
    """Entry point; returns the exit status."""
    words = sys.argv[1:]
    cut = words.index("--") if "--" in words else len(words)
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--text", type=Path, default=DEFAULT_TEXT, metavar="FILE", help="default: %(default)s")
    parser.add_argument("--lines", type=int, default=4000, metavar="N", help="repeated from the text (%(default)s)")
    parser.add_argument("--target", default="de", metavar="CODE", help="default: %(default)s")
    parser.add_argument("--beam-size", type=int, default=1, metavar="N", help="default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="default: %(default)s")
    arguments = parser.parse_args(words[:cut])
    lines = itertools.islice(itertools.cycle(arguments.text.read_text().splitlines()), arguments.lines)
    rounds: list[tuple[Times, Times]] = []
    with tempfile.TemporaryDirectory() as folder:
        text = Path(folder, "text.txt")
        text.write_text("".join(f"{line}\n" for line in lines))
        for number in range(-1, arguments.rounds):  # that of -1 warms up
            flags = ["--target", arguments.target, "--beam-size", str(arguments.beam_size)]
            times = compare([str(text), "--out", f"{folder}/{number}", *flags], words[cut + 1 :])
            rounds += [times] * (number >= 0)
    jobs, engines = zip(*rounds, strict=True)
    cells = [[name, *map(np.median, zip(*own, strict=True))] for name, own in (("job", jobs), ("engine", engines))]
    print_table(f"{arguments.lines} lines, medians of {arguments.rounds} rounds", ["", "s", "CPU s"], cells)
    for place, name in enumerate(("time", "time of cores")):
        part = median_ratio([each[place] for each in engines], [each[place] for each in jobs])
        print(f"speed of the job / of the engine, by the {name}: {part}", flush=True)
    return 0


def compare(words: Sequence[str], model_words: Sequence[str]) -> tuple[Times, Times]:
    """Returns what a job takes, and what the engine takes for the same sentences alone."""
    job = read_job(build_parser().parse_args(words), read_model_settings(model_words))
    shards = job.plan()
    with contextlib.closing(Worker(job)) as worker, _recorded() as asked:
        times = _time(lambda: worker.run(shards, lambda _: None))
        return times, _time(lambda: _ask(tuple(asked)))


def _ask(asked: Sequence[_Asked]) -> None:
    """Gives engines all sentences again, and waits for them."""
    alike: defaultdict[tuple[Engine, DecodingOptions], list[Ids]] = defaultdict(list)
    for engine, sources, options in asked:
        alike[engine, options] += sources
    futures = []
    for (engine, options), sources in sorted(alike.items(), key=lambda each: len(each[1]), reverse=True):
        futures += engine.submit(sorted(sources, key=lambda ids: -len(tuple(ids))), options)
    for future in futures:
        future.result()


def _time(work: Callable[[], object]) -> Times:
    wall, cores = time.perf_counter(), time.process_time()
    work()
    return Times(time.perf_counter() - wall, time.process_time() - cores)


@contextlib.contextmanager
def _recorded() -> Iterator[list[_Asked]]:
    """Yields a list that grows by what engines are asked for until the block is left."""
    asked: list[_Asked] = []
    submit = Engine.submit

    def noted(
        engine: Engine, sources: Iterable[Iterable[int]], options: DecodingOptions, *others: Any
    ) -> list[Future[Result]]:
        own = [tuple(ids) for ids in sources]
        futures = submit(engine, own, options, *others)
        asked.append(_Asked(engine, tuple(own), options))  # a group that is refused comes again
        return futures

    with patch.object(Engine, "submit", noted):
        yield asked


if __name__ == "__main__":
    sys.exit(main())
