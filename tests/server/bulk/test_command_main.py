"""`babelserve-bulk` as a command: what it tells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from server.bulk.__main__ import main
from server.bundle.bundle import Bundle
from tests.chaos.hostile_bundles import BUNDLES


@pytest.fixture(autouse=True)
def without_an_end_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "_exit", sys.exit)


@pytest.mark.parametrize(
    ("flags", "fault"),
    [
        (["--out=--", "--target", "de"], "--out: -- is no value"),
        (["--out", "out"], "the following arguments are required: --target"),
        (
            ["--out", "out", "--target", "\x1b[2J"],
            "target_language_code: must be one of de, not a value of 4 characters",
        ),
    ],
)
def test_wrong_options_are_told_in_a_line(
    tiny_bundle: Bundle,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    flags: list[str],
    fault: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("rows.txt").write_text("A dog runs.\n", encoding="utf-8")

    with pytest.raises(SystemExit) as caught:
        main(["rows.txt", *flags, "--", "--bundle", str(tiny_bundle.directory)])

    assert caught.value.code == 2
    assert capfd.readouterr().err == f"babelserve-bulk: {fault}\n"


def test_a_network_that_fails_is_told_without_what_a_terminal_obeys(
    tiny_bundle: Bundle, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    bundle = shutil.copytree(tiny_bundle.directory, tmp_path / "bundle")
    BUNDLES["failing"](bundle)
    flags = ["--", "--bundle", str(bundle), "--variant", "cpu-fp32"]
    (tmp_path / "rows.txt").write_text("A dog runs.\n", encoding="utf-8")

    with pytest.raises(SystemExit) as caught:
        main([str(tmp_path / "rows.txt"), "--out", str(tmp_path / "out"), "--target", "de", *flags])

    told = capfd.readouterr().err.rstrip("\n").split("\n")
    assert caught.value.code == 2
    assert told[-1].startswith("babelserve-bulk: golden sentence: translating it failed: ")
    assert all(map(str.isprintable, told))


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        ("m.StartupError(['no model'])", 2, b"no model"),
        ("m.PreconditionFailed('no memory')", 2, b"no memory"),
        (r"ValueError('of Ray\nand more')", 3, rb"ValueError: of Ray\nand more; what is done stays done"),
        ("OSError('no space')", 3, b"OSError: no space; what is done"),
        ("KeyboardInterrupt()", 3, b"KeyboardInterrupt; what is done"),
    ],
)
def test_an_error_is_told_in_a_line_and_ends_the_process_whatever_still_works(
    error: str, code: int, words: bytes
) -> None:
    program = (
        "import threading, time, server.bulk.__main__ as m\n"
        "def fail(*_):\n"
        "    threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        f"    raise {error}\n"
        "m.read_job = fail\n"
        "m.main(['rows.txt', '--target', 'de', '--out', 'out'])\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)

    assert done.returncode == code
    assert done.stderr.startswith(b"babelserve-bulk: " + words)
    assert done.stderr.count(b"\n") == 1
