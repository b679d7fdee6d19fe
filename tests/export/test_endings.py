import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from export.endings import endings
from export.verify import VerificationError
from server.errors import BundleError, EngineFailed


class Refused(Exception):
    pass


@pytest.fixture(autouse=True)
def handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (FileNotFoundError("no file"), 2, "program: model: no file\n"),
        (ValueError("no value"), 2, "program: model: no value\n"),
        (Refused("not this"), 2, "program: model: not this\n"),
        (VerificationError("ids differ"), 1, "program: out was not written: ids differ\n"),
        (BundleError(["a", "b"]), 1, "program: out was not written: a\nb\n"),
        (EngineFailed("translation failed"), 1, "program: out was not written: translation failed\n"),
        (KeyboardInterrupt(), 1, ""),
    ],
)
def test_each_failure_has_its_code_and_one_message(
    capsys: pytest.CaptureFixture[str], error: BaseException, code: int, message: str
) -> None:
    with pytest.raises(SystemExit) as caught, endings("program", Path("out"), Refused, subject="model"):
        raise error

    assert caught.value.code == code
    assert capsys.readouterr().err == message


def test_without_a_subject_the_error_says_it_itself(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit), endings("program", Path("out")):
        raise ValueError("a.pt is none")

    assert capsys.readouterr().err == "program: a.pt is none\n"


def test_a_stream_that_is_closed_gets_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(SystemExit, match="2"), endings("program", Path("out")):
        pytest.fail("what it would print goes nowhere")
    monkeypatch.setattr(sys, "stderr", None)
    with pytest.raises(SystemExit, match="2"), endings("program", Path("out")):
        pytest.fail("what it would print goes nowhere")
    sys.stderr.close()

    assert capsys.readouterr().err == "program: stdout is closed\n"


def test_a_fault_of_ours_keeps_its_traceback() -> None:
    with pytest.raises(ZeroDivisionError), endings("program", Path("out"), Refused):
        sys.stdout.write(str(1 / 0))


def test_sigterm_ends_with_one() -> None:
    with pytest.raises(SystemExit) as caught, endings("program", Path("out")):
        os.kill(os.getpid(), signal.SIGTERM)

    assert caught.value.code == 1
