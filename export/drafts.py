"""Directories that are written whole or not at all."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path


@contextlib.contextmanager
def drafted(out: Path) -> Iterator[Path]:
    """Yields a new directory beside `out`, which gets the name `out` when the block ends, or goes if the block fails.

    Raises:
        FileExistsError: `out` exists.
    """
    if out.exists():
        raise FileExistsError(f"{out} exists already")
    out.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        yield draft
        draft.chmod(0o755)
        draft.rename(out)
    except BaseException:
        shutil.rmtree(draft)
        raise
