import hashlib
import os
import socket
from pathlib import Path

import pytest

from server.bundle.files import MAX_HOLE_BYTES, MAX_MANIFEST_BYTES, FileFacts, describe_file, read_file
from server.errors import BundleError


def fault_of(directory: Path, name: str = "file", expected: FileFacts | None = None) -> str:
    with pytest.raises(BundleError) as error:
        read_file(directory, name, expected)
    (fault,) = error.value.faults
    return fault


def write_holes(path: Path, size: int) -> FileFacts:
    """Makes a file that is nothing but a hole; its hash is not computed."""
    with path.open("wb") as file:
        file.truncate(size)
    return FileFacts(sha256="0", bytes=size)


def test_a_file_is_described_by_its_hash_and_size(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")

    facts = describe_file(tmp_path / "file")

    assert facts.sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"  # FIPS 180-2, B.1
    assert facts.bytes == 3


@pytest.mark.parametrize("content", [b"", b"abc"])
def test_a_file_that_is_as_described_is_read(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(content)

    assert read_file(tmp_path, "folder/file", describe_file(tmp_path / "folder" / "file")) == content
    assert read_file(tmp_path, "folder/file") == content


def test_a_file_that_is_not_as_described_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"abc")
    facts = describe_file(tmp_path / "file")

    (tmp_path / "file").write_bytes(b"abd")
    assert "file: sha256 is " in fault_of(tmp_path, expected=facts)
    (tmp_path / "file").write_bytes(b"abcd")
    assert fault_of(tmp_path, expected=facts) == f"{tmp_path / 'file'}: has 4 bytes, the manifest says 3"


def test_what_nobody_describes_may_not_be_large(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(bytes(MAX_MANIFEST_BYTES + 1))

    assert f"has {MAX_MANIFEST_BYTES + 1} bytes, at most {MAX_MANIFEST_BYTES} are read" in fault_of(tmp_path)


def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "folder").mkdir()
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))

        assert fault_of(tmp_path, "fifo") == f"{tmp_path / 'fifo'}: is no regular file"
        assert fault_of(Path("/dev"), "zero") == "/dev/zero: is no regular file"
        for name in ("folder", "socket", "nothing"):
            assert f"{name}: cannot be read" in fault_of(tmp_path, name)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "x" * 5000])
def test_what_cannot_be_a_name_is_a_fault_and_no_crash(tmp_path: Path, name: str) -> None:
    assert ": cannot be read: " in fault_of(tmp_path, name)
    assert ": cannot be read: " in fault_of(tmp_path / name)


def test_a_link_may_lead_to_a_file_of_the_bundle_and_to_no_other(tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    (bundle / "data").mkdir(parents=True)
    (bundle / "data" / "file").write_bytes(b"abc")
    (bundle / "file").symlink_to("data/file")
    (tmp_path / "outside").write_bytes(b"abc")
    (bundle / "out").symlink_to("../outside")
    (bundle / "loop").symlink_to("loop")

    assert read_file(bundle, "file") == b"abc"
    assert "leads out of the bundle" in fault_of(bundle, "out")
    assert "leads out of the bundle" in fault_of(bundle, "../outside")
    assert "cannot be read" in fault_of(bundle, "loop")


def test_a_file_of_holes_is_refused_before_it_is_read(tmp_path: Path) -> None:
    facts = write_holes(tmp_path / "file", 20 << 30)

    assert f"more than {MAX_HOLE_BYTES} of its {20 << 30} bytes are holes" in fault_of(tmp_path, expected=facts)
    with (tmp_path / "file").open("r+b") as file:
        for offset in range(0, 10 << 30, 1 << 30):
            file.seek(offset)
            file.write(b"data")
    assert "are holes" in fault_of(tmp_path, expected=facts)


def test_a_few_holes_are_zeros(tmp_path: Path) -> None:
    write_holes(tmp_path / "file", 1 << 20)
    sha256 = hashlib.sha256(bytes(1 << 20)).hexdigest()

    assert read_file(tmp_path, "file", FileFacts(sha256=sha256, bytes=1 << 20)) == bytes(1 << 20)
