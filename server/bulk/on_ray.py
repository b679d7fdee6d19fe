"""The same job on Ray Data: each worker is an actor with models of its own, on one core or one GPU.

Ray gives a shard to another worker if the one that had it dies. A shard whose output is there is not translated again.
All workers write the same output for a shard, so it does no harm if two of them have one.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, fields, replace
from typing import Any

import ray
import ray.data

from server.bulk.job import Job, Shard
from server.bulk.worker import Done, Worker

_NAMES = [each.name for each in fields(Shard)]


class _Actor:
    """A worker; Ray makes it once for each process, and calls it with a shard a time."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._worker = Worker(job)

    def __call__(self, batch: dict[str, Any]) -> dict[str, list[Any]]:
        """Translates the shards of a batch; returns a row for each that it wrote."""
        rows = zip(*(batch[name] for name in _NAMES), strict=True)
        shards = [Shard(url=str(url), start=int(start), end=int(end), output=str(out)) for url, start, end, out in rows]
        done: list[Done] = []
        self._worker.run(self._job.left(shards), done.append)
        return {each.name: [getattr(one, each.name) for one in done] for each in fields(Done)}


def run(job: Job, shards: Sequence[Shard], workers: int, tell: Callable[[Done], object]) -> None:
    """Translates shards on the Ray cluster that `RAY_ADDRESS` names, or else on one that it starts on this machine.

    Args:
        job: what to translate; every machine of the cluster must find its inputs, its output and its models.
        shards: of it.
        workers: how many actors, each with one lane unless the settings say how many.
        tell: is called for each shard when its output is written.

    Raises:
        ray.exceptions.RayError: a worker failed for another reason than its death.
    """
    lanes = job.settings.lanes or 1
    has_gpu = job.settings.device == "cuda"
    job = replace(job, settings=replace(job.settings, lanes=lanes))
    ray.init(log_to_driver=False, logging_level="ERROR")
    try:
        # A block for each shard: a worker that dies takes no more than one with it.
        dataset = ray.data.from_items([asdict(shard) for shard in shards], override_num_blocks=len(shards))
        done = dataset.map_batches(
            _Actor,
            fn_constructor_args=(job,),
            batch_size=1,
            concurrency=workers,
            num_cpus=0 if has_gpu else lanes,
            num_gpus=1 if has_gpu else 0,
        )
        for row in done.iter_rows():
            tell(Done(**row))
    finally:
        ray.shutdown()
