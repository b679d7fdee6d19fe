import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from export.imports.detect import opened
from export.imports.families.marian_files import find_files
from export.imports.report import ImportFault, Report
from export.imports.samples import own_sentences
from export.imports.subject import build_subject
from model.transformer import Transformer
from tests.export.imports.parity import read_whole
from tests.export.imports.writers import write_lexical, write_marian

D, FFN, V = 16, 24, 64
SETTINGS = """\
type: transformer
dim-emb: 16
dim-vocabs: [64, 64]
enc-depth: 2
dec-depth: 1
transformer-dim-ffn: 24
transformer-heads: 2
transformer-preprocess: ""
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-ffn-activation: relu
tied-embeddings-all: true
version: v1.9
"""
SSRU = "transformer-decoder-autoreg: rnn\ndec-cell: ssru\n"


def tensors(settings: str) -> dict[str, Any]:
    """Returns random tensors under Marian's names."""
    rng = np.random.default_rng(0)
    shapes: dict[str, tuple[int, int]] = {"decoder_ff_logit_out_b": (1, V)}
    shapes |= (
        {"Wemb": (V, D)}
        if "tied-embeddings-all: true" in settings
        else {"encoder_Wemb": (V, D), "decoder_Wemb": (V, D)}
    )
    layers = [("encoder_l1", ["self"]), ("encoder_l2", ["self"])]
    layers += [("decoder_l1", ["context"] if SSRU in settings else ["self", "context"])]
    for layer, attentions in layers:
        for attention in attentions:
            shapes |= {f"{layer}_{attention}_W{part}": (D, D) for part in "qkvo"}
            shapes |= {f"{layer}_{attention}_b{part}": (1, D) for part in "qkvo"}
            shapes |= {f"{layer}_{attention}_Wo_ln_{part}": (1, D) for part in ("scale", "bias")}
        shapes |= {f"{layer}_ffn_W1": (D, FFN), f"{layer}_ffn_b1": (1, FFN)}
        shapes |= {f"{layer}_ffn_W2": (FFN, D), f"{layer}_ffn_b2": (1, D)}
        shapes |= {f"{layer}_ffn_ffn_ln_{part}": (1, D) for part in ("scale", "bias")}
    if SSRU in settings:
        shapes |= {"decoder_l1_rnn_W": (D, D), "decoder_l1_rnn_Wf": (D, D), "decoder_l1_rnn_bf": (1, D)}
        shapes |= {f"decoder_l1_rnn_ffn_ln_{part}": (1, D) for part in ("scale", "bias")}
    arrays: dict[str, Any] = {
        name: rng.normal(size=shape, scale=0.3).astype(np.float32) for name, shape in shapes.items()
    }
    arrays["special:model.yml"] = np.frombuffer(settings.encode() + b"\0", np.int8)
    return arrays


def train_vocabulary(directory: Path) -> bytes:
    """Returns a SentencePiece model of V pieces, of which the first are eos and unk."""
    path = directory / "v"
    lines = [line.lower() for line in own_sentences("en")]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines),
        model_prefix=str(path),
        vocab_size=V,
        bos_id=-1,
        pad_id=-1,
        eos_id=0,
        unk_id=1,
        minloglevel=2,
    )
    return path.with_suffix(".model").read_bytes()


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return train_vocabulary(tmp_path_factory.mktemp("spm"))


@pytest.fixture
def directory(tmp_path: Path, vocabulary: bytes) -> Path:
    path = tmp_path / "student"
    path.mkdir()
    (path / "vocab.ende.spm").write_bytes(vocabulary)
    return path


def layer_norm(x: Any, arrays: dict[str, Any], name: str) -> Any:
    normal = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-6)
    return normal * arrays[f"{name}_ln_scale"] + arrays[f"{name}_ln_bias"]


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


