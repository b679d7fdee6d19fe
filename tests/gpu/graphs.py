"""First of three: does ONNX Runtime compute on this GPU what it computes on a CPU?

The tests marked `gpu`; encoder, decoder steps and ids of cuda-fp16 against cpu-fp32 on a CPU, on real sentences;
what copies of rows leave in caches and states; and captured CUDA graphs replayed against eager runs, for every number
of rows.
"""

import itertools
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from export.id_translator import open_translator
from server.decoding.options import DecodingOptions
from server.network import Decoder, StepInputs, StepKind
from server.runtime.device_decoder import DeviceDecoder, _Step
from server.runtime.runner import DeviceRunner, HostRunner, open_runner
from server.settings.settings import Settings
from tests.bench.text import ROOT
from tests.gpu.device import used_mib
from tests.gpu.moves import check_moves
from tests.gpu.parts import Context, Part, parser_of, run_parts
from tests.gpu.subjects import Subject, subjects

_BATCH = 16
_POSITIONS = 24  # of the target that are compared
_MOST_HALF_DIFFERENCE = 0.02  # of cross caches, as a part of the largest value
_MOST_LOG_PROB_DIFFERENCE = 0.3  # of the best tokens, with halves
_LEAST_EQUAL_IDS = 0.95  # of a trained model's greedy translations; a random model's near-ties are many
_LEAST_EQUAL_BEST = 0.9


def _tests(context: Context) -> None:
    """Runs the tests that are marked; on a CPU, where they would be skipped, only collects them."""
    marked = [path for path in sorted((ROOT / "tests").rglob("test_*.py")) if "mark.gpu" in path.read_text("utf-8")]
    report = context.out / "pytest.xml"
    # Warnings of packages that this machine has in other versions are no failures here.
    command = [sys.executable, "-m", "pytest", "-m", "gpu", "-W", "default", "-p", "no:cacheprovider"]
    command += ["-q", f"--junit-xml={report}"] if context.device == "cuda" else ["-q", "--collect-only"]
    done = subprocess.run([*command, *map(str, marked)], cwd=ROOT, timeout=150, check=False)
    context.check("exit code of pytest", done.returncode, done.returncode == 0, "0")
    if context.device == "cuda":
        counts = ET.parse(report).getroot().find("testsuite")
        assert counts is not None
        tests, skipped = int(counts.attrib["tests"]), int(counts.attrib["skipped"])
        context.check("tests that ran", tests - skipped, tests > 0 and not skipped, f"all {tests}")


def _runners(context: Context) -> None:
    """Makes and loads the models, which the next parts compare."""
    cores = len(os.sched_getaffinity(0))
    for subject in subjects(context.work, is_quick=context.is_quick):
        exact = open_runner(subject.bundle, "cpu-fp32", "cpu", cores)
        halves = open_runner(subject.bundle, "cuda-fp16", context.device)
        assert isinstance(exact, HostRunner)
        assert isinstance(halves, DeviceRunner)
        context.shared.setdefault("runners", []).append((subject, exact, halves))
        context.figure(f"{subject.name}, device MiB of all", used_mib(context.device))


def _loaded(context: Context) -> list[tuple[Subject, HostRunner, DeviceRunner]]:
    if "runners" not in context.shared:
        _runners(context)
    runners: list[tuple[Subject, HostRunner, DeviceRunner]] = context.shared["runners"]
    return runners


def _encoders(context: Context) -> None:
    for subject, exact, halves in _loaded(context):
        differences, largest = [], []
        for sources in _batches(subject, 1 if context.is_quick else 4):
            ids, lengths = _padded(sources)
            expected = _visible(exact.encode(ids, lengths), lengths)
            found = _visible([tensor.numpy() for tensor in halves.encode(ids, lengths)], lengths)
            differences.append(_difference(found, expected))
            largest.append(float(np.abs(expected).max()))
        worst = _largest(differences) / _largest(largest)
        bar = _MOST_HALF_DIFFERENCE
        context.check(f"{subject.name}, encoder: largest difference / largest value", worst, worst <= bar, f"<= {bar}")


def _steps(context: Context) -> None:
    """Feeds both decoders the tokens that cpu-fp32 chooses."""
    for subject, exact, halves in _loaded(context):
        same = total = 0
        differences = []
        for sources in _batches(subject, 1 if context.is_quick else 2):
            for expected, found in _side_by_side(exact, halves, sources):
                same += int((expected[0][:, 0] == found[0][:, 0]).sum())
                total += len(expected[0])
                differences.append(_difference(found[1][:, 0], expected[1][:, 0]))
        largest, bar = _largest(differences), _MOST_LOG_PROB_DIFFERENCE
        title = f"{subject.name}, steps: largest difference of the best log-probability"
        context.check(title, largest, largest <= bar, f"<= {bar}")
        context.check(f"{subject.name}, steps: same best token", same / total, same / total >= _LEAST_EQUAL_BEST,
                      f">= {_LEAST_EQUAL_BEST} of {total}")  # fmt: skip


def _side_by_side(exact: HostRunner, halves: DeviceRunner, sources: Sequence[tuple[int, ...]]) -> Any:
    """Yields of each step the best tokens and log-probabilities of both."""
    ids, lengths = _padded(sources)
    runners: tuple[HostRunner | DeviceRunner, ...] = exact, halves
    decoders: list[Decoder] = [runner.open_decoder(StepKind.PLAIN, len(sources)) for runner in runners]
    for decoder, runner in zip(decoders, runners, strict=True):
        decoder.reserve(len(sources), _POSITIONS + 1, int(lengths.max()))
        decoder.admit(0, runner.encode(ids, lengths), sources)
    tokens = np.full(len(sources), 2)  # bos; which token it is does not matter here
    for position in range(_POSITIONS):
        inputs = StepInputs(tokens, np.full(len(sources), position, np.int32), lengths, 8)
        expected, found = (tuple(array.copy() for array in decoder.step(inputs)) for decoder in decoders)
        yield expected, found
        tokens = expected[0][:, 0]


