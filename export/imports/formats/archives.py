"""Zip archives of strangers, unpacked where nothing of theirs can lead elsewhere."""

import shutil
import stat
import zipfile
from pathlib import Path, PurePosixPath

from export.imports.formats.tensors import FormatError, bytes_of_strangers, open_regular

MAX_UNPACKED_BYTES = 32 << 30
_MAX_ENTRIES = 10_000
_MAX_RATIO = 100  # weights do not compress; text does, but not so far


def unpack(path: Path, directory: Path) -> None:
    """Unpacks an archive into an empty directory.

    Raises:
        FormatError: it is no archive, is damaged, or an entry leads out of the directory, is no plain file, or unpacks
            to more than `MAX_UNPACKED_BYTES` or a hundred times its size.
    """
    with open_regular(path) as file, bytes_of_strangers("cannot be unpacked"), zipfile.ZipFile(file) as archive:
        entries = [entry for entry in archive.infolist() if not entry.is_dir()]
        _check(entries, path.stat().st_size)
        for entry in entries:
            target = directory / entry.filename
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as packed, target.open("xb") as unpacked:
                shutil.copyfileobj(packed, unpacked, 1 << 20)


def _check(entries: list[zipfile.ZipInfo], size: int) -> None:
    if len(entries) > _MAX_ENTRIES:
        raise FormatError(f"has {len(entries)} entries, at most {_MAX_ENTRIES} are unpacked")
    for entry in entries:
        name = PurePosixPath(entry.filename)
        if name.is_absolute() or ".." in name.parts or "\\" in entry.filename or "\0" in entry.filename:
            raise FormatError(f"has an entry {entry.filename!r}, which leads out of it")
        mode = entry.external_attr >> 16
        if stat.S_IFMT(mode) not in (0, stat.S_IFREG):
            raise FormatError(f"has an entry {entry.filename!r}, which is no plain file")
    total = sum(entry.file_size for entry in entries)
    limit = min(MAX_UNPACKED_BYTES, _MAX_RATIO * size + (1 << 20))
    if total > limit:
        raise FormatError(f"unpacks to {total} bytes, at most {limit} are")
