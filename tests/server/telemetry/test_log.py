import json
import logging
import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from server.telemetry.log import LineHandler, add_facts, begin_request, describe, facts
from server.telemetry.metrics import Metrics

SECRET = "what the user wrote"


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


@pytest.fixture
def handler(metrics: Metrics, pipe: tuple[int, int]) -> LineHandler:
    return LineHandler(metrics, pipe[1])


def logger_of(handler: LineHandler) -> logging.Logger:
    logger = logging.getLogger("server.test")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(logging.INFO)
    return logger


def lines(pipe: tuple[int, int]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in os.read(pipe[0], 1 << 16).decode("ascii").splitlines()]


def test_a_record_is_one_json_line(handler: LineHandler, pipe: tuple[int, int]) -> None:
    logger_of(handler).info("one\ntwo %s", "\u2028", extra={"facts": {"code": "OK", "seconds": 0.5}})
    handler.close()

    (line,) = lines(pipe)
    assert (line["level"], line["logger"], line["event"]) == ("info", "server.test", "one\ntwo \u2028")
    assert (line["code"], line["seconds"]) == ("OK", 0.5)
    assert line["ts"] > 0


def test_a_traceback_is_logged_without_the_exceptions_text(handler: LineHandler, pipe: tuple[int, int]) -> None:
    try:
        raise ValueError(SECRET)
    except ValueError:
        logger_of(handler).exception("failed")
    handler.close()

    (line,) = lines(pipe)
    assert line["exception"] == "ValueError"
    assert line["traceback"][0].startswith("tests.server.telemetry.test_log:")
    assert SECRET not in json.dumps(line)


async def test_lines_of_a_request_carry_its_id_and_facts_are_its_own(
    handler: LineHandler, pipe: tuple[int, int]
) -> None:
    begin_request("id-1")
    add_facts(texts=1)
    add_facts(sentences=2)

    logger_of(handler).warning("in between")
    handler.close()

    assert lines(pipe)[0]["request_id"] == "id-1"
    assert facts() == {"texts": 1, "sentences": 2}


def test_a_record_that_cannot_be_formatted_harms_nobody(handler: LineHandler, metrics: Metrics) -> None:
    logger_of(handler).info("%d", "no number")
    logger_of(handler).info("facts", extra={"facts": {"code": object()}})
    handler.close()

    assert metrics.registry.get_sample_value("babelserve_log_messages_dropped_total") == 2


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ValueError("shape 3 by 4"), "ValueError: shape 3 by 4"),
        (
            FileNotFoundError(2, "No such file", "/home/some one/x.onnx"),
            "FileNotFoundError: [Errno 2] No such file: <path>",
        ),
        (
            RuntimeError("at /src/onnxruntime/core.cc:12 Run: out of memory"),
            "RuntimeError: at <path> Run: out of memory",
        ),
        (RuntimeError("C:\\models\\x.onnx is broken"), "RuntimeError: <path> is broken"),
        (RuntimeError("x" * 5000), "RuntimeError: " + "x" * 300),
        (RuntimeError(), "RuntimeError: "),
    ],
    ids=lambda value: type(value).__name__,
)
def test_an_errors_words_are_told_without_paths(error: Exception, words: str) -> None:
    assert describe(error) == words


def test_an_error_that_repeats_is_logged_a_while_and_then_counted(
    handler: LineHandler, metrics: Metrics, pipe: tuple[int, int]
) -> None:
    logger = logger_of(handler)
    for _ in range(300):
        logger.error("again")
    handler.close()

    suppressed = metrics.registry.get_sample_value("babelserve_log_messages_suppressed_total")
    assert suppressed is not None
    assert len(lines(pipe)) + suppressed == 300
    assert suppressed > 150


def test_lines_are_counted_by_level(handler: LineHandler, metrics: Metrics) -> None:
    logger = logger_of(handler)
    logger.error("one")
    logger.log(35, "a level without a name")
    handler.close()

    count = metrics.registry.get_sample_value
    assert count("babelserve_log_messages_total", {"level": "error"}) == 1
    assert count("babelserve_log_messages_total", {"level": "info"}) == 1


def test_when_nobody_reads_lines_are_dropped_and_the_caller_goes_on(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.telemetry.log.MAX_QUEUED_LINES", 3)
    reader, writer = os.pipe()
    handler = LineHandler(metrics, writer)
    logger = logger_of(handler)

    for _ in range(20):
        logger.info("x" * 65536)  # as much as a pipe holds

    dropped = metrics.registry.get_sample_value("babelserve_log_messages_dropped_total")
    with os.fdopen(reader, "rb") as readable, ThreadPoolExecutor(1) as pool:
        reading = pool.submit(readable.read)
        handler.close()
        os.close(writer)
        written = reading.result().count(b"\n")
    assert dropped is not None
    assert dropped > 0
    assert written + dropped == 20


def test_a_line_that_an_error_has_torn_swallows_no_other(
    metrics: Metrics, pipe: tuple[int, int], handler: LineHandler
) -> None:
    reader, writer = pipe
    os.set_blocking(writer, False)
    logger = logger_of(handler)
    logger.info("x" * 100_000)  # more than a pipe holds
    while metrics.registry.get_sample_value("babelserve_log_messages_dropped_total") == 0:
        time.sleep(0.001)
    logger.info("into a full pipe")
    while metrics.registry.get_sample_value("babelserve_log_messages_dropped_total") == 1:
        time.sleep(0.001)
    torn = os.read(reader, 1 << 20)
    logger.info("later")
    handler.close()

    assert not torn.endswith(b"\n")
    rest = os.read(reader, 1 << 16)
    assert rest.startswith(b"\n")
    assert [json.loads(line)["event"] for line in rest.splitlines()[1:]] == ["later"]
    assert metrics.registry.get_sample_value("babelserve_log_messages_dropped_total") == 2


def test_a_closed_stdout_does_not_stop_the_log(metrics: Metrics) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    handler = LineHandler(metrics, writer)

    logger_of(handler).info("to nobody")
    handler.close()
    os.close(writer)

    assert metrics.registry.get_sample_value("babelserve_log_messages_dropped_total") == 1
