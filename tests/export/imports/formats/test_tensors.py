import os
from pathlib import Path

import pytest
import torch

from export.imports.formats.tensors import FormatError, bytes_of_strangers, check_count, num_bytes, open_regular, region


def test_a_region_is_what_is_there(tmp_path: Path) -> None:
    data = torch.randn(3, 2)
    (tmp_path / "f").write_bytes(b"head" + data.numpy().tobytes())

    tensor = region(tmp_path / "f", 4, (3, 2), "float32")

    assert torch.equal(tensor.load(), data)
    assert (tensor.num_elements, tensor.file) == (6, "f")


@pytest.mark.parametrize(("offset", "shape"), [(4, (3, 3)), (-4, (1,)), (2**70, (1,))])
def test_a_region_lies_within_its_file(tmp_path: Path, offset: int, shape: tuple[int, ...]) -> None:
    (tmp_path / "f").write_bytes(bytes(28))

    with pytest.raises(FormatError, match="ends before its data does"):
        region(tmp_path / "f", offset, shape, "float32")


@pytest.mark.parametrize("shape", [(2**34,), (2**40, 2**40), (1,) * 9, (-1, -1)])
def test_shapes_of_no_model_are_refused_before_anything_is_allocated(shape: tuple[int, ...]) -> None:
    with pytest.raises(FormatError, match="none of a model's"):
        num_bytes(shape, "float32")


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(FormatError, match="is no regular file"):
        open_regular(tmp_path / "pipe")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n",
            "git-lfs, .* run `git lfs install` and",
        ),
        (b"\xef\xbb\xbf\n<!DOCTYPE html><title>Not found</title>", "is a web page, not the file itself"),
        (b"<!-- a comment --><HTML lang=en>", "is a web page, not the file itself"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "is a web page, not the file itself"),
    ],
)
def test_what_stands_in_place_of_a_download_is_called_so(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "f").write_bytes(content)

    with pytest.raises(FormatError, match=expected):
        open_regular(tmp_path / "f")


def test_a_file_of_holes_is_no_download(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.write(b"begun")
        file.truncate(2**40)

    with pytest.raises(FormatError, match="is mostly holes"):
        open_regular(tmp_path / "f")


def test_a_file_with_a_hole_is_read(tmp_path: Path) -> None:
    with (tmp_path / "f").open("wb") as file:
        file.write(bytes(range(256)) * 2**14)
        file.truncate(2**22 + 2**20)

    with open_regular(tmp_path / "f") as file:
        assert file.read(4) == b"\0\1\2\3"


def test_a_tensor_of_a_file_that_was_replaced_is_not_loaded(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(bytes(8))
    tensor = region(tmp_path / "f", 0, (2,), "float32")
    (tmp_path / "new").write_bytes(bytes(8))
    (tmp_path / "new").replace(tmp_path / "f")

    with pytest.raises(FormatError, match="changed while it was read"):
        tensor.load()


@pytest.mark.parametrize("error", [MemoryError(), OverflowError("too large\nfor this"), KeyError("x")])
def test_whatever_a_library_raises_is_a_fault_of_the_file(error: Exception) -> None:
    with (
        pytest.raises(FormatError, match=r"^cannot be read: (MemoryError|too large|'x')$"),
        bytes_of_strangers("cannot be read"),
    ):
        raise error


def test_a_file_of_more_tensors_than_any_model_s_is_refused() -> None:
    check_count(2**15)

    with pytest.raises(FormatError, match="claims to hold 32769 tensors, at most 32768 are read"):
        check_count(2**15 + 1)
