"""Layouts of fairseq's checkpoints, old and new, and what is no such checkpoint."""

import sys
import types
from argparse import Namespace
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

from export.imports.detect import opened
from export.imports.families.fairseq_files import is_here, read_checkpoint
from export.imports.report import ImportFault, Report
from tests.export.imports.parity import read_whole
from tests.imports.fairseq import checkpoint, fsmt_options, fsmt_weights, write_directory

pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")
CLASSES = {
    "fairseq.meters": ["AverageMeter", "TimeMeter"],
    "omegaconf.dictconfig": ["DictConfig"],
    "omegaconf.listconfig": ["ListConfig"],
    "omegaconf.nodes": ["AnyNode"],
    "omegaconf.base": ["ContainerMetadata"],
}


@pytest.fixture
def document() -> dict[str, Any]:
    return checkpoint(fsmt_options(), fsmt_weights())


@pytest.fixture
def expected(tmp_path: Path) -> dict[str, torch.Tensor]:
    return weights(write_directory(tmp_path / "expected-en-de"))


def weights(directory: Path) -> dict[str, torch.Tensor]:
    """Returns the weights of an imported model by our names."""
    model, report = read_whole(directory)
    return dict(model.weights(report))


def assert_same(found: dict[str, torch.Tensor], wanted: dict[str, torch.Tensor]) -> None:
    assert found.keys() == wanted.keys()
    assert [name for name, tensor in found.items() if not torch.equal(tensor, wanted[name])] == []


def fault_of(directory: Path) -> str:
    with pytest.raises(ImportFault) as caught:
        read_whole(directory)
    return str(caught.value)


