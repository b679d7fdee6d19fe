"""Checkpoints of OpenNMT-py: layouts and faults; test_parity.py compares with what its own translator gives."""

import sys
import types
from argparse import Namespace
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.imports.detect import read_model
from export.imports.foreign import ForeignModel
from export.imports.languages import GivenLanguages
from export.imports.report import ImportFault, Report
from export.imports.subject import build_subject
from export.manifest import draft_manifest
from server.bundle.tokenizer import Tokenizer
from tests.imports.opennmt import read_checkpoint, write_directory

TORCHTEXT = {
    "torchtext.vocab": ["Vocab"],
    "torchtext.data.field": ["Field"],
    "torchtext.data.utils": ["_split_tokenizer"],
    "onmt.inputters.text_dataset": ["TextMultiField", "_feature_tokenize"],
}


@pytest.fixture
def checkpoint() -> dict[str, Any]:
    return read_checkpoint()


def read(directory: Path, *allowed: str) -> tuple[ForeignModel, Report]:
    report = Report(allowed=allowed)
    model = read_model(directory, GivenLanguages(), report)
    if model is not None:
        model.check(report)
    report.check()
    assert model is not None
    return model, report


def fault_of(directory: Path) -> str:
    with pytest.raises(ImportFault) as caught:
        read(directory)
    return str(caught.value)


def logits(directory: Path) -> Any:
    """Returns what an imported model gives for a sentence, teacher-forced."""
    model, report = read(directory)
    found = build_subject(model, report).model(torch.tensor([[5, 9, 11, 30]]), torch.tensor([[2, 7, 30, 8]]))
    return found.detach().numpy()


