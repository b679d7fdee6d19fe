"""What sentences with terms, penalties, bans or sampling cost the sentences beside them.

    python -m tests.acceptance.steered_neighbours
    python -m tests.acceptance.steered_neighbours --variant cpu-fp32 --rounds 30

A lane steps a batch of sentences whose rows are full: once without an option, then with an option for a quarter of
them, and so on in turns. The options are such as people set, and change what these sentences say, and how long they
are. So what counts is the time for each row of a step. The times are those of cores, so that other processes hardly
matter. Processes of the same code differ by one percent from start to start, so the rounds are those of several
processes.
"""

import argparse
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from server.decoding.options import DecodingOptions, Sampling
from server.decoding.result import Result
from server.decoding.terms import Replaced, Terms
from server.engine.engine import Engine
from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.bench.rounds import turns
from tests.bench.statistics import median_of_ratios
from tests.bench.systems import Ids, Settings, open_engine
from tests.bench.text import DEFAULT_TEXT, read_text
from tests.samples import total

_ROWS = 32
_MOST = 1.05
_STARTS = 8  # processes
_PLAIN, _TERMS = "plain", "terms"
_OPTIONS: dict[str, dict[str, Any]] = {
    "penalty": {"repetition_penalty": 1.2},
    "n-grams": {"no_repeat_ngram_size": 3},
    "bans": {"min_output_tokens": 5, "suppressed": ((7000,), (7001,), *((i, i + 1) for i in range(100, 120)))},
    "sampling": {"sampling": Sampling()},
    "sampling, top_p 0.9": {"sampling": Sampling(top_p=0.9, temperature=0.8)},
    "sampling, top_k 10": {"sampling": Sampling(top_k=10)},
    "end_loops, of all": {"end_loops": True},
    _TERMS: {},
}

_KINDS = [
    (name, beam_size)
    for name, options in _OPTIONS.items()
    for beam_size in (1, 4)
    if (beam_size == 1 or "sampling" not in options) and (beam_size == 4 or name != _TERMS)
]


class _System(NamedTuple):
    """What is measured."""

    engine: Engine
    registry: CollectorRegistry
    sources: Sequence[Ids]

    @property
    def num_rows(self) -> float:
        """The rows of all steps so far, added up."""
        return total(self.registry, "babelserve_batch_rows_sum")


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--variant", default="cpu-int8", help="of the built-in model (default: %(default)s)")
    parser.add_argument("--rounds", type=int, default=160, metavar="N", help="of all processes (default: %(default)s)")
    arguments = parser.parse_args()
    with ProcessPoolExecutor(1, get_context("spawn"), max_tasks_per_child=1) as starts:
        rounds = max(1, arguments.rounds // _STARTS)
        measured = list(starts.map(_seconds_of_all, [arguments.variant] * _STARTS, [rounds] * _STARTS))
    checks = []
    for name, beam_size in _KINDS:
        with_option, plain = ([each for start in measured for each in start[name, beam_size][i]] for i in (0, 1))
        ratio = median_of_ratios(with_option, plain)
        checks.append(Check(f"{name}, beam {beam_size}: times plain", str(ratio), f"<= {_MOST}", ratio.value <= _MOST))
    return print_checks(checks)


def _seconds_of_all(variant: str, rounds: int) -> dict[tuple[str, int], tuple[list[float], list[float]]]:
    """Returns the times of a row of a step for each kind: with the option, and without it in the same rounds."""
    tokenizer = (BUILTIN_BUNDLE / "tokenizer.model").read_bytes()
    sources = [ids for ids in read_text(DEFAULT_TEXT, tokenizer).source_ids if 20 <= len(ids) <= 40]
    settings = Settings(system="ours", path=str(BUILTIN_BUNDLE), precision=variant, workers=1, threads=1, batch=_ROWS)
    registry = CollectorRegistry()
    engine = open_engine(settings, registry)
    system = _System(engine, registry, sources)
    engine.start()
    try:
        return {(name, beam_size): _seconds(system, name, beam_size, rounds) for name, beam_size in _KINDS}
    finally:
        engine.stop()


def _seconds(system: _System, name: str, beam_size: int, rounds: int) -> tuple[list[float], list[float]]:
    """Returns the time of a row with an option, and without it, in each round; both take turns."""
    seconds: dict[str, list[float]] = {_PLAIN: [], name: []}
    for number, kind in turns(list(seconds), rounds):
        own = _measure(system, kind, beam_size)
        if number >= 0:
            seconds[kind].append(own)
    return seconds[name], seconds[_PLAIN]


def _measure(system: _System, name: str, beam_size: int) -> float:
    """Returns the seconds of a core that a row of a step takes, if a quarter of the sentences has an option."""
    engine, sources = system.engine, system.sources[: _ROWS // beam_size]
    plain = DecodingOptions(beam_size=beam_size)
    steered = [replace(plain, **_OPTIONS.get(name, {}))] * len(sources)
    num_plain = 0 if name == "end_loops, of all" else len(sources) * 3 // 4
    if name == _TERMS:
        steered = [replace(plain, terms=_terms(future.result())) for future in engine.submit(sources, plain)]
    rows_before, started = system.num_rows, time.process_time()
    futures = [
        future
        for source, own in zip(sources[num_plain:], steered[num_plain:], strict=True)
        for future in engine.submit([source], own)
    ]
    futures += engine.submit(sources[:num_plain], plain) if num_plain else []
    for future in futures:
        future.result()
    return (time.process_time() - started) / (system.num_rows - rows_before)


def _terms(result: Result) -> Terms:
    """Returns two tokens of a translation as terms, so that it has them wherever they are."""
    ids = result.hypotheses[0].ids
    forms = tuple(((token,),) for token in (ids[len(ids) // 3], ids[2 * len(ids) // 3]))
    return Terms(forms, Replaced(((),) * len(forms), tuple(ids)))


if __name__ == "__main__":
    sys.exit(main())
