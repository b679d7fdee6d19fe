"""How the commands of this room end: with what exit code, and what is said."""

import contextlib
import logging
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from babelserve.terminal import check_streams
from export.verify import VerificationError
from model.command import printable
from server.errors import StartupError, TranslationError
from server.models.warm_up import reason_of


class _Messages(logging.Formatter):
    """Writes messages alone: the error at the end says what has failed, and a traceback would not be read."""

    def formatException(self, _: object) -> str:  # noqa: N802  # the name is that of `logging`
        return ""


@contextlib.contextmanager
def endings(program: str, out: Path | None, *refusals: type[Exception], subject: str = "") -> Iterator[None]:
    """Logs to stderr, and turns what a bundle's making may raise into one message and an exit code.

    Args:
        program: the command's name, for messages.
        out: the bundle that is to be made or changed.
        refusals: what is raised for input that cannot be taken, OSError and ValueError apart.
        subject: what is read, for messages about it; empty if they say it themselves.

    Raises:
        SystemExit: 2 for what cannot be read or does not fit, 1 when a check fails or a signal comes; in both cases
            nothing has been written.
    """
    signal.signal(signal.SIGTERM, lambda signum, frame: sys.exit(1))  # so that a half-written bundle is removed
    refused: tuple[type[Exception], ...] = OSError, ValueError, *refusals
    try:
        check_streams("stdout")
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Messages())
        logging.basicConfig(level=logging.INFO, handlers=[handler])
        yield
    except refused as error:
        # A fault of a bundle may hold ONNX Runtime's words, of several lines.
        words = "\n".join(map(printable, error.faults)) if isinstance(error, StartupError) else str(error)
        _end(2, ": ".join(filter(None, (program, subject, words))))
    except VerificationError as error:
        _end(1, f"{program}: {out} was not written: {error}")
    except StartupError as error:
        _end(1, f"{program}: {out} was not written: " + "\n".join(map(printable, error.faults)))
    except TranslationError as error:  # such as numbers that overflow
        _end(1, f"{program}: {out} was not written: {printable(reason_of(error))}")
    except KeyboardInterrupt:
        sys.exit(1)


def _end(code: int, message: str) -> None:
    sys.stderr.write("\n".join(map(printable, message.split("\n"))) + "\n")
    sys.exit(code)
