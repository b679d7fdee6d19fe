import errno
import gzip
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from model.files import MAX_LINE_BYTES, hold_folder, opened, read_lines, read_whole, replacing
from tests.model.runs import ROOT

HOLDER = "import sys; from model.files import hold_folder; hold_folder(__import__('pathlib').Path(sys.argv[1]))"


def pipe(path: Path) -> None:
    os.mkfifo(path)


def zipped(path: Path) -> None:
    path.write_bytes(gzip.compress(b"one\n" * 999)[:-9])


@pytest.mark.parametrize(
    ("make", "fault"),
    [
        (pipe, r"a\.gz is not a regular file"),
        (Path.mkdir, r"Is a directory: .*a\.gz"),
        (lambda _: None, r"No such file or directory: .*a\.gz"),
        (lambda path: path.symlink_to("/dev/zero"), r"a\.gz is not a regular file"),
        (lambda path: path.symlink_to(path), r"symbolic links: .*a\.gz"),
        (lambda path: path.write_bytes(b"plain text"), r"a\.gz is damaged: Not a gzipped file"),
        (zipped, r"a\.gz is damaged: Compressed file ended"),
        (lambda path: path.write_bytes(gzip.compress(b"x" * 99)[:-8] + bytes(8)), r"a\.gz is damaged: CRC"),
        (lambda path: path.write_bytes(gzip.compress(b"x")[:10] + b"\xff" * 9), r"a\.gz is damaged: Error -3"),
    ],
)
def test_a_fault_of_a_file_that_is_read_names_it(tmp_path: Path, make: Callable[[Path], None], fault: str) -> None:
    make(tmp_path / "a.gz")

    with pytest.raises((OSError, ValueError), match=fault):
        list(read_lines(tmp_path / "a.gz"))


@pytest.mark.parametrize("name", ["a", "a.gz"])
def test_a_line_that_is_too_long_is_told_with_its_number_and_not_read(tmp_path: Path, name: str) -> None:
    content = b"one\n" + b"x" * (MAX_LINE_BYTES - 1) + b"\n" + b"y" * 30 * MAX_LINE_BYTES
    (tmp_path / name).write_bytes(gzip.compress(content, 1) if name == "a.gz" else content)
    found = read_lines(tmp_path / name)

    assert [len(next(found)) for _ in range(2)] == [4, MAX_LINE_BYTES]
    with pytest.raises(ValueError, match=rf"{name}, line 3: must have at most {MAX_LINE_BYTES} bytes"):
        next(found)


def test_a_file_that_changes_while_it_is_read_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"one\ntwo\n")
    found = read_lines(tmp_path / "a")
    assert next(found) == b"one\n"
    with (tmp_path / "a").open("ab") as file:
        file.write(b"three\n")

    with pytest.raises(ValueError, match=r"/a changed while it was read"):
        list(found)


def test_what_the_system_says_of_no_file_gets_its_name(tmp_path: Path) -> None:
    (tmp_path / "a").touch()

    with pytest.raises(OSError, match=r"/a cannot be read: Input/output error"), opened(tmp_path / "a"):
        raise OSError(errno.EIO, os.strerror(errno.EIO))


def test_a_whole_file_is_read_up_to_a_limit(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"12345")

    assert read_whole(tmp_path / "a", 5) == b"12345"
    with pytest.raises(ValueError, match="/a: must have at most 4 bytes"):
        read_whole(tmp_path / "a", 4)


def test_a_file_is_replaced_whole_whatever_stands_in_the_place_of_its_draft(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("mine")
    for make in (pipe, lambda path: path.symlink_to(tmp_path / "other"), lambda _: None):
        make(tmp_path / "a.tmp")
        with replacing(tmp_path / "a") as draft:
            draft.write_text("new")

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "new", "other": "mine"}


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), RuntimeError("no space\nhere")])
def test_a_write_that_fails_names_the_file_and_leaves_no_draft(tmp_path: Path, error: Exception) -> None:
    (tmp_path / "a").write_text("old")

    def write() -> None:
        with replacing(tmp_path / "a") as draft:
            draft.write_text("half")
            raise error

    with pytest.raises(
        OSError, match=r"/a cannot be written: .*(No space left on device|no space .is the disk full\?.)$"
    ):
        write()

    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"a": "old"}


def test_a_folder_is_held_by_one_process_until_it_is_killed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    command = [sys.executable, "-c", f"{HOLDER}; print(flush=True); sys.stdin.read()", str(tmp_path / "link")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=ROOT, **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline()

        with pytest.raises(OSError, match=rf"^{tmp_path}: another run writes there"):
            hold_folder(tmp_path)
        other.kill()
        other.wait()

    hold_folder(tmp_path)


@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("none/there")])
def test_a_lock_that_is_none_names_it(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "lock")

    with pytest.raises(OSError, match=r"lock"):
        hold_folder(tmp_path)
