"""R21, R22: what the server and the client lean on goes away: the log's reader, who scrapes, a job's own process."""

import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tests.acceptance.report import Check
from tests.acceptance.server_process import REPOSITORY
from tests.chaos.case import Case, Options, asynchronous, none, told
from tests.chaos.clients import clients
from tests.chaos.observations import metric, resources
from tests.chaos.requests import keyed_requests
from tests.chaos.servers import broken_server

_MOST_GROWTH_MIB = 32.0
_NUM_ROWS = 400


async def deaf(options: Options) -> list[Check]:
    """R21: nobody reads the log any more: calls are answered all the same, and memory is bounded."""
    with tempfile.TemporaryDirectory() as directory:
        pipe = Path(directory) / "log"
        os.mkfifo(pipe)
        reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)  # it never reads
        try:
            with broken_server(prefix=["sh", "-c", f'exec "$@" 2>{pipe} >{pipe}', "sh"]) as server:
                async with clients([server.address], keyed_requests(500)) as client:
                    await client.closed(8, 2.0)
                    before = resources(server.pid)
                    await client.closed(8, options.count(30, 4))
                    growth = (resources(server.pid).resident_bytes - before.resident_bytes) / 2**20
                dropped = metric(server.process, "log_messages_dropped_total")
        finally:
            os.close(reader)
    return [
        none("journal", client.faults([])),
        told("calls", str(len(client.journal.entries))),
        told("log lines dropped", f"{dropped:g}"),
        Check("memory taken", f"{growth:.1f} MiB", f"<= {_MOST_GROWTH_MIB:g} MiB", growth <= _MOST_GROWTH_MIB),
    ]


def killed_jobs(options: Options) -> Iterator[Check]:
    """R22: `babelserve-translate` killed at random instants: what it wrote is whole rows of the whole run's output.

    It has no memory of its own: a job goes on with the rows that are not written yet.
    """
    chance = random.Random(options.seed)
    requests = keyed_requests(_NUM_ROWS)
    rows = [texts[0] for texts in requests.contents]
    expected = [texts[0] for texts in requests.expected]
    num_kills = options.count(20, 3)
    with broken_server() as server, tempfile.TemporaryDirectory() as directory:
        output = Path(directory) / "output"
        written: list[str] = []
        for kill in range(num_kills + 1):
            with output.open("wb") as file:
                job = _start_job(server.address, file)
                assert job.stdin is not None
                if kill < num_kills:
                    _feed_and_kill(job, rows[len(written) :], chance)
                else:
                    job.communicate("\n".join(rows[len(written) :]).encode() + b"\n")
            whole, _, _ = output.read_bytes().rpartition(b"\n")
            written += whole.decode().split("\n") if whole else []
    num_equal = sum(found == right for found, right in zip(written, expected, strict=False))
    yield told("kills", str(num_kills))
    yield Check("rows", f"{len(written)} of {len(rows)}, {num_equal} right", str(len(rows)), written == expected)
    yield told("not there", "no bulk command resumes by itself")


def _start_job(address: str, output: BinaryIO) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "babelserve", "--address", address, "--target", "de", "--beam-size", "1"]
    return subprocess.Popen(
        [*command, "--batch-lines", "8"],
        stdin=subprocess.PIPE,
        stdout=output,
        stderr=subprocess.DEVNULL,
        cwd=REPOSITORY,
    )


def _feed_and_kill(job: "subprocess.Popen[bytes]", rows: list[str], chance: random.Random) -> None:
    """Gives a job its rows, and kills it soon after it has begun."""
    assert job.stdin is not None
    job.stdin.write("\n".join(rows).encode() + b"\n")
    job.stdin.close()
    time.sleep(chance.uniform(0.3, 0.8))
    job.kill()
    job.wait()


CASES = (
    Case("R21", "a log that nobody reads", asynchronous(deaf)),
    Case("R22", "a bulk job that is killed", killed_jobs),
)
