"""Directories that are written whole or not at all, and that go even if the process is killed."""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_SHOWN = 50  # characters of a directory's name that its draft's name begins with: a name may have 255 bytes


@contextlib.contextmanager
def drafted(out: Path) -> Iterator[Path]:
    """Yields a new directory beside `out`, which gets the name `out` when the block ends, or goes if the block fails.

    Raises:
        FileExistsError: `out` exists.
    """
    _check_absent(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    with scratch(out.parent, _prefix(out)) as draft:
        yield draft
        draft.chmod(0o755)
        draft.rename(out)


def check_new(out: Path) -> None:
    """Makes a draft where that of `out` will be, and removes it: whatever forbids it is said before the work.

    Raises:
        FileExistsError: `out` exists.
        OSError: no directory can be made there.
    """
    _check_absent(out)
    parent = next(path for path in out.absolute().parents if os.path.lexists(path))
    if not parent.is_dir():
        raise NotADirectoryError(f"{out} cannot be made: {parent} is no directory")
    for name in out.absolute().relative_to(parent).parts:
        with contextlib.suppress(FileNotFoundError):
            (parent / name).lstat()  # raises OSError if the name is too long
    with scratch(parent, _prefix(out)):
        pass


@contextlib.contextmanager
def scratch(parent: Path, prefix: str) -> Iterator[Path]:
    """Yields a new directory in `parent`, which goes when the block ends unless it has another name by then.

    A process that is killed leaves its directory, and the lock on it ends. So the next call with that
    prefix removes every directory that is not locked.
    """
    for entry in os.scandir(parent):
        if entry.name.startswith(prefix) and entry.is_dir(follow_symlinks=False):
            with contextlib.suppress(OSError), _locked(Path(entry.path), fcntl.LOCK_EX | fcntl.LOCK_NB):
                shutil.rmtree(entry.path, ignore_errors=True)
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        with contextlib.ExitStack() as lock:
            # Another process may have taken it for a dead one's before it was locked: it is gone, and another is made.
            with contextlib.suppress(FileNotFoundError):
                lock.enter_context(_locked(path, fcntl.LOCK_EX))
            if path.exists():
                try:
                    yield path
                finally:
                    shutil.rmtree(path, ignore_errors=True)
                return


@contextlib.contextmanager
def _locked(directory: Path, how: int) -> Iterator[None]:
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, how)
        yield
    finally:
        os.close(descriptor)


def _check_absent(out: Path) -> None:
    if os.path.lexists(out):  # a link that leads nowhere is in the way too
        raise FileExistsError(f"{out} exists already")


def _prefix(out: Path) -> str:
    return f".{out.name[:_SHOWN]}.draft-"
