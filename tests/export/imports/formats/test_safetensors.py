import json
from pathlib import Path
from typing import Any

import pytest
import torch

from export.imports.formats.safetensors import list_safetensors, list_sharded
from export.imports.formats.tensors import FormatError
from tests.export.imports.writers import write_safetensors


def test_tensors_are_listed_by_their_header_and_loaded_as_they_are(tmp_path: Path) -> None:
    weights = {
        "a": torch.randn(3, 4),
        "b": torch.randn(5).half(),
        "c": torch.randn(2, 2).bfloat16(),
        "scalar": torch.tensor(7, dtype=torch.int64),
    }
    write_safetensors(tmp_path / "model.safetensors", weights)

    listed = list_safetensors(tmp_path / "model.safetensors")

    assert {name: (tensor.shape, tensor.dtype) for name, tensor in listed.items()} == {
        "a": ((3, 4), "float32"),
        "b": ((5,), "float16"),
        "c": ((2, 2), "bfloat16"),
        "scalar": ((), "int64"),
    }
    assert all(torch.equal(listed[name].load(), weight) for name, weight in weights.items())


def test_a_file_is_read_only_where_a_tensor_is(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    write_safetensors(path, {"a": torch.ones(4)})
    listed = list_safetensors(path)

    path.write_bytes(path.read_bytes()[:-4])

    with pytest.raises(FormatError, match="changed while it was read"):
        listed["a"].load()


@pytest.mark.parametrize(
    ("header", "data", "expected"),
    [
        (b"", b"", "its header has 0 bytes, not 2 to 16777216"),
        (b"[1, 2]", b"", "header is no object"),
        (b"{]", b"", "is no safetensors file"),
        (
            {"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}},
            b"1234",
            r"has 4 bytes for a, which is float32 \[2\]",
        ),
        ({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}, b"12", "ends before its data does"),
        ({"a": {"dtype": "F8_E4M3", "shape": [1], "data_offsets": [0, 1]}}, b"1", "holds F8_E4M3, which is not read"),
        (
            {"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}},
            b"1234",
            "describes a in no way that is known",
        ),
        (
            {"a": {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 4]}},
            b"1234",
            "which is none of a model's",
        ),
        ({"a": 3}, b"", "describes a in no way that is known"),
        ({"a": {"dtype": ["F32"], "shape": [1], "data_offsets": [0, 4]}}, b"1234", "describes a in no way"),
        ({"a": {"dtype": "F32", "shape": [9] * 50_000, "data_offsets": [0, 4]}}, b"1234", "which is none of a model's"),
        ({f"{i}": 0 for i in range(2**15 + 1)}, b"", "claims to hold 32769 tensors"),
    ],
)
def test_what_is_damaged_is_refused(tmp_path: Path, header: Any, data: bytes, expected: str) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    (tmp_path / "m.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + data)

    with pytest.raises(FormatError, match=expected):
        list_safetensors(tmp_path / "m.safetensors")


def test_a_header_that_would_fill_the_memory_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "m").write_bytes((2**24 + 1).to_bytes(8, "little") + b"[" * 16)

    with pytest.raises(FormatError, match="its header has 16777217 bytes, not 2 to 16777216"):
        list_safetensors(tmp_path / "m")


def test_an_index_joins_its_files(tmp_path: Path) -> None:
    for name in ("x", "y"):
        write_safetensors(tmp_path / f"{name}.safetensors", {name: torch.ones(2)})
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {n: f"{n}.safetensors" for n in "xy"}}), encoding="utf-8")

    assert sorted(list_sharded(index, list_safetensors)) == ["x", "y"]


@pytest.mark.parametrize(
    ("weight_map", "expected"),
    [
        ({"x": "../x.safetensors"}, "no plain file name"),
        ({"x": "z.safetensors"}, "names z.safetensors, which cannot be read"),
        ({"x": "x.safetensors", "y": "x.safetensors"}, "names 1 tensors that its files lack, such as y"),
        ({"x": "", "y": "x.safetensors"}, "names '', which is no plain file name"),
        ({"x": "x.safetensors", "y": "link"}, "names x.safetensors, which is another of its files by a second name"),
        (None, "holds no object 'weight_map'"),
    ],
)
def test_an_index_that_leads_elsewhere_is_refused(tmp_path: Path, weight_map: Any, expected: str) -> None:
    write_safetensors(tmp_path / "x.safetensors", {"x": torch.ones(2)})
    (tmp_path / "link").symlink_to("x.safetensors")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": weight_map}), encoding="utf-8")

    with pytest.raises(FormatError, match=expected):
        list_sharded(index, list_safetensors)
