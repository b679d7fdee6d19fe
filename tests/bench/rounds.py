"""Alternated rounds: all systems loaded, one at work at a time, so that a slow minute of the machine hits each."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.bench.report import print_table
from tests.bench.statistics import median_ratio, percentiles
from tests.bench.systems import Ids, Settings
from tests.bench.worker import Worker


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One comparison: a way of use, and how each system is set for it, "ours" among them."""

    name: str
    beam_size: int
    one_by_one: bool
    systems: dict[str, Settings]


@dataclass(slots=True)
class Measured:
    """One system's rounds."""

    tokens_per_second: list[float] = field(default_factory=list)
    cpu_seconds_per_1000_tokens: list[float] = field(default_factory=list)
    seconds_per_sentence: list[float] = field(default_factory=list)
    latencies: list[float] = field(default_factory=list)
    padding_share: float = 0.0
    peak_resident_bytes: int = 0
    lengths: list[int] = field(default_factory=list)

    def add(self, result: dict[str, Any]) -> None:
        """Notes one round."""
        tokens = sum(result["lengths"])
        self.tokens_per_second.append(tokens / result["seconds"])
        self.cpu_seconds_per_1000_tokens.append(1000 * result["cpu_seconds"] / tokens)
        self.seconds_per_sentence.append(result["seconds"] / len(result["lengths"]))
        self.latencies += result["latencies"]
        self.padding_share = result["padding_share"]
        self.peak_resident_bytes = result["peak_resident_bytes"]
        self.lengths = result["lengths"]


def compare(setting: Setting, sources: Sequence[Ids], rounds: int) -> dict[str, Any]:
    """Runs a setting and prints its table; returns all that was measured."""
    measured = {name: Measured() for name in setting.systems}
    with ExitStack() as stack:
        workers = {name: stack.enter_context(Worker(settings)) for name, settings in setting.systems.items()}
        for number in range(-1, rounds):
            names = list(workers) if number % 2 else list(reversed(workers))  # neither is always first
            for name in names:
                result = workers[name].translate(sources, beam_size=setting.beam_size, one_by_one=setting.one_by_one)
                if number >= 0:  # the first round warms up
                    measured[name].add(result)
    _print(setting, measured, len(sources))
    return {
        "sentences": len(sources),
        "source_tokens": sum(map(len, sources)),
        "settings": {name: str(settings) for name, settings in setting.systems.items()},
        "ours_to": {name: _ratios(measured["ours"], each) for name, each in measured.items() if name != "ours"},
        "systems": {name: _plain(each) for name, each in measured.items()},
    }


def length_facts(lengths: Sequence[int], sources: Sequence[Ids]) -> dict[str, float]:
    """Returns the distribution of target tokens per source token: mean over all, and the sentences' percentiles."""
    target, source = np.asarray(lengths, np.float64), np.array([len(ids) - 1 for ids in sources])
    low, middle, high = np.percentile(target / source, [5, 50, 95])
    return {
        "target_per_source": float(target.sum() / source.sum()),
        "p5": float(low),
        "p50": float(middle),
        "p95": float(high),
        "standard_deviation": float((target / source).std()),
    }


def _ratios(ours: Measured, theirs: Measured) -> dict[str, Any]:
    return {
        "speed": median_ratio(ours.tokens_per_second, theirs.tokens_per_second),
        "time": median_ratio(_seconds_per_token(ours), _seconds_per_token(theirs)),
        "memory": ours.peak_resident_bytes / theirs.peak_resident_bytes,
    }


def _seconds_per_token(measured: Measured) -> list[float]:
    # Per token, not per sentence: in int8 the two systems' sentences differ a little in length.
    return [1 / speed for speed in measured.tokens_per_second]


def _plain(measured: Measured) -> dict[str, Any]:
    facts: dict[str, Any] = {
        "tokens_per_second": measured.tokens_per_second,
        "cpu_seconds_per_1000_tokens": float(np.median(measured.cpu_seconds_per_1000_tokens)),
        "milliseconds_per_sentence": 1000 * float(np.median(measured.seconds_per_sentence)),
        "padding_share": measured.padding_share,
        "peak_resident_bytes": measured.peak_resident_bytes,
        "target_tokens": sum(measured.lengths),
    }
    if measured.latencies:
        facts["latency_seconds"] = percentiles(measured.latencies)
    return facts


def _print(setting: Setting, measured: dict[str, Measured], sentences: int) -> None:
    header = [
        "system",
        "tokens/s",
        "ms/sentence",
        "CPU s/1000 tokens",
        "padding",
        "peak MB",
        "target tokens",
        "settings",
    ]
    rows = []
    for name, each in measured.items():
        facts = _plain(each)
        rows.append(
            [
                name,
                float(np.median(each.tokens_per_second)),
                facts["milliseconds_per_sentence"],
                facts["cpu_seconds_per_1000_tokens"],
                f"{each.padding_share:.1%}",
                f"{each.peak_resident_bytes / 1e6:.0f}",
                sum(each.lengths),
                str(setting.systems[name]),
            ]
        )
    rounds = len(measured["ours"].tokens_per_second)
    print_table(f"{setting.name}: {sentences} sentences, medians of {rounds} rounds", header, rows)
    for name, theirs in measured.items():
        if name != "ours":
            ratios = _ratios(measured["ours"], theirs)
            print(f"ours / {name}: tokens/s {ratios['speed']}; time per token {ratios['time']}", flush=True)
