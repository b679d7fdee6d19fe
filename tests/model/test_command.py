import argparse
import errno
import os
import sys
from pathlib import Path

import pytest

from model.command import Parser, name, number, parse, printable, told


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


def test_a_wrong_argument_is_told_without_what_a_terminal_obeys(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["babelserve-train", "-\x1b[2J\nproven"])

    with pytest.raises(SystemExit) as caught:
        parse(Parser(prog="babelserve-train"))

    assert caught.value.code == 2
    told = capsys.readouterr().err.rstrip("\n").split("\n")[-1]
    assert told == r"babelserve-train: error: unrecognized arguments: -\x1b[2J\nproven"


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


def test_a_text_of_a_stranger_is_one_line_that_a_terminal_shows() -> None:
    assert printable("a\x1b]0;b\x07\n\u202e\ud800c \u00e9") == "a\\x1b]0;b\\x07\\n\\u202e\\ud800c \u00e9"


@pytest.mark.parametrize("text", ["nan", "-1", "100.1", "inf", "x", ""])
def test_a_number_is_within_its_range(text: str) -> None:
    assert number(0, 100)("99.5") == 99.5

    with pytest.raises(argparse.ArgumentTypeError, match="is no number from 0 to 100"):
        number(0, 100)(text)


@pytest.mark.parametrize("text", ["", "a\nb", "\x1b[2J", "x" * 129])
def test_a_name_is_one_that_a_manifest_may_have(text: str) -> None:
    assert name("en-de") == "en-de"

    with pytest.raises(argparse.ArgumentTypeError, match="is not 1 to 128 printable characters"):
        name(text)
