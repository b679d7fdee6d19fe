"""A bundle's files: looked at before anything is allocated for them, and verified as what this process holds.

What is read is a private copy, and the copy is hashed: who overwrites, cuts or deletes a file afterwards changes
nothing for those who hold it. Weighed: mapping the files. A mapping shows whatever is written to its file later, and a
page behind a new end is a SIGBUS.
"""

import errno
import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from server.errors import BundleError

MAX_MANIFEST_BYTES = 1 << 20  # of files that no manifest describes: itself and its seal
MAX_HOLE_BYTES = 16 << 20  # of a file that need not be on disk: what is larger would take memory out of nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What a file must be, to the byte."""

    sha256: str
    bytes: int


def describe_file(path: Path) -> FileFacts:
    """Returns the facts that a manifest holds of a file."""
    with path.open("rb") as file:
        return FileFacts(sha256=hashlib.file_digest(file, "sha256").hexdigest(), bytes=path.stat().st_size)


def read_file(directory: Path, name: str, expected: FileFacts | None = None) -> bytes:
    """Reads a file of a bundle.

    Args:
        directory: the bundle's.
        name: path in it, with "/".
        expected: what the manifest says of it; None for what it does not describe, of at most `MAX_MANIFEST_BYTES`.

    Raises:
        BundleError: it leads out of the bundle, is no regular file, has another size or hash, or cannot be read.
    """
    path = directory / name
    try:
        real = os.path.realpath(path)
        if not Path(real).is_relative_to(os.path.realpath(directory)):
            raise BundleError([f"{path}: leads out of the bundle"])
        with open(real, "rb", opener=_open_at_once) as file:
            size = _check_status(path, file.fileno(), expected)
            data = file.read(size + 1)
    except (OSError, ValueError) as error:  # ValueError: the path has a NUL or a lone surrogate
        reason = error.strerror if isinstance(error, OSError) else error
        raise BundleError([f"{path}: cannot be read: {reason}"]) from error
    if len(data) != size:
        raise BundleError([f"{path}: changed while it was read"])
    found = hashlib.sha256(data).hexdigest()
    if expected is not None and found != expected.sha256:
        raise BundleError([f"{path}: sha256 is {found}, the manifest says {expected.sha256}"])
    return data


def _open_at_once(path: str, flags: int) -> int:
    """Opens without waiting for a FIFO's writer; a link put there since its path was resolved is not followed."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY)


def _check_status(path: Path, descriptor: int, expected: FileFacts | None) -> int:
    """Returns the size of an open file that may be read."""
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        raise BundleError([f"{path}: is no regular file"])
    size = status.st_size
    if expected is None and size > MAX_MANIFEST_BYTES:
        raise BundleError([f"{path}: has {size} bytes, at most {MAX_MANIFEST_BYTES} are read"])
    if expected is not None and size != expected.bytes:
        raise BundleError([f"{path}: has {size} bytes, the manifest says {expected.bytes}"])
    if _has_holes(descriptor, size):
        raise BundleError([f"{path}: more than {MAX_HOLE_BYTES} of its {size} bytes are holes, not on disk"])
    return size


def _has_holes(descriptor: int, size: int) -> bool:
    """Whether too much of a file is holes; leaves the file at its beginning."""
    missing = hole = data = 0
    while data < size and missing <= MAX_HOLE_BYTES:
        hole = os.lseek(descriptor, data, os.SEEK_HOLE)
        try:
            data = os.lseek(descriptor, hole, os.SEEK_DATA)
        except OSError as error:
            if error.errno != errno.ENXIO:
                raise
            data = size  # no more of it
        missing += data - min(hole, size)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return missing > MAX_HOLE_BYTES
