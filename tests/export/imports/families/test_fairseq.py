"""Checkpoints of fairseq: networks and options; that the tiny one is read rightly is in test_parity.py."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from export.imports.report import ImportFault
from export.imports.subject import build_subject
from tests.export.imports.parity import read_whole
from tests.imports.fairseq import NETWORKS, checkpoint, fsmt_options, fsmt_weights, random_checkpoint, write_directory

pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")


def write(directory: Path, weights: dict[str, Any] | None = None, **changes: Any) -> Path:
    """Writes the tiny model with other options, and tensors that are replaced, or missing where they are None."""
    tensors = {name: tensor for name, tensor in {**fsmt_weights(), **(weights or {})}.items() if tensor is not None}
    return write_directory(directory / "wmt-en-de", checkpoint({**fsmt_options(), **changes}, tensors))


def fault_of(directory: Path) -> str:
    with pytest.raises(ImportFault) as caught:
        read_whole(directory)
    return str(caught.value)


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_computes_what_was_written(tmp_path: Path, name: str) -> None:
    original, document, dictionaries = random_checkpoint(name)
    model, report = read_whole(write_directory(tmp_path / "en-de", document, dictionaries))
    source, target = torch.tensor([[5, 9, 11, 3, 2]]), torch.tensor([[2, 7, 30, 8]])

    found = build_subject(model, report).model(source, target)
    expected = original(source, target).detach()

    assert torch.isneginf(found[..., 1]).all()  # <pad>, which its own search never gives
    found[..., 1] = expected[..., 1]
    np.testing.assert_allclose(found.detach().numpy(), expected.numpy(), rtol=1e-5, atol=1e-5)
    assert original.config.source_vocab_size == model.config.source_vocab_size
    assert original.config.tied_output == model.config.tied_output
    assert [note for note in report.notes if "differs" in note] == []


def test_its_languages_and_search_are_those_of_its_makers(tmp_path: Path) -> None:
    model, _ = read_whole(write(tmp_path))

    assert (model.family, model.name, model.reference) == ("fairseq", "wmt-en-de", "fairseq")
    assert [(pair.source, pair.target) for pair in model.language_pairs] == [("en", "de")]
    assert (model.search.beam_size, model.search.length_penalty, model.search.early_stopping) == (5, 1.0, True)
    assert (model.config.bos_id, model.config.eos_id, model.config.pad_id, model.config.unk_id) == (2, 2, 1, 3)
    assert (model.suppressed, model.config.max_positions) == ((1,), 1024)


@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("arch", "transformer_align", "arch: transformer_align; expected nothing that is not known here"),
        ("arch", None, "arch: missing; expected nothing that is not known here; if it is one of the others with sizes"),
        ("task", "translation_lev", "task: 'translation_lev'; expected 'translation'"),
        ("task", "translation_multi_simple_epoch", "task: 'translation_multi_simple_epoch'; expected 'translation'"),
        ("adaptive_softmax_cutoff", [100, 200], "adaptive_softmax_cutoff: [100, 200]; expected nothing"),
        ("cross_self_attention", True, "cross_self_attention: True; expected False"),
        ("no_token_positional_embeddings", True, "no_token_positional_embeddings: True"),
        ("decoder_layers_to_keep", "0,2", "decoder_layers_to_keep: '0,2'; expected nothing"),
        ("decoder_output_dim", 24, "decoder_output_dim: 24; expected 48; nothing here computes other widths"),
        ("encoder_attention_heads", 5, "encoder_attention_heads: 5; expected a width / heads"),
        ("encoder_attention_heads", None, "encoder_attention_heads: None; expected a whole number from 1"),
        ("activation_fn", "tanh", "activation_fn: 'tanh'; expected relu or gelu"),
        ("encoder_layers", 3, "model.encoder.layers.2.fc1.weight: missing; expected a tensor of shape [96, 48]"),
        ("decoder_normalize_before", True, None),  # as the oldest did, without norms at the ends
        ("encoder_learned_pos", True, "encoder_learned_pos: True; expected false; the tensors say otherwise"),
        ("share_all_embeddings", True, "share_all_embeddings: True; expected false: the two dictionaries differ"),
        ("bpe", "gpt2", "bpe: 'gpt2'; expected 'fastbpe' or 'subword_nmt' or 'sentencepiece'"),
        ("moses_no_escape", True, "moses_no_escape: True; expected False"),
        ("source_lang", None, "source language ; expected a language; say which: --source CODE"),
        ("target_lang", "../de", "target_lang: '../de'; expected a language, by whose name"),
        ("target_lang", "fr", "dict.fr.txt: cannot be read"),
        ("rotary", 1, "rotary: 1; expected nothing that is not known here; if it changes no translation, pass --allow"),
    ],
)
def test_options_that_matter_are_believed_or_refused(
    tmp_path: Path, option: str, value: object, expected: str | None
) -> None:
    directory = write(tmp_path, None, **{option: value})

    if expected is None:
        read_whole(directory)
    else:
        assert expected in fault_of(directory)


def test_all_that_is_wrong_is_said_at_once(tmp_path: Path) -> None:
    directory = write(tmp_path, arch="my_transformer", cross_self_attention=True)
    (directory / "dict.de.txt").unlink()
    (directory / "bpecodes").unlink()

    found = fault_of(directory).splitlines()

    assert [line.partition("; ")[0] for line in found] == [
        "dict.de.txt: cannot be read: No such file or directory",
        "checkpoint_best.pt: args: cross_self_attention: True",
        "checkpoint_best.pt: args: arch: my_transformer",
    ]
    assert "fairseq-preprocess wrote it" in found[0]


@pytest.mark.parametrize(
    ("tensors", "expected"),
    [
        ({"decoder.layers.0.self_attn.bias_k": torch.ones(1, 1, 48)}, "bias_k: a tensor of shape [1, 1, 48]; expected"),
        ({"encoder.layers.0.fc1.bias": None}, "model.encoder.layers.0.fc1.bias: missing; expected a tensor of"),
        ({"encoder.layers.0.fc1.bias": torch.ones(9)}, "model.encoder.layers.0.fc1.bias: shape [9]; expected [96]"),
        ({"decoder.layer_norm.weight": torch.ones(48)}, "layer_norm: one of the decoder alone; expected one of both"),
        ({"encoder.embed_tokens.weight": torch.ones(9, 48)}, "dict.en.txt: 341 pieces; expected 5, the rows of the"),
    ],
)
def test_tensors_that_do_not_fit_are_named(tmp_path: Path, tensors: dict[str, Any], expected: str) -> None:
    assert expected in fault_of(write(tmp_path, tensors))


def test_a_file_without_an_output_ties_it_to_the_embedding(tmp_path: Path) -> None:
    model, _ = read_whole(write(tmp_path, {"decoder.output_projection.weight": None}))

    assert model.config.tied_output
