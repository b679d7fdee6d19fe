"""The folder of models: DIR/NAME is a bundle, or holds the model's versions, DIR/NAME/VERSION.

Names and versions are the names of the folders. A bundle in DIR/NAME has the version that its manifest says. Folders
that begin with a dot are ignored, because Kubernetes makes such folders to swap what is mounted. `lost+found` is
ignored, too, and so is a version with a name that no model could have.
"""

import errno
import os
import re
from dataclasses import dataclass
from pathlib import Path

from server.bundle.manifest import MANIFEST_FILE
from server.errors import SettingsError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_FILES = 1000  # files and folders of a bundle, which has about ten
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
        that cannot be read. Such folders have no versions.

    Raises:
        SettingsError: the folder cannot be read.
    """
    found: dict[str, list[FoundBundle]] = {}
    faults: list[str] = []
    try:
        folders = _folders(directory)
    except OSError as error:
        raise SettingsError([f"--models: {directory} cannot be read: {error.strerror}"]) from error
    for folder in folders:
        if not is_model_name(folder.name):
            faults.append(f"{folder}: no name of a model: letters, digits, '.', '_' and '-', at most 64")
            continue
        found[folder.name] = []
        try:
            found[folder.name] = _versions(folder)
        except OSError as error:
            if error.errno != errno.ENOENT:  # ENOENT: it has gone meanwhile
                faults.append(f"{folder} cannot be read: {error.strerror}")
    return found, faults


def nothing_in(directory: Path) -> str:
    """Returns words for an error: there is no model in the folder of models."""
    hint = f"; it is a bundle itself: --bundle {directory}" if (directory / MANIFEST_FILE).exists() else ""
    return f"--models: {directory} holds no model{hint}"


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
    named = [path for path in _folders(folder) if is_model_name(path.name)]
    versions = sorted(named, key=lambda path: version_key(path.name), reverse=True)
    return [FoundBundle(folder.name, path.name, path, _stamp(path)) for path in versions]


def _folders(directory: Path) -> list[Path]:
    with os.scandir(directory) as entries:
        names = [entry.name for entry in entries if _is_folder(entry)]
    return [directory / name for name in sorted(names) if not name.startswith(".") and name not in _NOT_MODELS]


def _is_folder(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir()
    except OSError:  # for example a link to itself
        return False


def _stamp(bundle: Path) -> _Stamp:
    """Returns what tells a bundle's files from others. It changes, too, when Kubernetes swaps a link to a folder.

    It looks at no more than `_MOST_FILES`, because a folder with more files, for example a link to `/`, is no bundle.
    """
    files: list[tuple[str, int, int, int, int]] = []
    for num_folders, (folder, _, names) in enumerate(os.walk(os.path.realpath(bundle))):
        if num_folders + len(files) >= _MOST_FILES:
            break
        for name in names[: _MOST_FILES - len(files)]:
            path = Path(folder, name)
            try:
                status = path.stat()
            except OSError:
                files.append((str(path), 0, 0, 0, 0))
            else:
                files.append((str(path), status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
    return tuple(sorted(files))