@pytest.fixture
def foreign(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes objects of classes of fairseq and omegaconf, none of which can be imported when they are read."""
    classes: dict[str, Any] = {}
    for module, names in CLASSES.items():
        parts = module.split(".")
        for depth in range(1, len(parts) + 1):
            monkeypatch.setitem(sys.modules, ".".join(parts[:depth]), types.ModuleType(".".join(parts[:depth])))
        for name in names:
            classes[name] = type(name, (), {"__module__": module})
            setattr(sys.modules[module], name, classes[name])

    def make(kind: str, **state: Any) -> Any:
        instance = classes[kind]()
        instance.__dict__.update(state)
        return instance

    return make


def wrapped(make: Any, value: Any) -> Any:
    """Returns options as omegaconf 2.0 keeps them."""
    if isinstance(value, dict):
        metadata = make("ContainerMetadata", key_type=Any, element_type=str, resolver_cache=defaultdict(dict))
        content = {key: wrapped(make, each) for key, each in value.items()}
        return make("DictConfig", _content=content, _metadata=metadata, _parent=None)
    if isinstance(value, list):
        return make("ListConfig", _content=[wrapped(make, each) for each in value], _parent=None)
    return make("AnyNode", _val=value, _parent=None)


def grouped(model: Any) -> dict[str, Any]:
    """Returns options in groups, as fairseq has them from 0.10 on."""
    task = {"_name": "translation", "source_lang": "en", "target_lang": "de", "left_pad_source": True}
    return {
        "_name": None,
        "common": {"seed": 1, "fp16": True},
        "generation": {"beam": 5, "lenpen": 1.0},
        "task": task,
        "model": model,
        "bpe": {"_name": "fastbpe", "bpe_codes": "/data/bpecodes"},
        "tokenizer": {"_name": "moses", "source_lang": "en", "target_lang": "en", "moses_no_dash_splits": False},
        "optimizer": {"_name": "adam", "lr": [0.1]},
    }


def nested() -> dict[str, Any]:
    """Returns the model's options as hydra has them: in groups of their own, nothing of the task."""
    flat = {key: value for key, value in fsmt_options().items() if key not in ("task", "source_lang", "target_lang")}
    groups: dict[str, Any] = {"_name": flat.pop("arch"), "quant_noise": {"_name": None, "pq": 0.0, "pq_block_size": 8}}
    for side in ("encoder", "decoder"):
        prefix = f"{side}_"
        groups[side] = {"_name": None} | {k.removeprefix(prefix): v for k, v in flat.items() if k.startswith(prefix)}
    rest = {k: v for k, v in flat.items() if not k.startswith(("encoder_", "decoder_"))}
    return groups | rest | {"base_layers": 0, "export": False}


@pytest.mark.parametrize("layout", ["namespace", "nested"])
def test_options_in_groups_are_read_as_those_of_a_command_line(
    tmp_path: Path, document: dict[str, Any], expected: dict[str, torch.Tensor], layout: str
) -> None:
    model = Namespace(**fsmt_options(), _name="transformer_wmt_en_de") if layout == "namespace" else nested()
    document |= {"args": None, "cfg": grouped(model), "task_state": {}}

    assert_same(weights(write_directory(tmp_path / "en-de", document)), expected)


def test_objects_of_omegaconf_are_read_without_it(
    tmp_path: Path,
    document: dict[str, Any],
    expected: dict[str, torch.Tensor],
    foreign: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cfg = wrapped(foreign, grouped(None))
    cfg._content["model"] = foreign("AnyNode", _val=Namespace(**fsmt_options()))
    document |= {"args": None, "cfg": cfg}
    directory = write_directory(tmp_path / "en-de", document)
    monkeypatch.undo()

    assert_same(weights(directory), expected)


def test_what_older_versions_wrote_is_read(
    tmp_path: Path,
    document: dict[str, Any],
    expected: dict[str, torch.Tensor],
    foreign: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Keys, queries and values in one, numbered norms, positions and meters in the file, as version 0.6 had them."""
    old: dict[str, torch.Tensor] = {}
    numbers = {
        "encoder": {"self_attn_layer_norm": 0, "final_layer_norm": 1},
        "decoder": {"self_attn_layer_norm": 0, "encoder_attn_layer_norm": 1, "final_layer_norm": 2},
    }
    for name, tensor in document["model"].items():
        side, *_, module, _ = name.split(".") if name.count(".") > 2 else (name, "", "")
        if ".q_proj." in name:
            parts = [document["model"][name.replace(".q_", f".{letter}_")] for letter in "qkv"]
            old[name.replace("q_proj.", "in_proj_")] = torch.cat(parts)
        elif ".k_proj." not in name and ".v_proj." not in name and "_float_tensor" not in name:
            number = numbers.get(side, {}).get(module)
            old[name if number is None else name.replace(module, f"layer_norms.{number}")] = tensor
    old["decoder.embed_out"] = old.pop("decoder.output_projection.weight")
    old["encoder.embed_positions.weights"] = torch.rand(1026, 48)
    meter = foreign("AverageMeter", val=1.0, sum=2.0, count=3)
    document |= {"model": old, "extra_state": {"train_meters": {"train_loss": meter, "wps": foreign("TimeMeter", n=1)}}}
    directory = write_directory(tmp_path / "en-de", document)
    monkeypatch.undo()

    assert_same(weights(directory), expected)


def test_copies_for_the_kernels_of_torch_are_left_out(
    tmp_path: Path, document: dict[str, Any], expected: dict[str, torch.Tensor]
) -> None:
    for name in ("in_proj_weight", "in_proj_bias", "fc1_weight", "out_proj_bias"):
        document["model"][f"encoder.layers.1.{name}"] = torch.zeros(3)

    assert_same(weights(write_directory(tmp_path / "en-de", document)), expected)


class Malicious:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("run",))


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"extra_state": Malicious()}, "print, which could run code, so it is not read; whoever trusts it loads it"),
        ({"args": Malicious()}, "print, which could run code, so it is not read"),
        ({"args": None}, "has options (args or cfg) in no form that is known"),
        ({"args": None, "cfg": {"model": 3}}, "has options (args or cfg) in no form that is known"),
        ({"args": Namespace()}, "has options (args or cfg) in no form that is known"),
        ({"moe_state": 1}, "checkpoint_best.pt: moe_state: int; expected nothing that is not known here"),
        ({"args": None, "cfg": {**grouped(nested()), "adapters": {}}}, "cfg: adapters: dict; expected nothing"),
    ],
)
def test_what_cannot_be_read_is_refused(
    tmp_path: Path,
    document: dict[str, Any],
    changes: dict[str, Any],
    expected: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert expected in fault_of(write_directory(tmp_path / "en-de", document | changes))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(("content", "expected"), [([1], "holds list, not"), ({"args": 1}, "holds args, not what")])
def test_what_is_no_checkpoint_of_it_is_refused(tmp_path: Path, content: Any, expected: str) -> None:
    assert expected in fault_of(write_directory(tmp_path / "en-de", content))


def test_a_damaged_file_is_refused(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "en-de")
    (directory / "checkpoint_best.pt").write_bytes(b"PK")

    assert "checkpoint_best.pt: " in fault_of(directory)
    assert "download it again" in fault_of(directory)


def test_the_best_checkpoint_is_read_of_those_that_training_leaves(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "en-de")
    for name in ("checkpoint_last.pt", "checkpoint12.pt"):
        (directory / name).write_bytes(b"")

    _, report = read_whole(directory)

    assert report.notes[0] == "checkpoint_best.pt is read, not checkpoint12.pt, checkpoint_last.pt"


def test_a_checkpoint_that_is_named_is_read(tmp_path: Path) -> None:
    source = write_directory(tmp_path / "en-de")
    (source / "checkpoint_best.pt").rename(source / "model1.pt")
    (source / "checkpoint_best.pt").write_bytes(b"")
    (source / "model2.pt").write_bytes(b"")

    with opened(source / "model1.pt") as directory:
        model, report = read_whole(directory)

        assert (model.name, model.family) == ("en-de", "fairseq")
        assert not any("is read, not" in note for note in report.notes)
    assert not directory.exists()
    assert {"model1.pt", "model2.pt", "dict.en.txt"} <= {path.name for path in source.iterdir()}


def test_of_an_ensemble_none_is_chosen(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "en-de")
    (directory / "checkpoint_best.pt").rename(directory / "model1.pt")
    (directory / "model2.pt").write_bytes(b"")

    assert "model1.pt, model2.pt: 2 checkpoints; expected one; name one of them" in fault_of(directory)


def test_it_is_known_without_its_dictionaries(tmp_path: Path, document: dict[str, Any]) -> None:
    directory = write_directory(tmp_path / "en-de", document)
    for path in directory.glob("dict.*.txt"):
        path.unlink()

    assert is_here(directory)
    assert "dict.en.txt: cannot be read: No such file or directory; fairseq-preprocess" in fault_of(directory)
    assert not is_here(tmp_path)
    (directory / "checkpoint_best.pt").write_bytes(b"")
    assert not is_here(directory)


def test_thirds_of_a_stacked_tensor_have_memory_of_their_own(tmp_path: Path, document: dict[str, Any]) -> None:
    document["model"] = {"encoder.layers.0.self_attn.in_proj_weight": torch.arange(12.0).reshape(6, 2)}
    read = read_checkpoint(write_directory(tmp_path / "en-de", document), Report())

    assert read is not None
    tensors = {name.split(".")[-2]: tensor for name, tensor in read.tensors.items()}
    assert {name: tensor.load().tolist() for name, tensor in tensors.items()} == {
        "q_proj": [[0, 1], [2, 3]],
        "k_proj": [[4, 5], [6, 7]],
        "v_proj": [[8, 9], [10, 11]],
    }
    assert all(each.load().untyped_storage().nbytes() == 16 and each.shape == (2, 2) for each in tensors.values())


@pytest.mark.parametrize("kind", ["itself", "doubled"])
def test_options_without_an_end_are_a_fault(tmp_path: Path, document: dict[str, Any], kind: str) -> None:
    endless: list[Any] = []
    if kind == "itself":
        endless.append(endless)
    for _ in range(60):
        endless = [endless, endless]
    document["args"].lr = endless

    assert "has options " in fault_of(write_directory(tmp_path / "en-de", document))
