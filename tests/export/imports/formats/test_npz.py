import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from export.imports.formats.npz import list_npz
from export.imports.formats.tensors import FormatError


def test_arrays_are_listed_and_loaded(tmp_path: Path) -> None:
    matrix = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
    np.savez(tmp_path / "m.npz", matrix=matrix, text=np.frombuffer(b"type: transformer\0", np.int8))

    listed = list_npz(tmp_path / "m.npz")

    assert {name: (tensor.shape, tensor.dtype) for name, tensor in listed.items()} == {
        "matrix": ((3, 4), "float32"),
        "text": ((18,), "int8"),
    }
    assert np.array_equal(listed["matrix"].load().numpy(), matrix)
    assert listed["text"].load().numpy().tobytes() == b"type: transformer\0"


def test_columns_first_arrays_are_what_they_are(tmp_path: Path) -> None:
    matrix = np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3))
    np.savez_compressed(tmp_path / "m.npz", matrix=matrix)

    assert np.array_equal(list_npz(tmp_path / "m.npz")["matrix"].load().numpy(), matrix)


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    np.savez(tmp_path / "m.npz", a=np.array([{"x": 1}], dtype=object))

    with pytest.raises(FormatError, match=r"holds a\.npy, an array of object"):
        list_npz(tmp_path / "m.npz")


def test_an_array_that_claims_more_than_it_has_is_refused(tmp_path: Path) -> None:
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000, 1000), }".ljust(117) + b"\n"
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("a.npy", b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + bytes(8))

    with pytest.raises(FormatError, match=r"has 8 bytes for a\.npy, which is float32 \[1000, 1000\]"):
        list_npz(tmp_path / "m.npz")


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 nothing", b"text"])
def test_what_is_no_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "m.npz").write_bytes(content)

    with pytest.raises(FormatError, match=r"is no whole \.npz archive"):
        list_npz(tmp_path / "m.npz")


def test_what_is_no_array_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "m.npz", "w") as archive:
        archive.writestr("a.txt", "text")

    with pytest.raises(FormatError, match=r"holds a\.txt, which is no array of numpy"):
        list_npz(tmp_path / "m.npz")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA, zipfile.ZIP_STORED])
def test_data_that_were_damaged_on_their_way_are_a_fault(tmp_path: Path, method: int) -> None:
    array = io.BytesIO()
    np.save(array, np.random.default_rng(0).integers(0, 9, 4000).astype(np.float32))
    with zipfile.ZipFile(tmp_path / "m.npz", "w", method) as archive:
        archive.writestr("a.npy", array.getvalue())
    data = bytearray((tmp_path / "m.npz").read_bytes())
    middle = len(data) // 2
    data[middle : middle + 40] = bytes(40)
    (tmp_path / "m.npz").write_bytes(data)

    with pytest.raises(FormatError, match=r"is no whole|holds a"):
        list_npz(tmp_path / "m.npz")["a"].load()


def test_a_header_that_unpacks_to_much_is_not_unpacked(tmp_path: Path) -> None:
    header = b"\x93NUMPY\x02\x00" + (2**27).to_bytes(4, "little") + bytes(2**27)
    with zipfile.ZipFile(tmp_path / "m.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", header)
    del header
    tracemalloc.start()

    with pytest.raises(FormatError, match=r"holds a\.npy, which is no array of numpy"):
        list_npz(tmp_path / "m.npz")

    assert tracemalloc.get_traced_memory()[1] < 2**22
    tracemalloc.stop()
