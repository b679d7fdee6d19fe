"""`babelserve-bulk` translates files of rows; see the package.

Exit codes: 0 every row is translated; 1 every row is written, and some have errors; 2 it cannot start; 3 it could not
go on, and goes on when it is started again.
"""

import logging
import os
import sys
import time
from collections.abc import Sequence

from server.bulk.command import build_parser, read_job, read_model_settings
from server.bulk.job import Job, Shard
from server.bulk.worker import Done, Worker
from server.errors import InvalidRequest, PreconditionFailed, StartupError
from server.telemetry.stderr import OneLineHandler, in_one_line, tell

_FAILED, _CANNOT_START, _CANNOT_GO_ON = 1, 2, 3


def main(arguments: Sequence[str] | None = None) -> None:
    """Runs the command line, and returns if every row is translated.

    Raises:
        SystemExit: with 1, as rows have errors. With exit codes 2 and 3 it ends the process without any clean-up.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    cut = words.index("--") if "--" in words else len(words)
    logging.basicConfig(handlers=[OneLineHandler()], level=logging.WARNING)
    try:
        options = build_parser().parse_args(words[:cut])
        job = read_job(options, read_model_settings(words[cut + 1 :]))
        code = _run(job, job.plan(), options.ray_workers)
    except StartupError as error:
        for fault in error.faults:
            tell(f"babelserve-bulk: {in_one_line(fault)}")
        code = _CANNOT_START
    # Of an extra, or of what fsspec needs for a protocol; what the job's options ask for, which the models do not have;
    # what no other start would change, such as languages that cannot be detected here.
    except (ImportError, InvalidRequest, PreconditionFailed) as error:
        tell(f"babelserve-bulk: {in_one_line(str(error))}")
        code = _CANNOT_START
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # an engine's, a disk's, Ray's, an object store's
        reason = ": ".join(filter(None, [type(error).__name__, in_one_line(str(error))]))
        tell(f"babelserve-bulk: {reason}; what is done stays done, start it again to go on")
        code = _CANNOT_GO_ON
    if code > _FAILED:  # lanes may still be in native code, which would crash while Python ends
        os._exit(code)
    if code:
        sys.exit(code)


def _run(job: Job, shards: Sequence[Shard], workers: int) -> int:
    """Translates what is left of a job, tells how far it is, and returns the exit code."""
    left = job.left(shards)
    started, done = time.monotonic(), list[Done]()

    def note(each: Done) -> None:
        done.append(each)
        tell(f"{len(shards) - len(left) + len(done)} of {len(shards)} shards, {sum(one.rows for one in done)} rows")

    if left and workers:
        from server.bulk import on_ray  # noqa: PLC0415  # an extra

        on_ray.run(job, left, workers, note)
    elif left:
        worker = Worker(job)
        started = time.monotonic()
        worker.run(left, note)
        worker.close()
    seconds = time.monotonic() - started
    job.finish()
    failed = job.num_failed()
    tell(
        f"babelserve-bulk: {sum(each.rows for each in done)} rows in {seconds:.1f} s,"
        f" {sum(each.tokens for each in done) / max(seconds, 1e-3):.0f} tokens a second;"
        f" of all rows of the job {failed} have errors"
    )
    return _FAILED if failed else 0


if __name__ == "__main__":
    main()
