"""The `.part` of an output, and what replaces it: files that belong to one job at a time."""

import contextlib
import errno
import fcntl
import gzip
import os
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

from babelserve.channel import MAX_RESPONSE_BYTES

_OTHER_PACKERS = (".7z", ".br", ".bz2", ".lz", ".lz4", ".lzma", ".rar", ".tgz", ".xz", ".z", ".zip", ".zst")
_MOST_TRIES = 100  # to open a file that others rename and remove meanwhile
_LONGEST_LINE = 6 * MAX_RESPONSE_BYTES  # JSON may take six characters for one
_NO_FILE = (errno.ELOOP, errno.EISDIR, errno.ENXIO)  # of a link, a folder, a socket


class UsageError(Exception):
    """The command line asks for what can't be done; the message says what."""


def places(path: Path) -> tuple[Path, Path | None]:
    """Returns where an output is written, and its `.part`; that is None for what is no regular file, such as a pipe.

    Raises:
        UsageError: the name asks for a compression that cannot be written, or is a link without an end.
        OSError: it cannot be looked at.
    """
    if path.suffix.lower() in _OTHER_PACKERS:
        raise UsageError(f"{path}: {path.suffix} cannot be written; .gz can, and every name without a compression")
    if path.exists() and not path.is_file():
        if is_gzip(path):
            raise UsageError(f"{path} is no regular file, and is not written as gzip: give another name")
        return path, None
    try:
        place = path.resolve()  # a link stays one
    except RuntimeError:  # Python's, before 3.13
        place = path
    if place.is_symlink():
        raise UsageError(f"{path} is a link to itself")
    return place, place.with_name(place.name + ".part")


def claim(path: Path) -> BinaryIO:
    """Opens a file for reading and writing, for this process alone until it is closed; makes it if it is not there.

    It follows no link and waits for nobody. Rename or remove the file before it is closed. Then a process that waits
    for it finds that it has gone, and makes another one.

    Raises:
        UsageError: another process has it, or it is no file of its own.
        OSError: it cannot be opened.
    """
    for _ in range(_MOST_TRIES):
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)
        except OSError as error:
            if error.errno in _NO_FILE:
                raise UsageError(_not_own(path)) from error
            raise
        with contextlib.ExitStack() as opened:
            opened.callback(os.close, descriptor)
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise UsageError(_not_own(path))
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                break
            if os.fstat(descriptor).st_nlink > 1:
                raise UsageError(_not_own(path))
            if _is_at(descriptor, path):
                opened.pop_all()
                return os.fdopen(descriptor, "r+b")
    raise UsageError(f"another job writes {path}: wait for it, or give another --output")


def write_whole(path: Path, part: Path, write: Callable[[BinaryIO], object], *, gzipped: bool) -> None:
    """Writes a file under another name, and gives it its own. Raises as `claim`, and what `write` raises.

    Args:
        path: the name that it gets.
        part: claimed.
        write: takes the open file.
        gzipped: whether the file is gzip of what is written.
    """
    whole = whole_of(part)
    with claim(whole) as file:
        try:
            file.truncate(0)
            if gzipped:
                with gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0) as packed:
                    write(cast("BinaryIO", packed))
            else:
                write(file)
            file.flush()
            whole.replace(path)
        except BaseException:
            whole.unlink(missing_ok=True)
            raise


def is_gzip(path: Path) -> bool:
    """Whether an output of this name is gzipped."""
    return path.suffix.lower() == ".gz"


def whole_of(part: Path) -> Path:
    """Returns where an output is written that replaces its `.part`."""
    return part.with_name(part.name + ".whole")


def _not_own(path: Path) -> str:
    return f"{path} is a link, a pipe or the like, and no file of one name: remove it"


def whole_lines(file: BinaryIO) -> Iterator[bytes]:
    """Yields the lines of a `.part` up to what a stopped job has torn, or what is longer than any line of ours."""
    while (line := file.readline(_LONGEST_LINE)).endswith(b"\n"):
        yield line


def check_at(file: BinaryIO, path: Path) -> None:
    """Raises UsageError if a claimed file is no longer in its place, because somebody has renamed or replaced it."""
    if not _is_at(file.fileno(), path):
        raise UsageError(f"{path} is no longer the file that this job writes: somebody has renamed or replaced it")


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.lstat(path))
    except FileNotFoundError:
        return False


def close_part(file: BinaryIO, part: Path | None) -> bool:
    """Closes a `.part`; returns whether there is something to go on from. It is removed if not."""
    with contextlib.suppress(OSError):  # a full disk was complained of already
        file.flush()
    is_ours = part is not None and _is_at(file.fileno(), part)
    is_left = is_ours and os.fstat(file.fileno()).st_size > 0
    if part is not None and is_ours and not is_left:
        part.unlink()
    with contextlib.suppress(OSError):
        file.close()
    return is_left
