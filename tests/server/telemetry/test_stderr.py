import asyncio
import contextlib
import gc
import io
import logging
import os
import pty
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from server.telemetry.metrics import Metrics
from server.telemetry.rate_limit import BURST
from server.telemetry.stderr import MAX_LINE_CHARACTERS, is_watched, log_loop_exceptions, take_stderr, tell

SECRET = "what the user wrote"


def native_lines(caplog: pytest.LogCaptureFixture) -> list[dict[str, Any]]:
    return [vars(record)["facts"] for record in caplog.records if record.name == "server.telemetry.stderr"]


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def become_stderr(monkeypatch: pytest.MonkeyPatch, writer: int) -> None:
    """To be called by the test itself: between it and its fixtures pytest sets stderr anew."""
    raw = os.fdopen(writer, "wb", buffering=0, closefd=False)
    monkeypatch.setattr(sys, "stderr", io.TextIOWrapper(raw, write_through=True))


def test_a_terminal_is_watched_and_a_pipe_is_not(
    monkeypatch: pytest.MonkeyPatch, pipe: tuple[int, int], metrics: Metrics
) -> None:
    ends = pty.openpty()
    try:
        become_stderr(monkeypatch, ends[1])
        monkeypatch.setattr(sys, "__stderr__", sys.stderr)
        give_back = take_stderr(metrics)  # through which it is still seen
        assert is_watched() == os.isatty(2)
        give_back()
        assert is_watched()
    finally:
        for end in ends:
            os.close(end)
    become_stderr(monkeypatch, pipe[1])
    assert not is_watched()
    monkeypatch.setattr(sys, "stderr", None)
    assert not is_watched()


def test_what_native_code_writes_is_logged_line_by_line(caplog: pytest.LogCaptureFixture, metrics: Metrics) -> None:
    give_back = take_stderr(metrics)
    os.write(2, b'first\n{"level": "forged"}\nnot UTF-8 \xff\n')
    os.write(2, b"without an end")
    give_back()

    assert [facts["text"] for facts in native_lines(caplog)] == [
        "first",
        '{"level": "forged"}',
        "not UTF-8 \ufffd",
        "without an end",
    ]
    assert metrics.registry.get_sample_value("babelserve_native_log_lines_total") == 4


def test_a_flood_is_cut_counted_and_never_waited_for(caplog: pytest.LogCaptureFixture, metrics: Metrics) -> None:
    give_back = take_stderr(metrics)
    num_written = 0
    for _ in range(2000):
        with contextlib.suppress(BlockingIOError):  # the pipe is full: lost
            num_written += os.write(2, b"x" * 1000 + b"\n") == 1001
    give_back()

    counted = metrics.registry.get_sample_value("babelserve_native_log_lines_total")
    assert counted is not None
    assert counted >= num_written
    logged = native_lines(caplog)
    assert len(logged) < BURST + 50
    assert {len(facts["text"]) for facts in logged} <= set(range(MAX_LINE_CHARACTERS + 1))


def test_exceptions_of_threads_are_logged_without_their_words(
    caplog: pytest.LogCaptureFixture, metrics: Metrics, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise ValueError(SECRET)

    give_back = take_stderr(metrics)
    thread = threading.Thread(target=fail)
    thread.start()
    thread.join()
    give_back()

    (record,) = caplog.records
    assert record.levelno == logging.CRITICAL
    assert record.exc_info is not None
    assert record.exc_info[0] is ValueError
    assert SECRET not in record.getMessage() + capfd.readouterr().err


def test_exceptions_in_finalizers_are_logged_without_their_words(
    caplog: pytest.LogCaptureFixture, metrics: Metrics, capfd: pytest.CaptureFixture[str]
) -> None:
    class Fails:
        def __del__(self) -> None:
            raise ValueError(SECRET)

    give_back = take_stderr(metrics)
    del (Fails()).__dict__
    gc.collect()
    give_back()

    assert [record.getMessage() for record in caplog.records] == ["an exception could not be raised where it happened"]
    assert SECRET not in capfd.readouterr().err


async def test_exceptions_that_nobody_awaited_are_logged_without_their_words(caplog: pytest.LogCaptureFixture) -> None:
    async def fail() -> None:
        raise ValueError(SECRET)

    log_loop_exceptions(asyncio.get_running_loop())
    task = asyncio.create_task(fail())
    await asyncio.wait({task})
    del task
    gc.collect()

    assert [record.getMessage() for record in caplog.records] == ["nobody awaited an exception"]


def test_the_operator_is_told(pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    become_stderr(monkeypatch, pipe[1])

    tell("SERVING \udcff")

    assert os.read(pipe[0], 100) == b"SERVING \\udcff\n"


def test_an_operator_who_does_not_read_is_not_waited_for(
    pipe: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    become_stderr(monkeypatch, pipe[1])
    os.write(pipe[1], b"x" * 65536)  # as much as a pipe holds

    tell("SERVING")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", ">&- 2>&- <&-"])
def test_an_operator_who_is_not_there_is_no_fault(redirection: str) -> None:
    script = (
        "import os, socket; from server.telemetry.stderr import reserve_standard_streams, tell;"
        "reserve_standard_streams(); tell('SERVING'); raise SystemExit(socket.socket().fileno() < 3)"
    )

    done = subprocess.run(["sh", "-c", f'exec "$0" -c "$1" {redirection}', sys.executable, script], check=False)

    assert done.returncode == 0


def test_pythons_own_stderr_still_leads_to_the_operator_and_crashes_too() -> None:
    script = (
        "import faulthandler, os, sys; from prometheus_client import CollectorRegistry;"
        "from server.telemetry.metrics import Metrics; from server.telemetry.stderr import take_stderr;"
        "faulthandler.enable(os.dup(2)); take_stderr(Metrics(CollectorRegistry()));"
        "print('told', file=sys.stderr); os.write(2, b'native'); os.abort()"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    assert done.stderr.startswith("told\nFatal Python error: Aborted")
    assert "native" not in done.stderr
