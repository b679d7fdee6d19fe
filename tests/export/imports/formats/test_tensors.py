import os
from pathlib import Path

import pytest
import torch

from export.imports.formats.tensors import FormatError, num_bytes, open_regular, region


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
