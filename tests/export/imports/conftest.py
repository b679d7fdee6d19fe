import shutil
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from export.imports.__main__ import main
from tests.imports.families import MODELS

TINY = MODELS / "marian-shared"


class Command:
    """Runs `babelserve-import` in this process."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def __call__(self, *arguments: object) -> str:
        self.monkeypatch.setattr(sys, "argv", ["babelserve-import", *map(str, arguments)])
        main()
        return self.capsys.readouterr().out

    def fails(self, *arguments: object) -> tuple[Any, str]:
        """Returns the exit code and stderr."""
        self.monkeypatch.setattr(sys, "argv", ["babelserve-import", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code, self.capsys.readouterr().err


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Command]:
    handler = signal.getsignal(signal.SIGTERM)
    yield Command(monkeypatch, capsys)
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of a tiny model, to be spoiled."""
    return Path(shutil.copytree(TINY, tmp_path / "opus-mt-en-de"))
