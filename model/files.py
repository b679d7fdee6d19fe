"""What training reads and writes: every fault names its file, and the line where there is one."""

import contextlib
import fcntl
import gzip
import io
import os
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

# Of a line. A paragraph has some thousand bytes. Halved, pages on one line are refused; doubled, one takes 120 MB.
MAX_LINE_BYTES = 1 << 20


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a regular file for reading. Another kind of file, such as a FIFO, could keep a reader waiting for ever.

    Raises:
        OSError: there is no such file, it is of another kind, or it cannot be read.
        ValueError: it is no whole gzip file although it is read as one, or it changed while it was read.
    """
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
            before = os.fstat(file.fileno())
            if not stat.S_ISREG(before.st_mode):
                raise OSError(f"{path} is not a regular file")
            yield file
            after = os.fstat(file.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise ValueError(f"{path} changed while it was read; wait until it is whole")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(f"{path} cannot be read: {error.strerror}") from error


def read_lines(path: Path) -> Iterator[bytes]:
    """Yields the lines of a file, which is unpacked if its name ends with ".gz", with their line feeds.

    Raises:
        OSError, ValueError: as `opened`; a line has more than `MAX_LINE_BYTES`.
    """
    with opened(path) as raw:
        file = io.BufferedReader(gzip.GzipFile(fileobj=raw)) if path.suffix == ".gz" else raw
        number = 0
        while line := file.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                raise ValueError(f"{path}, line {number}: must have at most {MAX_LINE_BYTES} bytes, and has more")
            yield line


def read_whole(path: Path, max_bytes: int) -> bytes:
    """Returns what a file holds.

    Raises:
        OSError, ValueError: as `opened`; it has more than `max_bytes`.
    """
    with opened(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise ValueError(f"{path}: must have at most {max_bytes} bytes, and has more")
    return content


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Gives the path of a draft, and puts the draft in the place of a file: the file is written whole or not at all.

    Raises:
        OSError: it cannot be written; no draft is left.
    """
    draft = path.with_name(f"{path.name}.tmp")
    try:
        draft.unlink(missing_ok=True)  # a link or a FIFO would take the bytes elsewhere
        yield draft
        draft.replace(path)
    except (OSError, RuntimeError) as error:  # torch's faults are RuntimeErrors, of a full disk too
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        reason = str(error).partition("\n")[0]
        hint = " (is the disk full?)" if isinstance(error, RuntimeError) else ""
        raise OSError(f"{path} cannot be written: {reason}{hint}") from error


def hold_folder(folder: Path) -> None:
    """Keeps a folder for this process until the process ends, however it ends. Forked processes do not hold it.

    Raises:
        OSError: another process holds it, or `lock` cannot be written there.
    """
    lock = folder / "lock"
    try:
        file = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)  # the file stays open: closing it would give the lock up
    except (BlockingIOError, PermissionError) as error:
        if error.filename is not None:
            raise
        raise OSError(f"{folder}: another run writes there; wait for its end, or take another --out") from error
    except OSError as error:
        raise OSError(f"{lock} cannot be locked: {error.strerror}") from error
