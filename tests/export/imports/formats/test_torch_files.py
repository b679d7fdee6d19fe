import os
import pickle
import zipfile
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch

from export.imports.formats import torch_files
from export.imports.formats.tensors import FormatError
from export.imports.formats.torch_files import list_torch, load_torch, tensors_of


class Touches:
    """Unpickled, it would write a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("is_new", [True, False])
def test_a_state_dict_is_listed_and_loaded(tmp_path: Path, is_new: bool) -> None:
    weights = {"a": torch.randn(3, 4), "b": torch.arange(6).half().reshape(2, 3).T}
    torch.save(weights, tmp_path / "w.bin", _use_new_zipfile_serialization=is_new)

    listed = list_torch(tmp_path / "w.bin")

    assert {name: (tensor.shape, tensor.dtype) for name, tensor in listed.items()} == {
        "a": ((3, 4), "float32"),
        "b": ((3, 2), "float16"),
    }
    assert all(torch.equal(listed[name].load(), weight) for name, weight in weights.items())


@pytest.mark.parametrize("is_new", [True, False])
def test_a_file_that_would_run_code_is_refused_by_name(tmp_path: Path, is_new: bool) -> None:
    victim = tmp_path / "victim"
    torch.save({"a": Touches(victim)}, tmp_path / "w.bin", _use_new_zipfile_serialization=is_new)

    with pytest.raises(
        FormatError, match=r"needs [\w.]*touch|needs [\w.]*Path|needs getattr|needs [\w.]+, which could run"
    ):
        list_torch(tmp_path / "w.bin")

    assert not victim.exists()


def test_options_of_older_toolkits_are_read(tmp_path: Path) -> None:
    torch.save({"opt": Namespace(heads=8), "model": {"w": torch.ones(2)}}, tmp_path / "m.pt")

    document = load_torch(tmp_path / "m.pt")

    assert document["opt"].heads == 8
    assert tensors_of(tmp_path / "m.pt", document["model"])["w"].shape == (2,)


def test_strides_of_zero_do_not_make_a_small_file_large(tmp_path: Path) -> None:
    torch.save({"a": torch.ones(1).expand(2**30)}, tmp_path / "w.bin")

    with pytest.raises(FormatError, match="claims that a has the shape"):
        list_torch(tmp_path / "w.bin")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "cannot be read|no file of tensors"),
        (pickle.dumps({"a": 1}), "no file of tensors|cannot be read"),
    ],
)
def test_what_torch_has_not_written_is_refused(tmp_path: Path, content: bytes, expected: str) -> None:
    (tmp_path / "w.bin").write_bytes(content)

    with pytest.raises(FormatError, match=expected):
        list_torch(tmp_path / "w.bin")


def test_a_file_without_tensors_is_refused(tmp_path: Path) -> None:
    torch.save({"a": 1}, tmp_path / "w.bin")

    with pytest.raises(FormatError, match="holds no tensors by name"):
        list_torch(tmp_path / "w.bin")


def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "w.bin", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("archive/data.pkl", bytes(10**6))

    with pytest.raises(
        FormatError, match=r"unpacks to 1000000 bytes in archive/data\.pkl, which torch.save never packs"
    ):
        list_torch(tmp_path / "w.bin")


@pytest.mark.parametrize("is_new", [True, False])
@pytest.mark.parametrize(
    ("tensor", "expected"),
    [
        (torch.eye(3).to_sparse(), "holds a as sparse_coo, which is not read"),
        (torch.ones(3, device="meta"), "holds a without data"),
        (torch.ones(3, dtype=torch.complex64), "holds a as torch.complex64, which is not read"),
    ],
)
def test_a_tensor_of_another_kind_is_named(tmp_path: Path, is_new: bool, tensor: torch.Tensor, expected: str) -> None:
    torch.save({"a": tensor}, tmp_path / "w.bin", _use_new_zipfile_serialization=is_new)

    with pytest.raises(FormatError, match=expected):
        list_torch(tmp_path / "w.bin")


def test_a_file_that_is_cut_off_while_it_is_read_is_a_fault(tmp_path: Path) -> None:
    """Mapped into memory, it would end the process with SIGBUS."""
    torch.save({"a": torch.ones(2**20)}, tmp_path / "w.bin")
    listed = list_torch(tmp_path / "w.bin")
    os.truncate(tmp_path / "w.bin", 4096)

    with pytest.raises(FormatError, match="changed while it was read"):
        listed["a"].load()


def test_views_of_one_tensor_are_loaded_as_they_are(tmp_path: Path) -> None:
    whole = torch.arange(12.0).reshape(3, 4)
    views = {"row": whole[1], "column": whole[:, 2], "turned": whole.T, "parameter": torch.nn.Parameter(whole)}
    torch.save(views, tmp_path / "w.bin")

    listed = list_torch(tmp_path / "w.bin")

    assert all(torch.equal(listed[name].load(), view.detach()) for name, view in views.items())


@pytest.mark.parametrize("is_new", [True, False])
def test_a_pickle_of_more_parts_than_any_model_s_is_refused(
    tmp_path: Path, is_new: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.save({"a": torch.ones(1), "b": [[]] * 1000}, tmp_path / "w.bin", _use_new_zipfile_serialization=is_new)
    monkeypatch.setattr(torch_files, "_MAX_PICKLE_BYTES", 500)

    with pytest.raises(FormatError, match=r"bytes of w/data\.pkl, at most 500|more than 500 parts"):
        list_torch(tmp_path / "w.bin")