def _ids(context: Context) -> None:
    for subject, exact, halves in _loaded(context):
        sources = [list(ids) for ids in subject.sources[: 8 if context.is_quick else 100]]
        for beam_size in (1, 4):
            options = DecodingOptions(beam_size=beam_size, max_output_tokens=2 * _POSITIONS)
            translations = []
            for runner in (exact, halves):
                with open_translator(runner, subject.bundle) as translator:
                    translations.append([best.ids for best in translator(sources, options)])
            same = sum(one == other for one, other in zip(*translations, strict=True)) / len(sources)
            is_met = same >= _LEAST_EQUAL_IDS or not subject.is_trained
            bar = f">= {_LEAST_EQUAL_IDS}" if subject.is_trained else "none for random weights"
            context.check(f"{subject.name}, beam {beam_size}: same ids as cpu-fp32", same, is_met, bar)


def _captured(context: Context) -> None:
    """Replays each captured graph, runs the same eagerly, and replays it again: all three must agree."""
    max_rows = 16 if context.is_quick else Settings().max_rows
    for subject, _, halves in _loaded(context):
        decoder = halves.open_decoder(StepKind.PLAIN, max_rows)
        _fill(decoder, halves, subject, max_rows)
        decoder.step(StepInputs(np.full(1, 2), np.zeros(1, np.int32), np.ones(1, np.int32), 1))  # captures all
        context.figure(f"{subject.name}, graphs", len(decoder._steps))
        context.figure(f"{subject.name}, device MiB with graphs", used_mib(context.device))
        differences = []
        for (num_rows, top_k), step in decoder._steps.items():
            differences.append(_compare_with_eager(decoder, step, context.device, num_rows, top_k, subject))
            if differences[-1] != 0:
                name = f"{subject.name}, {num_rows} rows, {top_k} best: replay and eager differ by"
                context.figure(name, differences[-1])
        worst = _largest(differences)
        title = f"{subject.name}, replay against eager: largest difference of a log-probability"
        context.check(title, worst, worst <= 0.01, "<= 0.01 for every number of rows")


def _compare_with_eager(
    decoder: DeviceDecoder, step: _Step, device: str, num_rows: int, top_k: int, subject: Subject
) -> float:
    eager = _Step(decoder._sessions, device, decoder._caches, num_rows, top_k, -1)  # by -1 nothing is captured
    lengths = np.array([len(_source(subject, row)) for row in range(num_rows)], np.int32)
    numbers, differences = np.random.default_rng(num_rows), []
    for position in range(3):
        tokens = numbers.integers(4, decoder._embedding.shape[0], num_rows)
        past = np.full(num_rows, position, np.int32)
        found = [each.run(tokens, past, lengths)[1].copy() for each in (step, eager, step)]
        differences += [_difference(one, other) for one, other in itertools.pairwise(found)]
    return _largest(differences)


def _fill(decoder: DeviceDecoder, runner: DeviceRunner, subject: Subject, num_rows: int) -> None:
    for first in range(0, num_rows, _BATCH):
        sources = [_source(subject, row) for row in range(first, min(first + _BATCH, num_rows))]
        decoder.admit(first, runner.encode(*_padded(sources)), sources)


def _moves(context: Context) -> None:
    for subject, _, halves in _loaded(context):
        check_moves(context, subject, halves, *_padded(subject.sources[:5]))


def _source(subject: Subject, row: int) -> tuple[int, ...]:
    return subject.sources[row % len(subject.sources)]


def _batches(subject: Subject, count: int) -> list[list[tuple[int, ...]]]:
    return [subject.sources[i * _BATCH : (i + 1) * _BATCH] for i in range(count)]


def _padded(sources: Sequence[tuple[int, ...]]) -> tuple[NDArray[np.int64], NDArray[np.int32]]:
    lengths = np.array([len(ids) for ids in sources], np.int32)
    padded = np.zeros((len(sources), lengths.max()), np.int64)
    for row, ids in zip(padded, sources, strict=True):
        row[: len(ids)] = ids
    return padded, lengths


def _visible(caches: Sequence[NDArray[Any]], lengths: NDArray[np.int32]) -> NDArray[np.float32]:
    """Returns what lies at the sentences' own positions in cross caches [B, H, S, D], as one row."""
    rows = [cache[row, :, :length] for cache in caches for row, length in enumerate(lengths)]
    return np.concatenate([row.astype(np.float32).ravel() for row in rows])


def _difference(found: NDArray[np.float32], expected: NDArray[np.float32]) -> float:
    return float(np.abs(found - expected).max())


def _largest(differences: Sequence[float]) -> float:
    """Returns the largest, NaN if any is: it meets no bar, and Python's own `max` would miss it."""
    return float(np.max(differences))


PARTS = (
    Part("tests", 150, _tests),
    Part("models", 60, _runners),
    Part("encoders", 40, _encoders),
    Part("steps", 40, _steps),
    Part("ids", 60, _ids),
    Part("moves", 30, _moves),
    Part("captured", 60, _captured),
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the parts and returns the exit status."""
    return run_parts("graphs", PARTS, parser_of("graphs", __doc__, PARTS).parse_args(arguments))


if __name__ == "__main__":
    sys.exit(main())
