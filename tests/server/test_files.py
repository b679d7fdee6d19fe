"""Opening what may be no file."""

import os
from pathlib import Path

import pytest

from server.files import open_without_waiting


def num_open() -> int:
    return len([*Path("/proc/self/fd").iterdir()])


def test_a_file_is_read_and_a_fifo_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a")
    os.mkfifo(tmp_path / "fifo")

    with open_without_waiting(tmp_path / "file") as file:
        assert file.read() == b"a"
    open_without_waiting(tmp_path / "fifo").close()


def test_a_directory_is_an_error_and_leaves_no_descriptor(tmp_path: Path) -> None:
    before = num_open()

    for _ in range(3):
        with pytest.raises(IsADirectoryError):
            open_without_waiting(tmp_path)

    assert num_open() == before