@pytest.mark.parametrize("is_binary", [True, False])
def test_an_ssru_model_is_read_as_marian_computes_it(directory: Path, is_binary: bool) -> None:
    arrays = tensors(SETTINGS + SSRU)
    if is_binary:
        write_marian(directory / "model.ende.bin", arrays)
    else:
        np.savez(directory / "model.ende.npz", **arrays)
    model, report = read_whole(directory)

    subject = build_subject(model, report)

    weights = subject.model.state_dict()
    assert model.config.decoder_mixer == "ssru"
    assert [(pair.source, pair.target) for pair in model.language_pairs] == [("en", "de")]
    start = model.config.bos_id
    assert start == V
    assert not weights["embedding.tokens.weight"][start].any()
    assert torch.isneginf(weights["output_bias"][[1, V]]).all()
    assert isinstance(subject.model, Transformer)
    layer = subject.model.decoder[0]
    x = np.random.default_rng(1).normal(size=(3, D)).astype(np.float32)
    state, expected = np.zeros(D, np.float32), []
    for row in x:
        forget = sigmoid(row @ arrays["decoder_l1_rnn_Wf"] + arrays["decoder_l1_rnn_bf"][0])
        state = forget * state + (1 - forget) * (row @ arrays["decoder_l1_rnn_W"])
        expected.append(layer_norm(np.maximum(state, 0) + row, arrays, "decoder_l1_rnn_ffn")[0])
    mixed = layer.self_norm(layer.ssru(torch.from_numpy(x)[None])[0] + torch.from_numpy(x))
    np.testing.assert_allclose(mixed.numpy(), np.stack(expected), atol=1e-5)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tied-embeddings-all: true": "tied-embeddings: true"},
        {"activation: relu": "activation: swish"},
        {'preprocess: ""': "preprocess: n", "postprocess: dan": "postprocess: da"},
    ],
)
def test_options_that_change_the_network_are_read(directory: Path, changes: dict[str, str]) -> None:
    settings = SETTINGS
    for old, new in changes.items():
        assert old in settings
        settings = settings.replace(old, new)
    arrays = tensors(settings)
    if "preprocess: n" in settings:
        arrays = {(f"{name}_pre" if "_ln_" in name else name): array for name, array in arrays.items()}
    np.savez(directory / "model.ende.npz", **arrays)

    model, report = read_whole(directory)

    assert len(dict(model.weights(report))) == len(build_subject(model, report).model.state_dict())
    assert (model.config.source_vocab_size is None) == ("tied-embeddings-all" in settings)
    assert model.config.norm == ("pre" if "preprocess: n" in settings else "post")


def test_its_shortlist_comes_along(directory: Path) -> None:
    write_marian(directory / "model.ende.bin", tensors(SETTINGS))
    write_lexical(directory / "lex.ende.bin", 4, [[token] for token in range(V)])

    model, _ = read_whole(directory)

    assert model.shortlist is not None
    assert model.shortlist.candidates((50, 0)).tolist() == [*range(32), 50]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("type: transformer", "type: amun", "type: 'amun'; expected 'transformer'"),
        ("version: v1.9", "right-left: true", "right-left: True; expected False"),
        ("version: v1.9", "future-option: 3", "future-option: 3; expected nothing that is not known"),
        ("version: v1.9", "transformer-decoder-autoreg: average-attention", "expected self-attention, or rnn with"),
        ("[64, 64]", "[64]", "dim-vocabs: [64]; expected the sizes of two vocabularies"),
        ("[64, 64]", "[65, 65]", "vocab.ende.spm: 64 pieces; expected 65"),
        ("enc-depth: 2", "enc-depth: 3", "encoder_l3_ffn_W1: missing"),
        ("postprocess: dan", "postprocess: dhn", "norms after sub-layers"),
    ],
)
def test_what_cannot_be_served_is_named(directory: Path, old: str, new: str, expected: str) -> None:
    arrays = tensors(SETTINGS)
    arrays["special:model.yml"] = np.frombuffer(SETTINGS.replace(old, new).encode(), np.int8)
    np.savez(directory / "model.ende.npz", **arrays)

    with pytest.raises(ImportFault) as caught:
        read_whole(directory)

    assert expected in str(caught.value)


def test_a_decoder_s_settings_name_the_files_and_the_search(directory: Path) -> None:
    write_marian(directory / "model.bin2", tensors(SETTINGS))
    (directory / "model.bin2").rename(directory / "weights.bin")
    write_marian(directory / "model.other.bin", tensors(SETTINGS))
    lines = ["models: [weights.bin]", "vocabs: [vocab.ende.spm, vocab.ende.spm]", "beam-size: 6", "normalize: 0.6"]
    (directory / "decoder.yml").write_text("\n".join([*lines, "allow-unk: true"]), encoding="utf-8")

    model, _ = read_whole(directory.rename(directory.with_name("ende.student")))

    assert (model.search.beam_size, model.search.length_penalty, model.suppressed) == (6, 0.6, (V,))


@pytest.mark.parametrize("name", ["model.intgemm.alphas.bin", "model.deen.bin"])
def test_the_vocabulary_of_both_sides_says_no_direction(directory: Path, name: str) -> None:
    write_marian(directory / name, tensors(SETTINGS))
    (directory / "vocab.ende.spm").rename(directory / "vocab.deen.spm")

    model, _ = read_whole(directory.rename(directory.with_name("ende.student.tiny11")))

    found = ("de", "en") if "deen" in name else ("en", "de")
    assert [(pair.source, pair.target) for pair in model.language_pairs] == [found]


