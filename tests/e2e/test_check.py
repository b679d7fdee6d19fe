"""`babelserve --check` on bundles that are made to keep it busy: each is refused at once, in one line a fault."""

import json
import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.bundle.bundle import Bundle
from tests.acceptance.bad_bundles import BadBundle, absurd_bundles
from tests.acceptance.server_process import REPOSITORY

MAX_SECONDS = 10.0  # a case; most take milliseconds
MAX_MIB = 200.0  # more than before the case: the tiny bundle itself has one
MAX_ADDRESS_SPACE = 16 << 30  # less than the holes; so that a failure of this test harms nobody else

# One process for all cases, of which each has its own time and peak ("5" resets it): starting one takes a second.
CHECKER = """
import contextlib, tempfile, json, sys, time
from pathlib import Path
import onnxruntime
from server.__main__ import main

def memory(name):
    return int(Path("/proc/self/status").read_text().partition(name + ":")[2].split()[0]) / 1024

for line in sys.stdin:
    Path("/proc/self/clear_refs").write_text("5")
    before, started = memory("VmRSS"), time.monotonic()
    with tempfile.TemporaryFile("w+") as written:
        with contextlib.redirect_stderr(written), contextlib.redirect_stdout(written):
            code = main(["--check", json.loads(line), "--lanes", "1"])
        seconds, grown = time.monotonic() - started, memory("VmHWM") - before
        written.seek(0)
        outcome = [code, written.read(), seconds, grown]
    print(json.dumps(outcome), flush=True)
"""

Outcome = tuple[int, str, float, float]  # exit code, what was written, seconds, MiB


def check(directories: list[str]) -> list[Outcome]:
    """Checks bundles one after the other in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", CHECKER],
        input="".join(json.dumps(directory) + "\n" for directory in directories),
        capture_output=True,
        text=True,
        check=False,
        cwd=REPOSITORY,
        timeout=MAX_SECONDS * len(directories),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MAX_ADDRESS_SPACE,) * 2),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


CASES = absurd_bundles("cpu-fp32")


@pytest.fixture(scope="module")
def outcomes(tiny_bundle: Bundle, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """What became of each case, by its name."""
    directory = tmp_path_factory.mktemp("absurd")
    for i, case in enumerate(CASES):
        shutil.copytree(tiny_bundle.directory, directory / str(i))
        case.spoil(directory / str(i))
    found = check([str(directory / str(i)) for i in range(len(CASES))])
    return {case.name: outcome for case, outcome in zip(CASES, found, strict=True)}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_absurd_bundle_is_refused_soon_and_in_little_memory(outcomes: dict[str, Outcome], case: BadBundle) -> None:
    code, written, seconds, mib = outcomes[case.name]

    assert code == 2
    assert [word for word in case.mentions if word not in written] == []
    faults = [line for line in written.splitlines() if not line.startswith("tiny 0: ")]
    assert all(line.startswith("babelserve: ") for line in faults)
    assert seconds < MAX_SECONDS
    assert mib < MAX_MIB


def test_what_cannot_be_a_path_is_refused_in_one_line(tiny_bundle: Bundle, tmp_path: Path) -> None:
    paths = [
        "a\0b",
        "a\nb",
        "\ud800",
        "x" * 5000,
        str(tmp_path / "nowhere"),
        str(tiny_bundle.directory / "manifest.json"),
    ]

    for code, written, _, _ in check(paths):
        assert code == 2
        assert written.startswith("babelserve: ")
        assert len(written.splitlines()) == 1
