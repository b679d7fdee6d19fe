"""The other systems at their best on this machine: one kind of setting after the other is searched for, then timed."""

import dataclasses
import os
from collections.abc import Iterable, Sequence

from tests.bench.report import print_table
from tests.bench.systems import Ids, Settings
from tests.bench.worker import Worker

_MATRIX_CODE: tuple[dict[str, str], ...] = (
    {},
    {"CT2_FORCE_CPU_ISA": "AVX512"},
    {"CT2_FORCE_CPU_ISA": "AVX2"},
    {"CT2_USE_MKL": "0"},
    {"CT2_USE_MKL": "0", "CT2_FORCE_CPU_ISA": "AVX512"},
    {"CT2_USE_EXPERIMENTAL_PACKED_GEMM": "1"},
)
_BATCH_TOKENS = {"cpu": (256, 512, 1024, 2048, 4096), "cuda": (2048, 4096, 8192, 16384, 32768)}
_TYPES = {  # that are tried where one of them is asked for
    "int8": ("int8", "int8_float32", "int16"),
    "float16": ("float16", "bfloat16", "int8_float16"),
    "float32": ("float32",),
}
_REPEATS = 2


_known: dict[tuple[str, str, int, bool], Settings] = {}  # several sections ask for the same


def best_settings(start: Settings, sources: Sequence[Ids], beam_size: int, one_by_one: bool) -> Settings:
    """Returns the fastest settings found for one way of use.

    Args:
        start: the model, the device and the precision; similar precisions are tried too.
        sources: a sample to time with.
        beam_size: as in use.
        one_by_one: as in use; then batches do not matter.
    """
    way_of_use = str(start), start.path, beam_size, one_by_one
    if way_of_use not in _known:
        _known[way_of_use] = _calibrate(start, sources, beam_size, one_by_one)
    return _known[way_of_use]


def _calibrate(start: Settings, sources: Sequence[Ids], beam_size: int, one_by_one: bool) -> Settings:
    on_cpu = start.device == "cpu"
    cores = len(os.sched_getaffinity(0))
    layouts = [{"workers": 1, "threads": n} for n in ({1, cores} if on_cpu else {1})]
    if not one_by_one:
        layouts += [{"workers": cores if on_cpu else 2, "threads": 1}]
    found, best = _Search(sources, beam_size, one_by_one), start
    if start.system == "ctranslate2":
        best = found.best(  # together: which number of threads is best depends on the matrix code
            dataclasses.replace(best, **layout, environment=variables)  # type: ignore[arg-type]
            for layout in layouts
            for variables in (_MATRIX_CODE if on_cpu else ({},))
        )
        best = found.best(dataclasses.replace(best, precision=name) for name in _TYPES[start.precision])
    if not one_by_one:
        best = found.best(dataclasses.replace(best, batch=tokens) for tokens in _BATCH_TOKENS[start.device])
    way = (f"beam {beam_size}" if beam_size > 1 else "greedy") + (", shortlist" if start.shortlist else "")
    title = f"{start.system}'s settings, {way}, {'one at a time' if one_by_one else 'offline'}, tokens/s"
    print_table(title, ["settings", "tokens/s"], [[str(s), speed] for s, speed in found.tried.values()])
    return best


class _Search:
    def __init__(self, sources: Sequence[Ids], beam_size: int, one_by_one: bool) -> None:
        self.tried: dict[str, tuple[Settings, float]] = {}
        self._sources = sources
        self._beam_size = beam_size
        self._one_by_one = one_by_one

    def best(self, candidates: Iterable[Settings]) -> Settings:
        """Times those not timed yet and returns the fastest of these candidates."""
        named = {str(candidate): candidate for candidate in candidates}
        for name, candidate in named.items():
            if name not in self.tried:
                self.tried[name] = candidate, self._tokens_per_second(candidate)
        return max((self.tried[name] for name in named), key=lambda pair: pair[1])[0]

    def _tokens_per_second(self, settings: Settings) -> float:
        speeds = [0.0]
        try:
            with Worker(settings) as worker:
                for _ in range(1 + _REPEATS):  # the first one warms up
                    result = worker.translate(self._sources, beam_size=self._beam_size, one_by_one=self._one_by_one)
                    speeds.append(sum(result["lengths"]) / result["seconds"])
        except RuntimeError:
            return 0.0  # this processor, or this build, cannot do it
        return max(speeds)
