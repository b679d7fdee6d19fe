"""The time of a decoder step by its rows, replayed and eager, and which part of it the GPU has nothing to do.

Beside it the time of what a batch does between steps: rows that enter are encoded and copied, and rows move.
"""

import time
from collections.abc import Callable
from functools import partial

import numpy as np
import onnxruntime

from server.network import RowMoves, StepKind
from server.runtime.device_decoder import DeviceDecoder, _Step
from server.runtime.runner import DeviceRunner, open_runner
from tests.gpu.parts import Context
from tests.gpu.subjects import Subject

_PAST = 20  # positions that are filled: about the middle of a sentence
_SOURCE = 25


def time_steps(context: Context, subject: Subject) -> None:
    """Times greedy steps of cuda-fp16.

    Three times are taken of each number of rows: of a step as a lane takes it, controls in and chosen tokens out, by
    the captured graph and eagerly; and of replays that are queued one behind the other with nothing in between, which
    is what the GPU itself needs. What the first two have beyond the last is launches, copies and waiting.
    """
    row_counts, repeats = ((1, 8, 16), 3) if context.is_quick else ((1, 8, 32, 128, 512), 100)
    runner = open_runner(subject.bundle, "cuda-fp16", context.device)
    assert isinstance(runner, DeviceRunner)
    decoder = runner.open_decoder(StepKind.PLAIN, max(row_counts))
    for rows in row_counts:
        steps = {
            way: _Step(decoder._sessions, context.device, decoder._caches, rows, 1, graph_id)
            for way, graph_id in (("replayed", next(runner._graph_ids)), ("eager", -1))
        }
        given = np.full(rows, 5), np.full(rows, _PAST, np.int32), np.full(rows, _SOURCE, np.int32)
        seconds = {way: _median(partial(step.run, *given), repeats) for way, step in steps.items()}
        alone = _queued(steps["replayed"], repeats)
        title = f"{subject.name}, {rows} rows"
        for way, taken in seconds.items():
            context.figure(f"{title}, {way}, us", 1e6 * taken)
            context.figure(f"{title}, {way}, share that is not the GPU's", 1 - alone / taken)
        context.figure(f"{title}, GPU alone, us", 1e6 * alone)
        context.figure(f"{title}, eager / replayed", seconds["eager"] / seconds["replayed"])
    for rows in row_counts[: 2 if context.is_quick else 4]:  # half of the decoder's rows move at most
        _time_moves(context, subject, runner, decoder, rows, repeats)


def _time_moves(
    context: Context, subject: Subject, runner: DeviceRunner, decoder: DeviceDecoder, rows: int, repeats: int
) -> None:
    ids, lengths = np.full((rows, _SOURCE), 5, np.int64), np.full(rows, _SOURCE, np.int32)
    encoded, sources = runner.encode(ids, lengths), [(5,) * _SOURCE] * rows
    decoder.admit(0, encoded, sources)
    first, last = [*range(rows)], [*range(rows, 2 * rows)]
    of_beams, of_sentences = RowMoves(last, first, [1] * rows), RowMoves(last, first, [0] * rows)
    runs: dict[str, Callable[[], object]] = {
        "encoded": partial(runner.encode, ids, lengths),
        "admitted": partial(decoder.admit, 0, encoded, sources),
        "moved within a sentence": partial(decoder.move, of_beams, _PAST),
        "moved": partial(decoder.move, of_sentences, _PAST),
    }
    for what, run in runs.items():
        context.figure(f"{subject.name}, {rows} rows {what}, us", 1e6 * _median(run, repeats))


def _median(run: Callable[[], object], repeats: int) -> float:
    taken = []
    for _ in range(3 + repeats):
        started = time.perf_counter()
        run()
        taken.append(time.perf_counter() - started)
    return float(np.median(taken[3:]))  # the first ones capture and warm up


def _queued(step: _Step, repeats: int) -> float:
    options = onnxruntime.RunOptions()
    options.add_run_config_entry("gpu_graph_id", step._options.get_run_config_entry("gpu_graph_id"))
    options.add_run_config_entry("disable_synchronize_execution_providers", "1")
    step._binding.synchronize_outputs()
    started = time.perf_counter()
    for _ in range(repeats):
        step._session.run_with_iobinding(step._binding, options)
    step._binding.synchronize_outputs()
    return (time.perf_counter() - started) / repeats
