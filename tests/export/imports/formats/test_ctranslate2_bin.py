from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from export.imports.formats.ctranslate2_bin import VERSIONS, list_variables
from export.imports.formats.tensors import FormatError
from tests.export.imports.writers import write_ctranslate2


@pytest.mark.parametrize("version", VERSIONS)
def test_every_version_is_read(tmp_path: Path, version: int) -> None:
    arrays: dict[str, Any] = {
        "encoder/layer_0/ffn/linear_0/weight": np.arange(6, dtype=np.int8).reshape(2, 3),
        "encoder/layer_0/ffn/linear_0/weight_scale": np.array([2, 4], np.float32),
        "encoder/num_heads": np.array(8, np.int16),
    }
    write_ctranslate2(tmp_path / "model.bin", arrays, version=version, aliases={"other/weight": next(iter(arrays))})

    found = list_variables(tmp_path / "model.bin")

    assert (found.spec, found.revision) == (("TransformerSpec", 7) if version >= 2 else ("", 1))
    for name, array in arrays.items():
        assert (found.tensors[name].shape, found.tensors[name].dtype) == (array.shape, array.dtype.name)
        assert np.array_equal(found.tensors[name].load().numpy(), array)
    if version >= 3:
        assert np.array_equal(found.tensors["other/weight"].load().numpy(), next(iter(arrays.values())))
        assert "other/weight_scale" in found.tensors


def _later_version(data: bytes) -> bytes:
    return b"\x07" + data[1:]


def _without_variable(data: bytes) -> bytes:
    return data.replace(b"weights0", b"weights1", 1)  # its alias goes on to say the old name


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda data: data[:-8], "ends"),
        (lambda data: data[:30], "ends within its header"),
        (_later_version, "up to 6 are read"),
        (_without_variable, "does not hold it"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, change: Callable[[bytes], bytes], expected: str) -> None:
    path = tmp_path / "model.bin"
    write_ctranslate2(path, {"weights0": np.ones(2, np.float32)}, aliases={"alias": "weights0"})
    path.write_bytes(change(path.read_bytes()))

    with pytest.raises(FormatError, match=expected):
        list_variables(path)


def test_a_variable_that_claims_more_than_it_has_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    write_ctranslate2(path, {"w": np.ones(2, np.float32)})
    path.write_bytes(path.read_bytes().replace(b"\x01\x02\0\0\0", b"\x01\x09\0\0\0", 1))

    with pytest.raises(FormatError, match=r"has 8 bytes for w, which is float32 \[9\]"):
        list_variables(path)
