"""The process's stderr: it never stops or blocks the server, and what others write there goes to the log.

gRPC's C-core and ONNX Runtime write to file descriptor 2 what they please: words of peers among it, which may look like
lines of our log, and as much as peers provoke. So the descriptor becomes a pipe, whose lines are logged, cut and rate
limited. Python prints exceptions that nobody caught there, with their words: these are logged without them.

`sys.stderr` still leads to the operator, and so does what `faulthandler` writes when the process crashes. Lost is what
native code writes in its very last moment, after which no thread runs that could read the pipe.
"""

import asyncio
import contextlib
import io
import logging
import os
import select
import sys
import threading
from collections.abc import Callable

from server.telemetry.metrics import Metrics
from server.telemetry.rate_limit import RateLimit

logger = logging.getLogger(__name__)

MAX_LINE_CHARACTERS = 500
_CHUNK_BYTES = 1 << 16
_LAST_LINES_SECONDS = 1.0
_STDERR = 2


def reserve_standard_streams() -> None:
    """Opens the null device for each standard stream that is closed, before a socket takes its number."""
    for number in range(_STDERR + 1):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one


def tell(message: str) -> None:
    """Writes a line to the operator's stderr, unless that is closed, full, or would have to be waited for."""
    with contextlib.suppress(OSError, ValueError, AttributeError):  # AttributeError: Python found it closed
        number = sys.stderr.fileno()
        poll = select.poll()
        poll.register(number, select.POLLOUT)
        if poll.poll(0):
            os.write(number, f"{message}\n".encode(errors="backslashreplace"))


def in_one_line(fault: str) -> str:
    """Escapes what a path or a library's message may have of line ends, and what else cannot be printed."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in fault.strip())


class OneLineHandler(logging.Handler):
    """Tells the operator what is logged, without tracebacks."""

    def emit(self, record: logging.LogRecord) -> None:
        """See `logging.Handler.emit`."""
        error = getattr(record, "facts", {}).get("error")
        tell(f"babelserve: {in_one_line(record.getMessage() + (f': {error}' if error else ''))}")


def is_watched() -> bool:
    """Whether the operator's stderr is a terminal."""
    with contextlib.suppress(ValueError, AttributeError):  # as in `tell`
        return sys.stderr.isatty()
    return False


def take_stderr(metrics: Metrics) -> Callable[[], None]:
    """Logs what is written to file descriptor 2, and exceptions that nobody caught; the returned function ends that.

    Args:
        metrics: counts the lines of native code.
    """
    reader, writer = os.pipe()
    os.set_blocking(writer, False)  # who holds the interpreter's lock would wait for the reader for ever
    real = os.dup(_STDERR)
    lines = threading.Thread(target=_log_lines, args=(reader, metrics), name="stderr", daemon=True)
    hooks = threading.excepthook, sys.unraisablehook, sys.stderr
    if sys.stderr is sys.__stderr__:
        # Without a buffer: what a full disk keeps in one would be tried again, and fail, at its end.
        raw = os.fdopen(real, "wb", buffering=0, closefd=False)
        sys.stderr = io.TextIOWrapper(raw, "utf-8", errors="backslashreplace", write_through=True)
    threading.excepthook = _log_exception_of_thread
    sys.unraisablehook = _log_unraisable
    lines.start()
    os.dup2(writer, _STDERR)
    os.close(writer)

    def give_back() -> None:
        os.dup2(real, _STDERR)  # nobody can write to the pipe any more, so that its reader ends
        os.close(real)
        lines.join(_LAST_LINES_SECONDS)
        threading.excepthook, sys.unraisablehook, sys.stderr = hooks

    return give_back


def log_loop_exceptions(loop: asyncio.AbstractEventLoop) -> None:
    """Logs exceptions that nobody awaited without the words that asyncio would quote."""
    loop.set_exception_handler(
        lambda _, context: logger.error("nobody awaited an exception", exc_info=context.get("exception"))
    )


def _log_lines(reader: int, metrics: Metrics) -> None:
    """Logs what comes through the pipe, until nobody can write to it."""
    limit = RateLimit()
    rest = b""
    with os.fdopen(reader, "rb", buffering=0) as pipe:
        while chunk := pipe.read(_CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\n")
            if len(rest) > MAX_LINE_CHARACTERS:
                lines, rest = [*lines, rest], b""
            metrics.native_log_lines_total.inc(len(lines))
            for line in lines:
                _log_line(line, limit)
        if rest:
            metrics.native_log_lines_total.inc()
            _log_line(rest, limit)


def _log_line(line: bytes, limit: RateLimit) -> None:
    """Logs a line, unless there were too many: then without the cost of a record."""
    num_refused = limit.take()
    if num_refused is not None:
        text = line[:MAX_LINE_CHARACTERS].decode(errors="replace")
        suppressed = {"suppressed": num_refused} if num_refused else {}
        logger.warning("native code wrote to stderr", extra={"facts": {"text": text, **suppressed}})


def _log_exception_of_thread(hook: threading.ExceptHookArgs) -> None:
    if not isinstance(hook.exc_value, SystemExit) and hook.exc_value is not None:
        logger.critical("an exception ended a thread", exc_info=hook.exc_value)


def _log_unraisable(hook: "sys.UnraisableHookArgs") -> None:
    if hook.exc_value is not None:
        logger.error("an exception could not be raised where it happened", exc_info=hook.exc_value)
