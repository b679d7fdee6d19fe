import stat
import zipfile
from pathlib import Path

import pytest

from export.imports.formats.archives import unpack
from export.imports.formats.tensors import FormatError


def test_an_archive_is_unpacked(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("en_de/model/model.bin", b"data")
        archive.mkdir("en_de/stanza")
    (tmp_path / "out").mkdir()

    unpack(tmp_path / "a.zip", tmp_path / "out")

    assert (tmp_path / "out/en_de/model/model.bin").read_bytes() == b"data"


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "a/../../evil", "a\\..\\evil"])
def test_nothing_is_written_elsewhere(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("good", b"data")
        archive.writestr(name, b"data")
    (tmp_path / "out").mkdir()

    with pytest.raises(FormatError, match="which leads out of it"):
        unpack(tmp_path / "a.zip", tmp_path / "out")

    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.zip", "out"]


def test_links_are_refused(tmp_path: Path) -> None:
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(link, "/etc/passwd")
    (tmp_path / "out").mkdir()

    with pytest.raises(FormatError, match="which is no plain file"):
        unpack(tmp_path / "a.zip", tmp_path / "out")


def test_an_archive_that_is_a_bomb_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(50 << 20))
    (tmp_path / "out").mkdir()

    with pytest.raises(FormatError, match=r"unpacks to 52428800 bytes, at most \d+ are"):
        unpack(tmp_path / "a.zip", tmp_path / "out")

    assert not list((tmp_path / "out").iterdir())


def test_what_is_no_archive_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(b"text")

    with pytest.raises(FormatError, match="cannot be unpacked"):
        unpack(tmp_path / "a.zip", tmp_path)
