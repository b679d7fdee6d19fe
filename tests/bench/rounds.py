"""Alternated rounds: all systems loaded, one at work at a time, so that a slow minute of the machine hits each."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.record import Row, rows_of
from tests.bench.report import print_table
from tests.bench.statistics import percentiles
from tests.bench.systems import Ids, Settings
from tests.bench.worker import Worker

_PEAK = "peak MB"  # of all rounds so far


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One comparison.

    Attributes:
        section: of the benchmark.
        model: that is used.
        name: of the way of use, such as "offline int8 greedy".
        beam_size: of all searches.
        one_by_one: whether a sentence is submitted when the one before is done.
        systems: how each is set, "ours" among them.
        headlines: measures that the summary of all results shows.
    """

    section: str
    model: str
    name: str
    beam_size: int
    one_by_one: bool
    systems: dict[str, Settings]
    headlines: tuple[str, ...] = ("tokens/s",)


def compare(setting: Setting, sources: Sequence[Ids], rounds: int) -> list[Row]:
    """Runs a setting and prints its table; returns ours beside each other system, or ours alone."""
    figures: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in setting.systems}
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(settings)) for name, settings in setting.systems.items()}
        for number, name in turns(list(workers), rounds):
            result = workers[name].translate(sources, beam_size=setting.beam_size, one_by_one=setting.one_by_one)
            for measure, value in _figures(result).items() if number >= 0 else ():
                figures[name][measure].append(value)
    for each in figures.values():
        each[_PEAK] = each[_PEAK][-1:]
    ours = figures["ours"]
    rows = []
    for name, theirs in figures.items():
        if name != "ours" or len(figures) == 1:
            rows += rows_of(
                ours,
                theirs if name != "ours" else None,
                setting.headlines,
                section=setting.section,
                model=setting.model,
                setting=setting.name,
                against=name,
                rounds=rounds,
                sentences=len(sources),
                settings=tuple(str(setting.systems[each]) for each in dict.fromkeys(("ours", name))),
            )
    _print(setting, figures, rows)
    return rows


def turns(names: Sequence[str], rounds: int) -> Iterator[tuple[int, str]]:
    """Yields whose turn it is, with the number of the round; that of -1 warms up, and none is always first."""
    for number in range(-1, rounds):
        for name in names if number % 2 else reversed(names):
            yield number, name


def length_facts(lengths: Sequence[int], sources: Sequence[Ids]) -> dict[str, float]:
    """Returns the distribution of target tokens per source token: mean over all, and the sentences' percentiles."""
    target, source = np.asarray(lengths, np.float64), np.array([len(ids) - 1 for ids in sources])
    low, middle, high = np.percentile(target / source, [5, 50, 95])
    return {
        "target/source": float(target.sum() / source.sum()),
        "p5": float(low),
        "p50": float(middle),
        "p95": float(high),
        "std": float((target / source).std()),
    }


def _figures(result: dict[str, Any]) -> dict[str, float]:
    """Returns the figures of one round."""
    tokens, seconds = sum(result["lengths"]), result["seconds"]
    figures = {
        "tokens/s": tokens / seconds,  # and not sentences, whose lengths differ a little between int8 systems
        "ms/sentence": 1000 * seconds / len(result["lengths"]),
        "CPU s/1000 tokens": 1000 * result["cpu_seconds"] / tokens,
        "padding %": 100 * result["padding_share"],
        "target tokens": float(tokens),
        _PEAK: result["peak_resident_bytes"] / 1e6,
    }
    if result["latencies"]:
        times = percentiles(result["latencies"])
        figures |= {f"{name} ms": 1000 * times[name] for name in ("p50", "p95")}
    return figures


def _print(setting: Setting, figures: dict[str, dict[str, list[float]]], rows: Sequence[Row]) -> None:
    measures = list(figures["ours"])
    cells = [
        [name, *(float(np.median(each[measure])) for measure in measures), str(setting.systems[name])]
        for name, each in figures.items()
    ]
    title = f"{setting.model}, {setting.name}: {rows[0].sentences} sentences, medians of {rows[0].rounds} rounds"
    print_table(title, ["system", *measures, "settings"], cells)
    for row in rows:
        if row.ratio and row.measure in setting.headlines:
            print(f"ours / {row.against}: {row.measure} {row.ratio}", flush=True)