def test_vocabularies_of_each_side_name_the_languages(directory: Path, vocabulary: bytes) -> None:
    write_marian(directory / "model.alphas.bin", tensors(SETTINGS))
    (directory / "vocab.ende.spm").rename(directory / "srcvocab.ende.spm")
    (directory / "trgvocab.ende.spm").write_bytes(vocabulary)

    model, _ = read_whole(directory)

    assert [(pair.source, pair.target) for pair in model.language_pairs] == [("en", "de")]
    (directory / "trgvocab.ende.spm").unlink()
    (directory / "srcvocab.ende.spm").rename(directory / "vocab.ende.spm")
    with pytest.raises(ImportFault, match=r"nothing about the source language.*say which: --source"):
        read_whole(directory)


def write_native(directory: Path, vocabulary: bytes, lines: list[str]) -> None:
    """Writes a model as OPUS-MT has them: pieces of SentencePiece models, numbered by a YAML file."""
    (directory / "vocab.ende.spm").unlink()
    for side in ("source", "target"):
        (directory / f"{side}.spm").write_bytes(vocabulary)
    np.savez(directory / "model.ende.npz", **tensors(SETTINGS))
    (directory / "opus.vocab.yml").write_text("\n".join(lines), encoding="utf-8")


def test_pieces_that_yaml_takes_for_flags_and_times_are_pieces(directory: Path, vocabulary: bytes) -> None:
    pieces = ["</s>", "<unk>", "no", "on", "yes", "00", "12:30", "750", "~", "null"]
    pieces += [f"x{number}" for number in range(len(pieces), V)]
    write_native(directory, vocabulary, [f"{piece}: {number}" for number, piece in enumerate(pieces)])

    model, _ = read_whole(directory)

    assert json.loads(model.tokenizer["source_pieces.json"]) == ["", "", *pieces[2:]]


def test_a_piece_that_is_there_twice_is_named(directory: Path, vocabulary: bytes) -> None:
    lines = ["</s>: 0", "<unk>: 1", '"no": 2', *(f"x{number}: {number}" for number in range(3, V - 1)), "no: 63"]
    write_native(directory, vocabulary, lines)

    with pytest.raises(ImportFault, match=r"opus\.vocab\.yml: has the key 'no' twice"):
        read_whole(directory)


@pytest.mark.parametrize("normalize", ["-1", "1e9", "[1]"])
def test_a_penalty_that_no_search_has_is_named(directory: Path, normalize: str) -> None:
    write_marian(directory / "model.ende.bin", tensors(SETTINGS))
    (directory / "decoder.yml").write_text(f"normalize: {normalize}", encoding="utf-8")

    with pytest.raises(ImportFault, match=r"decoder\.yml: normalize: .*; expected a number from 0 to 10"):
        read_whole(directory)


@pytest.mark.parametrize("models", ["[[model.ende.bin]]", "[7]", "[a, b]"])
def test_models_that_are_no_one_file_are_named(directory: Path, models: str) -> None:
    write_marian(directory / "model.ende.bin", tensors(SETTINGS))
    (directory / "decoder.yml").write_text(f"models: {models}", encoding="utf-8")

    with pytest.raises(ImportFault, match=r"decoder\.yml: models: .*; expected one model"):
        read_whole(directory)


@pytest.mark.parametrize("other", ["model.b.bin", "model.b.npz"])
def test_a_checkpoint_that_is_named_is_read(directory: Path, other: str) -> None:
    write_marian(directory / "model.ende.bin", tensors(SETTINGS))
    (directory / other).write_bytes(b"")
    write_lexical(directory / "lex.ende.bin", 2, [[3]] * V)

    with opened(directory / "model.ende.bin") as found:
        files = find_files(found, Report())

    assert files is not None
    assert (files.model, files.shortlist) == ("model.ende.bin", "lex.ende.bin")
    with pytest.raises(ImportFault, match=rf"model files: {other}, model.ende.bin; expected one; name one of them"):
        read_whole(directory)


def test_settings_that_name_another_checkpoint_are_named(directory: Path) -> None:
    for name in ("x.npz", "y.npz"):
        np.savez(directory / name, **tensors(SETTINGS))
    (directory / "decoder.yml").write_text("models: [x.npz]", encoding="utf-8")

    with (
        opened(directory / "y.npz") as found,
        pytest.raises(ImportFault, match=r"models: \['x.npz'\]; expected .*; model files: y.npz; name that,"),
    ):
        read_whole(found)


@pytest.mark.parametrize("name", ["opus.vocab.yml", "opus.vocab.yaml"])
def test_the_word_vocab_is_no_pair_of_languages(directory: Path, vocabulary: bytes, name: str) -> None:
    pieces = ["</s>", "<unk>", *(f"x{number}" for number in range(2, V))]
    write_native(directory, vocabulary, [f"{piece}: {number}" for number, piece in enumerate(pieces)])
    (directory / "model.ende.npz").rename(directory / "model.npz")
    (directory / "opus.vocab.yml").rename(directory / name)

    model, _ = read_whole(directory.rename(directory.with_name("opus-en-de")))

    assert [(pair.source, pair.target) for pair in model.language_pairs] == [("en", "de")]
