import io
import struct
import zipfile
from typing import Any

import pytest

from babelserve.formats.archive import MAX_BYTES, Archive
from babelserve.formats.document import BadFile
from tests.babelserve.formats.files import archive, members

FILES: dict[str, str | bytes] = {
    "mimetype": "a/b",
    "a.xml": "<a>" + "text " * 200 + "</a>",
    "dir/b.png": bytes(range(256)),
    "c.xml": "<c/>",
}


def streamed() -> bytes:
    """An archive as programs write it to a pipe: sizes stand behind the contents, and a comment at the end."""

    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def tell(self) -> int:
            raise OSError

    out = Pipe()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        file.comment = b"a comment"
        for name, content in FILES.items():
            file.writestr(name, content)
    return out.getvalue()


@pytest.mark.parametrize("data", [archive(FILES), streamed()])
def test_members_are_replaced_and_all_else_stays_as_it_was(data: bytes) -> None:
    changed = Archive(data).replaced({"a.xml": b"<new/>" * 1000, "mimetype": b"x"})

    assert members(changed) == {**members(archive(FILES)), "a.xml": b"<new/>" * 1000, "mimetype": b"x"}
    before, after = zipfile.ZipFile(io.BytesIO(data)), zipfile.ZipFile(io.BytesIO(changed))
    assert [info.filename for info in after.infolist()] == list(FILES)
    assert after.comment == before.comment
    for old, new in zip(before.infolist(), after.infolist(), strict=True):
        assert (old.compress_type, old.date_time, old.external_attr) == (
            new.compress_type,
            new.date_time,
            new.external_attr,
        )
        if old.filename == "dir/b.png":
            raw = [data[old.header_offset :][:300], changed[new.header_offset :][:300]]
            assert raw[0] == raw[1]


@pytest.mark.parametrize("data", [archive(FILES), streamed(), archive({})])
def test_an_archive_without_changes_is_the_same_bytes(data: bytes) -> None:
    assert Archive(data).replaced({}) == data


def test_members_are_replaced_without_a_copy_of_the_archive_for_each() -> None:
    num_copied = 0

    class Counted(bytes):
        """Bytes whose parts and sums are counted, and are of this class, too."""

        def __getitem__(self, place: Any) -> Any:
            found = super().__getitem__(place)
            return counted(found) if isinstance(found, bytes) else found

        def __add__(self, other: Any) -> "Counted":
            return counted(super().__add__(other))

    def counted(data: bytes) -> Counted:
        nonlocal num_copied
        num_copied += len(data)
        return Counted(data)

    names = [f"{index}.xml" for index in range(100)]
    data = Counted(archive(dict.fromkeys(names, "text")))
    Archive(data).replaced(dict.fromkeys(names, b"new"))

    assert num_copied < 2 * len(data)


def test_a_bomb_is_not_unpacked() -> None:
    data = archive({"a.xml": b"0" * (MAX_BYTES // 2 + 1), "b.xml": b"0" * (MAX_BYTES // 2)})

    assert len(data) < 200_000
    with pytest.raises(
        BadFile, match=f"has {MAX_BYTES + 1} bytes of text when it is unpacked; the limit is {MAX_BYTES}"
    ):
        Archive(data).read(["a.xml", "b.xml"])


def test_a_bomb_that_lies_about_its_size_is_not_unpacked_either() -> None:
    data = archive({"a.xml": b"0" * 10_000_000})
    lie = data.replace(struct.pack("<L", 10_000_000), struct.pack("<L", 1000))

    with pytest.raises(BadFile, match="is damaged: Bad CRC"):
        Archive(lie).read(["a.xml"])


def test_every_truncated_archive_is_refused() -> None:
    data = archive(FILES)

    for length in range(len(data)):
        with pytest.raises(BadFile, match="is no ZIP archive, or a damaged one"):
            Archive(data[:length])


def test_damaged_contents_are_refused() -> None:
    data = bytearray(archive(FILES))
    start = zipfile.ZipFile(io.BytesIO(data)).getinfo("a.xml").header_offset
    data[start + 40] ^= 0xFF

    with pytest.raises(BadFile, match="is damaged"):
        Archive(bytes(data)).read(["a.xml"])


def test_members_in_one_place_are_refused() -> None:
    data = archive({"a": "x" * 100, "b": "x" * 100})
    place = data.rindex(b"PK\1\2") + 42  # where the directory says where the second one is
    both_first = data[:place] + struct.pack("<L", 0) + data[place + 4 :]

    with pytest.raises(BadFile, match="has two members in one place"):
        Archive(both_first)


@pytest.mark.parametrize(("data", "message"), [(b"prefix" + archive(FILES), "not supported"), (b"", "no ZIP archive")])
def test_other_archives_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(BadFile, match=message):
        Archive(data)


def test_encrypted_and_oddly_packed_members_are_refused() -> None:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_BZIP2) as file:
        file.writestr("a.xml", "text")
    with pytest.raises(BadFile, match=r"has a.xml packed by method 12, which is not supported"):
        Archive(out.getvalue()).read(["a.xml"])
    data = bytearray(archive({"a.xml": "text"}))
    data[data.rindex(b"PK\1\2") + 8] |= 1
    with pytest.raises(BadFile, match="is encrypted"):
        Archive(bytes(data)).read(["a.xml"])


def test_a_file_of_old_office_is_named() -> None:
    with pytest.raises(BadFile, match="is encrypted, or of a program older than Office 2007"):
        Archive(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512))
