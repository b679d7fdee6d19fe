import signal
import subprocess
import sys
from pathlib import Path

import pytest

from export.drafts import check_new, drafted, scratch

_WAITS = """
import sys, time
from pathlib import Path
from export.drafts import drafted
with drafted(Path(sys.argv[1])) as draft:
    (draft / "file").write_text("half")
    print("here", flush=True)
    time.sleep(60)
"""


def test_a_draft_gets_its_name_when_it_is_whole(tmp_path: Path) -> None:
    with drafted(tmp_path / "parent" / "out") as draft:
        (draft / "file").write_text("whole")
        assert not (tmp_path / "parent" / "out").exists()

    assert [path.name for path in (tmp_path / "parent").iterdir()] == ["out"]
    assert (tmp_path / "parent" / "out" / "file").read_text() == "whole"


def test_a_draft_that_fails_goes(tmp_path: Path) -> None:
    for error in (RuntimeError, FileNotFoundError):
        with pytest.raises(error), drafted(tmp_path / "out"):
            raise error

    assert not list(tmp_path.iterdir())


def test_the_draft_of_a_killed_process_goes_with_the_next_and_a_living_one_stays(tmp_path: Path) -> None:
    out = tmp_path / "out"
    process = subprocess.Popen([sys.executable, "-c", _WAITS, str(out)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "here\n"
    (left,) = tmp_path.iterdir()

    check_new(out)
    assert (left / "file").exists()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (left / "file").exists()
    check_new(out)

    assert not list(tmp_path.iterdir())


def test_what_is_no_draft_stays(tmp_path: Path) -> None:
    (tmp_path / ".out").mkdir()
    (tmp_path / ".out.draft-file").write_text("a file")
    (tmp_path / ".out.draft-link").symlink_to(tmp_path / ".out")

    check_new(tmp_path / "out")

    assert sorted(path.name for path in tmp_path.iterdir()) == [".out", ".out.draft-file", ".out.draft-link"]


def test_where_no_directory_can_be_made_is_said_at_once(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")

    with pytest.raises(FileExistsError, match="link exists already"):
        check_new(tmp_path / "link")
    with pytest.raises(NotADirectoryError, match="file is no directory"):
        check_new(tmp_path / "file" / "a" / "out")
    for name in (Path("x" * 256), Path("a") / ("x" * 256), Path("x" * 256) / "a"):
        with pytest.raises(OSError, match="File name too long"):
            check_new(tmp_path / name)
    check_new(tmp_path / "a" / "b" / ("x" * 255))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "link"]


def test_a_directory_of_its_own_has_the_prefix(tmp_path: Path) -> None:
    with scratch(tmp_path, "unpacked.") as directory, scratch(tmp_path, "unpacked.") as other:
        assert directory != other
        assert directory.name.startswith("unpacked.")

    assert not list(tmp_path.iterdir())
