import io
import os
import socket
import threading
from pathlib import Path

import pytest

from babelserve.outputs import UsageError, claim, places, whole_lines, write_whole


def make(kind: str, path: Path) -> None:
    """Puts something in the place of a file."""
    precious = path.with_name("precious")
    precious.write_text("precious")
    match kind:
        case "link":
            path.symlink_to(precious)
        case "link to nothing":
            path.symlink_to(path.with_name("nothing"))
        case "link to itself":
            path.symlink_to(path)
        case "second name":
            path.hardlink_to(precious)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
        case "socket":
            with socket.socket(socket.AF_UNIX) as listener:
                listener.bind(str(path))


@pytest.mark.parametrize(
    "kind", ["link", "link to nothing", "link to itself", "second name", "pipe", "folder", "socket"]
)
def test_what_is_no_file_of_its_own_is_refused_at_once(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the path of a socket must be short
    make(kind, Path("part"))

    with pytest.raises(UsageError, match=r"^part is a link, a pipe or the like, and no file of one name: remove it$"):
        claim(Path("part"))

    assert Path("precious").read_text() == "precious"
    assert not Path("nothing").exists()


def test_who_comes_after_a_rename_or_a_removal_has_a_file_of_its_own(tmp_path: Path) -> None:
    part = tmp_path / "part"
    for end in (lambda: part.rename(tmp_path / "out"), part.unlink):
        with claim(part) as file:
            file.write(b"first")
            file.flush()
            end()
            with claim(part) as other:
                assert other.read() == b""
    assert (tmp_path / "out").read_bytes() == b"first"


def test_many_who_want_one_file_have_it_in_turn(tmp_path: Path) -> None:
    """Each one that gets the file reads how many had it before, and renames it now and then."""
    counter = tmp_path / "counter"
    counter.write_text("0")
    refused = []

    def work() -> None:
        done = 0
        while done < 50:
            try:
                with claim(tmp_path / "part") as file:
                    counter.write_text(str(int(counter.read_text()) + 1))
                    (tmp_path / "part").replace(tmp_path / "out") if done % 2 else file.write(b"x")
                    done += 1
            except UsageError as error:
                refused.append(str(error))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert counter.read_text() == "200"
    assert all(each.startswith("another job writes ") for each in refused)


@pytest.mark.parametrize("name", ["out.bz2", "out.XZ", "out.zst", "out.zip", "out.Z"])
def test_a_compression_that_cannot_be_written_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match=rf"^{name}: \.\w+ cannot be written; \.gz can, "):
        places(Path(name))


def test_a_link_to_itself_is_no_place(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")

    with pytest.raises(UsageError, match=r"loop is a link to itself$"):
        places(tmp_path / "loop")


def test_a_pipe_is_not_gzipped(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out.gz")

    with pytest.raises(UsageError, match=r"out\.gz is no regular file, and is not written as gzip"):
        places(tmp_path / "out.gz")


def test_lines_end_where_they_are_torn_or_longer_than_any(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("babelserve.outputs._LONGEST_LINE", 5)

    assert list(whole_lines(io.BytesIO(b"a\n\n1234\ntor"))) == [b"a\n", b"\n", b"1234\n"]
    assert list(whole_lines(io.BytesIO(b"a\n123456\nb\n"))) == [b"a\n"]


def test_what_fails_while_it_is_written_leaves_the_older_one(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("older")

    def fail(file: object) -> None:
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        write_whole(tmp_path / "out", tmp_path / "out.part", fail, gzipped=False)
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "older"