@pytest.fixture
def old(checkpoint: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes vocabularies as version 2.3 pickled them: objects of classes that are gone when they are read."""
    classes: dict[str, Any] = {}
    for name, members in TORCHTEXT.items():
        parts = name.split(".")
        for depth in range(1, len(parts) + 1):
            parent = ".".join(parts[:depth])
            monkeypatch.setitem(sys.modules, parent, sys.modules.get(parent) or types.ModuleType(parent))
        for member in members:
            classes[member] = type(member, (), {"__module__": name})
            setattr(sys.modules[name], member, classes[member])

    def make(value: str, **state: Any) -> Any:
        instance = classes[value]()
        instance.__dict__.update(state)
        return instance

    def field(pieces: list[str]) -> Any:
        vocab = make(
            "Vocab", freqs=Counter(pieces), itos=pieces, stoi={p: i for i, p in enumerate(pieces)}, unk_index=0
        )
        tokenize = partial(classes["_feature_tokenize"], layer=0, feat_delim=None)
        return make("Field", vocab=vocab, tokenize=tokenize, dtype=torch.int64, tokenizer_args=(tokenize, "en"))

    def vocabulary(layout: str) -> Any:
        sides = {side: checkpoint["vocab"][side] for side in ("src", "tgt")}
        if layout == "pairs of names and vocabularies":
            return [(side, field(pieces).vocab) for side, pieces in sides.items()]
        if layout == "features":
            return {s: make("TextMultiField", fields=[(s, field(p)), ("pos", field(p))]) for s, p in sides.items()}
        return {s: make("TextMultiField", fields=[(s, field(p))]) for s, p in sides.items()}

    yield vocabulary
    monkeypatch.undo()


def write_old(directory: Path, checkpoint: dict[str, Any], vocab: Any, monkeypatch: pytest.MonkeyPatch) -> Path:
    generator = {f"0.{name}": tensor for name, tensor in checkpoint["generator"].items()}
    path = write_directory(directory, {**checkpoint, "vocab": vocab, "generator": generator})
    for name in list(sys.modules):
        if name.partition(".")[0] in ("torchtext", "onmt"):
            monkeypatch.delitem(sys.modules, name)
    return path


def test_what_the_file_says_is_believed(tmp_path: Path) -> None:
    model, _ = read(write_directory(tmp_path / "opennmt-en-de"))

    config = model.config
    assert [(pair.source, pair.target) for pair in model.language_pairs] == [("en", "de")]
    assert (config.norm, config.layer_norm_eps, config.activation, config.max_positions) == ("pre", 1e-6, "relu", 1024)
    assert (config.encoder_layers, config.decoder_layers, config.num_heads, config.ffn_dim) == (2, 1, 4, 64)
    assert (config.pad_id, config.unk_id, config.bos_id, config.eos_id) == (1, 0, 2, 3)
    assert (model.source_eos, model.search.beam_size, model.search.length_penalty) == (False, 5, 0.0)


@pytest.mark.parametrize("layout", ["fields", "pairs of names and vocabularies"])
def test_vocabularies_of_torchtext_are_read_without_it(
    tmp_path: Path, checkpoint: dict[str, Any], old: Any, layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = logits(write_directory(tmp_path / "en-de"))
    directory = write_old(tmp_path / "old-en-de", checkpoint, old(layout), monkeypatch)

    model, _ = read(directory)

    assert "torchtext" not in sys.modules
    assert model.tokenizer == read(tmp_path / "en-de")[0].tokenizer
    np.testing.assert_array_equal(logits(directory), expected)


def test_a_source_that_has_no_bos_uses_those_ids_for_pieces(tmp_path: Path, checkpoint: dict[str, Any]) -> None:
    """As in versions before 3, whose sources have <unk> and <blank> only."""
    weight = "encoder.embeddings.make_embedding.emb_luts.0.weight"
    checkpoint["model"][weight] = torch.cat([checkpoint["model"][weight][:2], checkpoint["model"][weight][4:]])
    checkpoint["vocab"]["src"] = [piece for piece in checkpoint["vocab"]["src"] if piece not in ("<s>", "</s>")]
    model, report = read(write_directory(tmp_path / "en-de", checkpoint))
    subject = build_subject(model, report)
    for name, content in subject.tokenizer.items():
        (tmp_path / name).write_bytes(content)
    manifest = draft_manifest(subject, tmp_path, version="1")
    tokenizer = Tokenizer(manifest, lambda name: (tmp_path / name).read_bytes())

    pieces = checkpoint["vocab"]["src"]
    text = "".join(pieces[2:4]).replace("\u2581", " ")
    assert {2, 3} & set(tokenizer.encode(text))
    assert 1 not in tokenizer.encode("<blank>")


def test_other_layouts_of_vocabularies_get_a_row_to_pad_with(tmp_path: Path, checkpoint: dict[str, Any]) -> None:
    expected = logits(write_directory(tmp_path / "en-de"))
    weight = "encoder.embeddings.make_embedding.emb_luts.0.weight"
    order = [0, *range(2, len(checkpoint["vocab"]["src"])), 1]  # <blank> last
    checkpoint["model"][weight] = checkpoint["model"][weight][order]
    checkpoint["vocab"]["src"] = [checkpoint["vocab"]["src"][token] for token in order]
    model, report = read(write_directory(tmp_path / "other-en-de", checkpoint))

    source = torch.tensor([[4, 8, 10, 29]])  # one less than in `logits`
    found = build_subject(model, report).model(source, torch.tensor([[2, 7, 30, 8]])).detach().numpy()

    size = expected.shape[-1]
    assert model.config.pad_id == model.config.vocab_size - 1 == max(map(len, (order, checkpoint["vocab"]["tgt"])))
    np.testing.assert_allclose(found[..., :size], expected, atol=1e-6)
    assert np.isneginf(found[..., model.config.pad_id]).all()


@pytest.mark.parametrize("name", ["share_decoder_embeddings", "share_embeddings"])
def test_shared_weights_are_kept_once(tmp_path: Path, checkpoint: dict[str, Any], name: str) -> None:
    tables = [f"{side}.embeddings.make_embedding.emb_luts.0.weight" for side in ("encoder", "decoder")]
    target = checkpoint["model"][tables[1]]
    setattr(checkpoint["opt"], name, True)
    if name == "share_embeddings":
        checkpoint["vocab"]["src"] = checkpoint["vocab"]["tgt"]
        checkpoint["model"][tables[0]] = target
    else:
        checkpoint["generator"]["weight"] = target

    model, report = read(write_directory(tmp_path / "en-de", checkpoint))

    weights = build_subject(model, report).model.state_dict()
    assert (model.config.tied_output, model.config.source_vocab_size is None) == (
        name == "share_decoder_embeddings",
        name == "share_embeddings",
    )
    assert torch.equal(weights["embedding.tokens.weight"], target)
    assert [note for note in report.notes if "differs" in note] == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("encoder_type", "rnn"),
        ("decoder_type", "transformer_lm"),
        ("max_relative_positions", 20),
        ("max_relative_positions", -1),
        ("position_encoding", False),
        ("copy_attn", True),
        ("self_attn_type", "average"),
        ("layer_norm", "rms"),
        ("num_kv", 2),
        ("parallel_residual", True),
        ("num_experts", 8),
        ("lora_layers", ["w_1"]),
        ("generator_function", "sparsemax"),
        ("n_src_feats", 1),
        ("pos_ffn_activation_fn", "silu"),
        ("heads", 3),
        ("transforms", ["sentencepiece", "onmt_tokenize"]),
        ("transforms", ["sentencepiece", ["clean"]]),
        ("an_option_of_version_4", 1),
    ],
)
def test_options_that_change_the_network_are_named(
    tmp_path: Path, checkpoint: dict[str, Any], option: str, value: object
) -> None:
    setattr(checkpoint["opt"], option, value)

    found = fault_of(write_directory(tmp_path / "en-de", checkpoint))

    assert f"model_step_400.pt: opt: {option}: " in found
    assert len(found.splitlines()) <= 3


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path, checkpoint: dict[str, Any]) -> None:
    checkpoint["opt"].copy_attn = True
    checkpoint["vocab"]["tgt"] = [piece for piece in checkpoint["vocab"]["tgt"] if piece != "</s>"]
    checkpoint["scheduler"] = {}
    directory = write_directory(tmp_path / "model", checkpoint)
    (directory / "sentencepiece.model").unlink()

    found = fault_of(directory)

    for part in ("copy_attn: True", "no </s>", "scheduler: dict", "sentencepiece.model: missing"):
        assert part in found


def test_tensors_that_nothing_reads_are_faults(tmp_path: Path, checkpoint: dict[str, Any]) -> None:
    checkpoint["model"]["decoder.transformer_layers.0.self_attn.relative_positions_embeddings.weight"] = torch.ones(
        9, 8
    )
    del checkpoint["model"]["encoder.layer_norm.bias"]

    found = fault_of(write_directory(tmp_path / "en-de", checkpoint))

    assert "relative_positions_embeddings.weight: a tensor of shape [9, 8]; expected nothing" in found
    assert "encoder.layer_norm.bias: missing" in found


def test_options_without_a_text_for_a_name_are_named(tmp_path: Path, checkpoint: dict[str, Any]) -> None:
    vars(checkpoint["opt"]).update({5: 1, ("a", 2): 1})

    found = fault_of(write_directory(tmp_path / "en-de", checkpoint))

    assert "model_step_400.pt: opt: 5: 1; expected nothing that is not known" in found
    assert "model_step_400.pt: opt: ['a', 2]: 1; expected nothing that is not known" in found


class Malicious:
    def __reduce__(self) -> tuple[Any, ...]:
        return (print, ("run",))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        ({"opt": Namespace(), "vocab": Malicious(), "model": {}}, "print, which could run code, so it is not read"),
        ({"options": None, "model": {}}, "holds options, model, not what OpenNMT-py writes"),
        ([1], "holds list, not what OpenNMT-py writes"),
        ({"opt": {}, "vocab": {}}, "has options that are none"),
        ({"opt": Namespace(), "vocab": {"src": ["a"]}, "model": {}}, "has vocabularies in no form that is known"),
        ({"opt": Namespace(), "vocab": {"x": 1}, "model": {}}, "has no vocabulary src in a form that is known"),
        ({"opt": Namespace(), "vocab": {"src": [], "src_feats": [["a"]]}, "model": {}}, "has features of words"),
        ({"opt": Namespace(), "vocab": {"src": [], "data_task": "lm"}, "model": {}}, "is for the task lm"),
        (
            {"opt": Namespace(), "vocab": {"src": ["\ud800"], "tgt": []}, "model": {}},
            "has vocabularies in no form that is known: 'utf-8' codec can't encode",
        ),
    ],
)
def test_what_is_no_checkpoint_of_it_is_refused(
    tmp_path: Path, document: Any, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert expected in fault_of(write_directory(tmp_path / "en-de", document))
    assert capsys.readouterr().out == ""


def test_features_of_words_are_refused_in_the_older_layout(
    tmp_path: Path, checkpoint: dict[str, Any], old: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_old(tmp_path / "en-de", checkpoint, old("features"), monkeypatch)

    assert "has features of words" in fault_of(directory)


def test_of_two_checkpoints_none_is_chosen(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "en-de")
    (directory / "model_step_300.pt").write_bytes(b"")

    assert "model_step_300.pt, model_step_400.pt: 2 checkpoints; expected one" in fault_of(directory)
