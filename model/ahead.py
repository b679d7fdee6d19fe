"""Epochs made ahead by other processes, since a GPU trains on one sooner than a processor rewrites and splits it."""

import multiprocessing
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from itertools import count
from typing import Any

import torch

from model.data import Batch
from model.processes import world_size

EpochMaker = Callable[[int], list[Batch]]
_Arrays = list[list[Any]]  # of each batch its tensors, as NumPy has them

_MOST_PROCESSES = 14  # each holds an epoch of its own, some hundred bytes a pair

_inherited: list[EpochMaker] = []  # one, in a process that makes epochs


def spare_cores() -> int:
    """Returns how many processes may make epochs for this one while it trains."""
    return max(0, min(_MOST_PROCESSES, len(os.sched_getaffinity(0)) // world_size() - 1))


def epochs_from(first: int, make: EpochMaker, num_processes: int) -> Iterator[list[Batch]]:
    """Yields the batches of epoch `first` and all that follow, the same whatever the number of processes.

    Args:
        first: number of an epoch, from 0.
        make: returns the batches of an epoch; processes inherit it, with what it refers to, by being forked.
        num_processes: that make as many epochs ahead; 0 makes each when it is asked for.

    Raises:
        BrokenProcessPool: one of them has died.
    """
    if not num_processes:
        yield from map(make, count(first))
        return
    context = multiprocessing.get_context("fork")
    pool = ProcessPoolExecutor(num_processes, context, initializer=_inherited.append, initargs=(make,))
    try:
        pending: deque[Future[_Arrays]] = deque()
        for epoch in count(first):
            pending.append(pool.submit(_made, epoch))
            if len(pending) == num_processes:
                yield [Batch(*map(torch.from_numpy, arrays)) for arrays in pending.popleft().result()]
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _made(epoch: int) -> _Arrays:
    """Returns arrays, for each tensor would take a file descriptor of the process that gets it."""
    batches = _inherited[-1](epoch)
    return [[each.numpy() for each in (batch.source, batch.target_in, batch.target_out)] for batch in batches]
