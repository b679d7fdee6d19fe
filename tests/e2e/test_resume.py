"""A few kills of what `tests.acceptance.resumed_equals_undisturbed` does by the dozen."""

import itertools
import subprocess
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from tests.acceptance.resumed_equals_undisturbed import Jobs, job, lines_of_text, serving
from tests.acceptance.server_process import REPOSITORY

NUM_LINES = 300


@pytest.fixture
def flags(tiny_bundle: Bundle) -> list[str]:
    return ["--bundle", str(tiny_bundle.directory), "--lanes", "1"]


@pytest.fixture
def jobs(tmp_path: Path, flags: list[str]) -> Jobs:
    """Jobs over some lines that an undisturbed one has translated."""
    source, expected = tmp_path / "in.txt", tmp_path / "expected.txt"
    source.write_bytes(lines_of_text(NUM_LINES))
    with serving(tmp_path / "stderr.log", *flags) as server:
        subprocess.run(job(server.address, source, expected), cwd=REPOSITORY, check=True)
    assert expected.read_bytes().count(b"\n") == NUM_LINES
    return Jobs(source, expected, tmp_path / "out.txt")


def test_killed_clients_go_on_where_they_were(jobs: Jobs, flags: list[str], tmp_path: Path) -> None:
    with serving(tmp_path / "stderr.log", *flags) as server:
        jobs.kill_clients(server.address, 3, itertools.cycle([0.5, 0.9, 0.7]))

    assert (jobs.num_kills, jobs.faults) == (3, [])
    assert jobs.num_ended >= 1


def test_a_client_outlives_killed_servers(jobs: Jobs, flags: list[str], tmp_path: Path) -> None:
    jobs.kill_servers(tmp_path / "stderr.log", 2, itertools.cycle([0.5, 0.2]), *flags)

    assert (jobs.num_kills, jobs.faults) == (2, [])
    assert jobs.num_ended >= 1
