"""A file job that is killed again and again, and whose server is, leaves the file that an undisturbed one leaves.

    python -m tests.acceptance.resumed_equals_undisturbed [--kills 20] [--lines 2737] [--seed 1]

Jobs of `babelserve-translate --input --output` over the same lines, on servers with the built-in model in float32,
where a sentence's translation depends on nothing else: one undisturbed; then jobs whose client is killed (SIGKILL) at
random instants and goes on by `--resume`; then jobs whose server is, and is started anew at the same port. A job that
ends before all kills is compared, and followed by another; the last is let end.
"""

import argparse
import gzip
import itertools
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import REPOSITORY, ServerProcess, launch_server

DATA = REPOSITORY / "tests" / "data"
_FLAGS = ("--variant", "cpu-fp32")
_MOST_SECONDS = 1200.0


def job(address: str, source: Path, target: Path, *flags: str) -> list[str]:
    """The command of a job that can go on."""
    files = ["--input", str(source), "--output", str(target)]
    return [
        sys.executable,
        "-m",
        "babelserve",
        "--address",
        address,
        "--target",
        "de",
        *files,
        "--beam-size",
        "1",
        *flags,
    ]


@contextmanager
def serving(stderr: Path, *flags: str) -> Iterator[ServerProcess]:
    """A server that serves, killed at the end."""
    server = launch_server(stderr, [*_FLAGS, *flags])
    try:
        server.wait_until_serving()
        yield server
    finally:
        server.process.kill()
        server.process.wait()


class Jobs:
    """Jobs over the same lines, one after the other.

    Args:
        source: lines.
        expected: what an undisturbed job makes of them.
        target: output; gone after each job.

    Attributes:
        num_kills: that have hit a client, or its server.
        num_ended: jobs.
        faults: of those that ended otherwise than the undisturbed one.
    """

    def __init__(self, source: Path, expected: Path, target: Path) -> None:
        self.num_kills = self.num_ended = 0
        self.faults: list[str] = []
        self._source = source
        self._expected = expected.read_bytes()
        self._target = target

    def kill_clients(self, address: str, num_kills: int, pauses: Iterator[float]) -> None:
        """Kills so many clients, each after a pause in seconds, and lets the last one end."""
        command = job(address, self._source, self._target, "--resume")
        while self.num_kills < num_kills:
            self._run_until(subprocess.Popen(command, cwd=REPOSITORY), next(pauses))
        self._run_until(subprocess.Popen(command, cwd=REPOSITORY), _MOST_SECONDS)

    def kill_servers(self, stderr: Path, num_kills: int, pauses: Iterator[float], *flags: str) -> None:
        """Kills so many servers, each after a pause in seconds, and starts them anew; flags are the servers'."""
        with ExitStack() as stack:
            server = stack.enter_context(serving(stderr, *flags))
            same_port = ("--port", str(server.port))
            command = job(server.address, self._source, self._target)
            client = subprocess.Popen(command, cwd=REPOSITORY)
            try:
                while self.num_kills < num_kills:
                    try:
                        self._compare(client.wait(next(pauses)))
                        client = subprocess.Popen(command, cwd=REPOSITORY)
                    except subprocess.TimeoutExpired:
                        server.process.kill()
                        server.process.wait()
                        self.num_kills += 1
                        server = stack.enter_context(serving(stderr, *same_port, *flags))
                self._compare(client.wait(_MOST_SECONDS))
            finally:
                client.kill()
                client.wait()

    def _run_until(self, client: "subprocess.Popen[bytes]", seconds: float) -> None:
        try:
            self._compare(client.wait(seconds))
        except subprocess.TimeoutExpired:
            client.kill()
            self.num_kills += client.wait() == -signal.SIGKILL

    def _compare(self, exit_code: int) -> None:
        self.num_ended += 1
        found = self._target.read_bytes() if self._target.exists() else b""
        self._target.unlink(missing_ok=True)
        if exit_code or found != self._expected:
            lines, wanted = found.split(b"\n"), self._expected.split(b"\n")
            num_different = sum(a != b for a, b in zip(lines, wanted, strict=False))
            self.faults.append(f"exit code {exit_code}, {len(lines) - 1} lines, {num_different} differ")


def lines_of_text(count: int) -> bytes:
    """So many lines: captions, everyday sentences, news, every tenth blank, and a few of several sentences."""
    captions = gzip.decompress((DATA / "multi30k_val.en.gz").read_bytes()).splitlines()
    everyday = [line.partition(b"\t")[0] for line in (DATA / "tatoeba_held_out.tsv").read_bytes().splitlines()]
    sentences = captions + everyday + (DATA / "newstest2014_500.en.txt").read_bytes().splitlines()
    random.Random(1).shuffle(sentences)
    taken = itertools.cycle(sentences)
    return b"".join(
        b"\n" if number % 10 == 9 else b" ".join(itertools.islice(taken, 5 if number % 100 == 50 else 1)) + b"\n"
        for number in range(count)
    )


def _checks(name: str, jobs: Jobs, num_kills: int) -> list[Check]:
    is_equal = not jobs.faults
    measured = "; ".join(jobs.faults) or f"{jobs.num_ended} of {jobs.num_ended} jobs"
    return [
        Check(f"{name}s killed under a job", str(jobs.num_kills), f"at least {num_kills}", jobs.num_kills >= num_kills),
        Check(f"outputs equal, {name} killed", measured, "all, byte by byte", is_equal),
    ]


def main() -> int:
    """Runs it and prints the table; exit status as `print_checks` has it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="of the client, and of the server (default 20)")
    parser.add_argument("--lines", type=int, default=2737, help="of the file (default 2737)")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory(prefix="babelserve-") as name:
        folder = Path(name)
        source, expected, stderr = folder / "lines.txt", folder / "expected.txt", folder / "stderr.log"
        source.write_bytes(lines_of_text(arguments.lines))
        with serving(stderr) as server:
            started = time.monotonic()
            subprocess.run(job(server.address, source, expected), cwd=REPOSITORY, check=True)
            seconds = time.monotonic() - started
            # Twice as long in the mean as would make one job of all runs: each loses its start, and what it had asked.
            longest = 4 * seconds / arguments.kills
            pauses = (chance.uniform(0.0, longest) for _ in itertools.count())
            clients = Jobs(source, expected, folder / "client.txt")
            clients.kill_clients(server.address, arguments.kills, pauses)
        servers = Jobs(source, expected, folder / "server.txt")
        servers.kill_servers(stderr, arguments.kills, pauses)
    return print_checks(
        [
            Check("an undisturbed job", f"{arguments.lines} lines, {seconds:.1f} s"),
            *_checks("client", clients, arguments.kills),
            *_checks("server", servers, arguments.kills),
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
