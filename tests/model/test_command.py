import argparse
import errno
import os
import sys
from pathlib import Path

import pytest

from model.command import parse, told


def test_two_dashes_are_no_value_of_a_flag(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--max-steps", type=int)
    parser.add_argument("--names", nargs="+", default=[])
    monkeypatch.setattr(sys, "argv", ["babelserve-train", "--max-steps=--"])
    with pytest.raises(SystemExit) as caught:
        parse(parser)

    assert caught.value.code == 2
    assert "max-steps: " in capsys.readouterr().err
    monkeypatch.setattr(sys, "argv", ["babelserve-train"])
    assert parse(parser) == argparse.Namespace(max_steps=None, names=[])


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "run: out: No space left on device"),
        (FileNotFoundError(errno.ENOENT, "Not there", "a\x1b[2J"), "run: [Errno 2] Not there: 'a\\x1b[2J'"),
        (ValueError("a\x1b]0;b\r: c\nd"), "run: a\\x1b]0;b\\r: c\nd"),
        (ValueError("\n".join("x" * 99)), "run: " + "x\n" * 50 + "and 49 more"),
    ],
)
def test_what_the_caller_can_mend_is_told_in_printable_lines(error: Exception, said: str) -> None:
    with pytest.raises(SystemExit) as caught, told("run", Path("out"), OSError, ValueError):
        raise error

    assert caught.value.code == said


def test_a_fault_of_ours_stays_a_traceback() -> None:
    with pytest.raises(KeyError), told("run", Path("out"), OSError):
        raise KeyError("x")
