"""The folder of models: DIR/NAME is a bundle, or holds the model's versions, DIR/NAME/VERSION.

Names and versions are the names of the folders. A bundle in DIR/NAME has the version that its manifest says. Folders
that begin with a dot are ignored, because Kubernetes makes such folders to swap what is mounted. `lost+found` is
ignored, too, and so is a version with a name that no model could have.
"""

import errno
import heapq
import itertools
import os
import re
from dataclasses import dataclass
from pathlib import Path

from server.bundle.manifest import MANIFEST_FILE
from server.errors import SettingsError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_FILES = 1000  # files and folders of a bundle, which has about ten
_MOST_VERSIONS = 1000  # of a model
_MOST_FAULTS = 20  # that are named at one look
_NOT_MODELS = ("lost+found",)
_RESERVED = ("liveness", "readiness")  # of the health service

_Stamp = tuple[tuple[str, int, int, int, int], ...]


@dataclass(frozen=True, slots=True)
class FoundBundle:
    """A bundle in the folder of models, as far as a look at its files tells.

    Attributes:
        name: of the model.
        version: the name of its folder; empty if the manifest says the version.
        stamp: of all its files. It changes if any of them is written or exchanged.
    """

    name: str
    version: str
    directory: Path
    stamp: _Stamp


def find_models(directory: Path) -> tuple[dict[str, list[FoundBundle]], list[str]]:
    """Finds the bundles in the folder of models.

    Returns:
        The versions of each name, the highest first, and faults: folders with names that no model can have, and folders
        that cannot be read. Such folders have no versions. Of many faults the last says how many more there are.

    Raises:
        SettingsError: the folder cannot be read.
    """
    found: dict[str, list[FoundBundle]] = {}
    faults: list[str] = []
    try:
        names, others = _folders(directory)
    except OSError as error:
        raise SettingsError([f"--models: {directory} cannot be read: {error.strerror}"]) from error
    bad_name = "no name of a model: letters, digits, '.', '_' and '-', at most 64"
    faults += [f"{directory / name}: {bad_name}" for name in heapq.nsmallest(_MOST_FAULTS, others)]
    num_faults = len(others)
    for name in names:
        found[name] = []
        try:
            found[name] = _versions(directory / name)
        except OSError as error:
            if error.errno != errno.ENOENT:  # ENOENT: it has gone meanwhile
                num_faults += 1
                faults.append(f"{directory / name} cannot be read: {error.strerror}")
    del faults[_MOST_FAULTS:]
    if num_faults > len(faults):
        faults.append(f"{directory}: {num_faults - len(faults)} folders more that are no models")
    return found, faults


def nothing_in(directory: Path) -> str:
    """Returns words for an error: there is no model in the folder of models."""
    hint = f"; it is a bundle itself: --bundle {directory}" if (directory / MANIFEST_FILE).exists() else ""
    return f"--models: {directory} holds no model{hint}"


def bundle_bytes(directory: Path) -> int:
    """Returns the sizes of a bundle's files together."""
    return sum(size for _, _, size, _, _ in _stamp(directory))


def is_model_name(name: str) -> bool:
    """Returns whether a model may have this name."""
    return _NAME.fullmatch(name) is not None and name not in _RESERVED


def version_key(version: str) -> tuple[tuple[tuple[int, int, str], ...], str]:
    """Returns a key that orders versions. Numbers count by their value, so 1.10 is higher than 1.9; 1 is above 01."""
    parts = re.split(r"([0-9]+)", version)  # only these digits, because int() reads some others and not all
    key = tuple((1, int(part), "") if index % 2 else (0, 0, part) for index, part in enumerate(parts) if part)
    return key, version


def _versions(folder: Path) -> list[FoundBundle]:
    if (folder / MANIFEST_FILE).exists():
        return [FoundBundle(folder.name, "", folder, _stamp(folder))]
    names, _ = _folders(folder)
    versions = heapq.nlargest(_MOST_VERSIONS, names, key=version_key)
    return [FoundBundle(folder.name, name, folder / name, _stamp(folder / name)) for name in versions]


def _folders(directory: Path) -> tuple[list[str], list[str]]:
    """Returns the names of the folders in a folder: those that a model can have, in order, and the others."""
    names: list[str] = []
    others: list[str] = []
    with os.scandir(directory) as entries:
        for entry in entries:
            name = entry.name
            if not name.startswith(".") and name not in _NOT_MODELS and _is_folder(entry):
                (names if is_model_name(name) else others).append(name)
    return sorted(names), others


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # for example a link to itself
        return False


def _stamp(bundle: Path) -> _Stamp:
    """Returns what tells a bundle's files from others. It changes, too, when Kubernetes swaps a link to a folder.

    It looks at the bundle's folder and at the folders in it, where all files of bundles are, and no deeper. It looks at
    no more than `_MOST_FILES`, because a folder with more is no bundle. Without a manifest it looks into no folder: a
    link to `/` or `/proc` would take seconds.
    """
    files: list[tuple[str, int, int, int, int]] = []
    folders = [os.path.realpath(bundle)]
    left = itertools.repeat(None, _MOST_FILES)
    has_manifest = os.path.lexists(bundle / MANIFEST_FILE)
    for folder in folders:
        is_inner = folder != folders[0]
        try:
            with os.scandir(folder) as entries:
                for _, entry in zip(left, entries, strict=False):  # in this order: a folder takes of what is left, too
                    if not has_manifest or not _is_inner_folder(entry):
                        files.append(_facts(entry))
                    elif not is_inner:
                        folders.append(entry.path)
        except OSError:  # it has gone meanwhile, or nobody may read it
            files.append((folder, 0, 0, 0, 0))
    return tuple(sorted(files))


def _is_inner_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _facts(entry: "os.DirEntry[str]") -> tuple[str, int, int, int, int]:
    try:
        status = entry.stat()
    except OSError:
        return entry.path, 0, 0, 0, 0
    return entry.path, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
