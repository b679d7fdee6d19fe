"""JSON lines on stdout, written by a thread of their own; never a user's text.

A line holds ts (Unix seconds), level, logger, event (the message), the request's id where there is one, and the facts
of a request (`add_facts`). Of an exception its type and the places of its traceback are logged, not its message,
which may quote what a user sent; only the engine's, which are about tensors, are told in words (`describe`). When
nobody reads stdout, lines are dropped and counted; the server does not wait for its log.
"""

import contextlib
import json
import logging
import os
import queue
import re
import threading
import time
import traceback
from contextvars import ContextVar

from server.telemetry.metrics import LOG_LEVELS, Metrics
from server.telemetry.rate_limit import RepeatedRecords

MAX_QUEUED_LINES = 10_000
_FLUSH_SECONDS = 2.0
_GATHER_SECONDS = 0.01  # for lines to be written together: to wake the thread for each keeps the event loop waiting
_MOST_GATHERED = 1000  # lines
_MAX_WORDS_CHARACTERS = 300
_PATH = re.compile(r"""(['"])[^'"\n]*[/\\][^'"\n]*\1|\S*[/\\]\S*""")  # quoted, or up to the next space

Fact = str | int | float

request_id: ContextVar[str | None] = ContextVar("request_id", default=None)
_facts: ContextVar[dict[str, Fact] | None] = ContextVar("facts", default=None)


def begin_request(identity: str) -> None:
    """Makes this context's log lines carry the id, and opens its facts."""
    request_id.set(identity)
    _facts.set({})


def add_facts(**facts: Fact) -> None:
    """Adds counts or closed names (never text) to the line that ends this context's request."""
    current = _facts.get()
    if current is not None:
        current.update(facts)


def facts() -> dict[str, Fact]:
    """Returns what `add_facts` has collected."""
    return dict(_facts.get() or {})


def describe(error: BaseException) -> str:
    """Returns an exception's type and words, cut, without the paths in them: for errors that hold nothing of users'."""
    words = _PATH.sub("<path>", str(error))[:_MAX_WORDS_CHARACTERS]
    return f"{type(error).__qualname__}: {words}"


class JsonFormatter(logging.Formatter):
    """One record, one JSON object. `extra={"facts": {...}}` becomes fields."""

    def format(self, record: logging.LogRecord) -> str:
        """See `logging.Formatter.format`."""
        fields: dict[str, object] = {
            "ts": round(record.created, 6),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": record.getMessage(),
        }
        identity = request_id.get()
        if identity is not None:
            fields["request_id"] = identity
        fields.update(getattr(record, "facts", {}))
        if record.exc_info and record.exc_info[0]:
            fields["exception"] = record.exc_info[0].__qualname__
            fields["traceback"] = [
                f"{frame.f_globals.get('__name__')}:{number} {frame.f_code.co_name}"
                for frame, number in traceback.walk_tb(record.exc_info[2])
            ]
        return json.dumps(fields, ensure_ascii=True)


class LineHandler(logging.Handler):
    """Formats at once (the context is the caller's) and writes on a thread.

    Args:
        metrics: counts lines by level.
        file_descriptor: where lines go.
    """

    def __init__(self, metrics: Metrics, file_descriptor: int) -> None:
        super().__init__()
        self.setFormatter(JsonFormatter())
        self.addFilter(RepeatedRecords(metrics))
        self._metrics = metrics
        self._file_descriptor = file_descriptor
        self._counts = {level: metrics.log_messages_total.labels(level) for level in LOG_LEVELS}
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()  # half as dear as one that is bounded
        self._thread = threading.Thread(target=self._write, name="log", daemon=True)
        self._thread.start()

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        self._counts.get(record.levelname.lower(), self._counts["info"]).inc()
        line = None
        with contextlib.suppress(Exception):  # a record of a library's that cannot be formatted
            line = self.format(record)
        if line is None or self._lines.qsize() >= MAX_QUEUED_LINES:
            self._metrics.log_messages_dropped_total.inc()
        else:
            self._lines.put(line)

    def close(self) -> None:
        """Writes what is queued, for at most a few seconds."""
        self._lines.put(None)
        self._thread.join(_FLUSH_SECONDS)
        super().close()

    def _write(self) -> None:
        is_open, is_torn = True, False  # whether the last byte that was written is within a line
        while is_open:
            lines = [self._lines.get()]
            time.sleep(_GATHER_SECONDS)
            lines += [self._lines.get() for _ in range(min(self._lines.qsize(), _MOST_GATHERED))]
            is_open = None not in lines
            data = b"\n" * is_torn + "".join(f"{line}\n" for line in lines if line is not None).encode()
            try:
                while data:
                    num_written = os.write(self._file_descriptor, data)
                    is_torn = not data[:num_written].endswith(b"\n")
                    data = data[num_written:]
            except OSError:  # stdout is gone or full; the service goes on without its log
                self._metrics.log_messages_dropped_total.inc(data.removeprefix(b"\n").count(b"\n"))


def set_up_logging(metrics: Metrics, level: str, file_descriptor: int = 1) -> LineHandler:
    """Sends all logging there.

    Args:
        metrics: counts the lines.
        level: the lowest that is written, such as "info".
        file_descriptor: by default stdout.

    Returns:
        The handler, to be closed at the end.
    """
    handler = LineHandler(metrics, file_descriptor)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    return handler
