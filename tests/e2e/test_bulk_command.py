"""The command as it is run: to its end, killed, and without what it needs."""

import importlib.util
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.acceptance.server_process import REPOSITORY
from tests.server.bulk.parts import SENTENCES, output

_TIMEOUT_SECONDS = 200.0


# The command, which gets SIGINT when its first shard is written: from without, it may be over before the signal comes.
_INTERRUPTED = """
import os, signal
from server.bulk.__main__ import main
from server.bulk.job import Job

def write_and_interrupt(*arguments, write=Job.write):
    write(*arguments)
    os.kill(os.getpid(), signal.SIGINT)

Job.write = write_and_interrupt
main()
"""


def start(
    tmp_path: Path, out: str, more: Sequence[str] = (), program: Sequence[str] = ("-m", "server.bulk")
) -> "subprocess.Popen[str]":
    words = ["--target", "de", "--beam-size", "1", "--shard-kib", "1", "--out", str(tmp_path / out)]
    command = [sys.executable, *program, *words, str(tmp_path / "in.txt"), *more, "--", "--lanes", "1"]
    return subprocess.Popen(command, cwd=REPOSITORY, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def lines(tmp_path: Path) -> list[str]:
    rows = 60 * SENTENCES
    (tmp_path / "in.txt").write_text("".join(f"{each}\n" for each in rows))
    return rows


def test_a_job_that_is_killed_goes_on_and_loses_and_doubles_nothing(tmp_path: Path, lines: list[str]) -> None:
    whole = start(tmp_path, "whole")
    assert "300 rows" in whole.communicate(timeout=_TIMEOUT_SECONDS)[1]
    folder, num_seen = tmp_path / "killed", 0
    for _ in range(3):
        job = start(tmp_path, "killed")
        deadline = time.monotonic() + _TIMEOUT_SECONDS
        while len(list(folder.glob("0*"))) <= num_seen and job.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        job.kill()
        job.communicate()
        num_seen = len(list(folder.glob("0*")))
    last = start(tmp_path, "killed")
    last.communicate(timeout=_TIMEOUT_SECONDS)

    assert (whole.returncode, last.returncode) == (0, 0)
    assert num_seen >= 3
    assert output(folder) == output(tmp_path / "whole")
    assert output(folder).count(b"\n") == len(lines)
    assert (folder / "_SUCCESS").exists()
    assert [path.name for path in folder.iterdir() if path.name.startswith(".")] == []


def test_a_job_that_is_interrupted_says_so_in_a_line_and_goes_on(tmp_path: Path, lines: list[str]) -> None:
    job = start(tmp_path, "out", program=["-c", _INTERRUPTED])
    said = job.communicate(timeout=_TIMEOUT_SECONDS)[1]
    num_written = len(list((tmp_path / "out").glob("0*")))
    last = start(tmp_path, "out")
    last.communicate(timeout=_TIMEOUT_SECONDS)

    assert (job.returncode, last.returncode) == (3, 0)
    assert 1 <= num_written < len(list((tmp_path / "out").glob("0*")))
    assert said.splitlines()[-1].startswith("babelserve-bulk: KeyboardInterrupt; what is done stays done")
    assert "Traceback" not in said
    assert output(tmp_path / "out").count(b"\n") == len(lines)


def test_a_job_that_is_done_does_nothing(tmp_path: Path, lines: list[str]) -> None:
    start(tmp_path, "out").communicate(timeout=_TIMEOUT_SECONDS)
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("0*")}

    again = start(tmp_path, "out")
    said = again.communicate(timeout=_TIMEOUT_SECONDS)[1]

    assert (again.returncode, before) == (0, {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("0*")})
    assert "babelserve-bulk: 0 rows" in said


def test_rows_with_errors_are_told_by_the_exit_code(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_bytes(b"A dog runs.\n\xff\n")
    for rows in ("2 rows", "0 rows"):  # a job that is done says it again
        job = start(tmp_path, "out")
        said = job.communicate(timeout=_TIMEOUT_SECONDS)[1]

        assert (job.returncode, output(tmp_path / "out").count(b"\n")) == (1, 2)
        assert f"babelserve-bulk: {rows}" in said
        assert "1 have errors" in said


@pytest.mark.parametrize(
    ("more", "code", "words"),
    [
        (["--format", "parquet"], 2, "in.txt: is no Parquet file"),
        (["--beam-size", "99"], 2, "--beam-size: must be in 1..16"),
        (["--options", '{"decoding": {"num_hypotheses": 9}}'], 2, "decoding.num_hypotheses"),
        (["--ray-workers", "1"], 2, "ray"),
    ],
)
def test_what_is_wrong_is_one_line(more: list[str], code: int, words: str, tmp_path: Path, lines: list[str]) -> None:
    if "parquet" in more:
        pytest.importorskip("pyarrow")
    if "--ray-workers" in more and importlib.util.find_spec("ray") is not None:
        pytest.skip("Ray is installed")
    job = start(tmp_path, "out", more)
    said = job.communicate(timeout=_TIMEOUT_SECONDS)[1]

    assert job.returncode == code
    assert words in said
    assert "Traceback" not in said
