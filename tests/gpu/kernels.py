"""Which kernels a GPU runs for a step, for sentences that enter, and for rows that move, and for how long each."""

from collections.abc import Callable
from functools import partial

import numpy as np
import torch
from torch.profiler import ProfilerActivity, profile

from server.network import RowMoves, StepKind
from server.runtime.device_decoder import _NO_GRAPH, _Step
from server.runtime.runner import DeviceRunner, open_runner
from tests.gpu.parts import Context
from tests.gpu.subjects import Subject

_PAST, _SOURCE = 20, 25  # positions that are filled
_RUNS = 10
_MOST_SHOWN = 12
_NAME_LENGTH = 100


def list_kernels(context: Context, subject: Subject) -> None:
    """Figures the kernels of cuda-fp16 that take longest. CUDA tells PyTorch's profiler of all in the process.

    Steps run eagerly: the kernels are those of the captured graph, whose replay is one call.
    """
    runner = open_runner(subject.bundle, "cuda-fp16", context.device)
    assert isinstance(runner, DeviceRunner)
    row_counts = (1, 8) if context.is_quick else (1, 128, 512)
    decoder = runner.open_decoder(StepKind.PLAIN, max(row_counts))
    for rows in row_counts:
        step = _Step(decoder._sessions, context.device, decoder._caches, rows, 1, _NO_GRAPH)
        given = np.full(rows, 5), np.full(rows, _PAST, np.int32), np.full(rows, _SOURCE, np.int32)
        _figure(context, f"{subject.name}, step of {rows} rows", partial(step.run, *given))
    rows = min(32, max(row_counts) // 2)
    ids, lengths = np.full((rows, _SOURCE), 5, np.int64), np.full(rows, _SOURCE, np.int32)
    encoded, sources = runner.encode(ids, lengths), [(5,) * _SOURCE] * rows
    decoder.admit(0, encoded, sources)
    moves = RowMoves([*range(rows, 2 * rows)], [*range(rows)], [1] * rows)
    _figure(context, f"{subject.name}, {rows} rows encoded", partial(runner.encode, ids, lengths))
    _figure(context, f"{subject.name}, {rows} rows admitted", partial(decoder.admit, 0, encoded, sources))
    _figure(context, f"{subject.name}, {rows} rows moved within a sentence", partial(decoder.move, moves, _PAST))


def _figure(context: Context, title: str, run: Callable[[], object]) -> None:
    run()
    with profile(activities=[ProfilerActivity.CPU] + [ProfilerActivity.CUDA] * torch.cuda.is_available()) as profiler:
        for _ in range(_RUNS):
            run()
    found = [
        (event.self_device_time_total / _RUNS, event.count / _RUNS, event.key[:_NAME_LENGTH])
        for event in profiler.key_averages()
        if event.self_device_time_total
    ]
    context.figure(f"{title}, GPU us", sum(microseconds for microseconds, _, _ in found))
    context.figure(f"{title}, kernels", sum(count for _, count, _ in found))
    for microseconds, count, name in sorted(found, reverse=True)[:_MOST_SHOWN]:
        context.figure(f"{title}, us of {count:g} x {name}", microseconds)
