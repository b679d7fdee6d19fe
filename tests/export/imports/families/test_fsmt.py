"""What is wrong with directories of FSMT; that right ones are read rightly is in test_parity.py."""

import json
import shutil
from pathlib import Path

import pytest
import torch

from export.imports.report import ImportFault
from export.imports.subject import build_subject
from tests.export.imports.parity import read_whole
from tests.imports.families import MODELS

pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")
OUTPUT, TARGET, SOURCE = (
    f"model.{name}.weight" for name in ("decoder.output_projection", "decoder.embed_tokens", "encoder.embed_tokens")
)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODELS / "fsmt", tmp_path / "wmt19-en-de"))


def change(path: Path, **changes: object) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **changes}), encoding="utf-8")


def change_weights(directory: Path, changes: dict[str, torch.Tensor | None]) -> dict[str, torch.Tensor]:
    """Replaces tensors, or takes those away that are None; returns what there was."""
    before: dict[str, torch.Tensor] = torch.load(directory / "pytorch_model.bin", weights_only=True)
    after = {name: tensor for name, tensor in {**before, **changes}.items() if tensor is not None}
    torch.save(after, directory / "pytorch_model.bin")
    return before


def test_its_languages_and_search_are_those_of_its_makers(directory: Path) -> None:
    model, _ = read_whole(directory)

    assert [(pair.source, pair.target) for pair in model.language_pairs] == [("en", "de")]
    assert (model.search.beam_size, model.search.length_penalty) == (5, 1.15)
    assert (model.search.early_stopping, model.search.forced_eos, model.max_target_tokens) == (False, True, 199)
    assert (model.config.bos_id, model.config.eos_id, model.config.tied_output) == (2, 2, False)


def test_a_file_without_an_output_ties_it_to_the_embedding(directory: Path) -> None:
    change_weights(directory, {OUTPUT: None})

    model, report = read_whole(directory)

    weights = build_subject(model, report).model.state_dict()
    assert model.config.tied_output
    assert "output.weight" not in weights


def test_an_output_that_is_the_embedding_is_kept_once(directory: Path) -> None:
    tensors = change_weights(directory, {})
    change_weights(directory, {OUTPUT: tensors[TARGET].clone()})

    model, report = read_whole(directory)

    assert model.config.tied_output
    assert torch.equal(build_subject(model, report).model.state_dict()["embedding.tokens.weight"], tensors[TARGET])
    assert report.notes == ["the licence is unknown: the model's makers must be asked what may be done with it"]


def test_sides_that_share_their_rows_have_one_embedding(directory: Path) -> None:
    tensors = change_weights(directory, {OUTPUT: None})
    change_weights(directory, {OUTPUT: None, SOURCE: tensors[TARGET].clone()})
    shutil.copy(directory / "vocab-tgt.json", directory / "vocab-src.json")
    size = tensors[TARGET].shape[0]
    change(directory / "config.json", tie_word_embeddings=True, src_vocab_size=size)

    model, report = read_whole(directory)

    assert model.config.source_vocab_size is None
    assert len(build_subject(model, report).model.state_dict()) == len(model.plan)


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("langs", ["en"], "config.json: langs: ['en']; expected the two languages"),
        ("langs", ["de", "en"], "tokenizer_config.json: langs: ['en', 'de']; expected ['de', 'en']"),
        ("src_vocab_size", 9, "vocab-src.json: 345 pieces"),
        ("pad_token_id", 3, "config.json: pad_token_id: 3; expected 1"),
        ("decoder_start_token_id", 2**20, None),  # generation_config.json says otherwise
        ("tie_word_embeddings", True, "tie_word_embeddings: True; expected false: the vocabularies have 345 and 372"),
        ("bad_words_ids", [[371]], None),
        ("bad_words_ids", [[372]], "bad_words_ids: [[372]]; expected ids from 0 to 371"),
        ("bad_words_ids", [[-1]], "bad_words_ids: [[-1]]; expected ids from 0 to 371"),
        ("rope", 1, "config.json: rope: 1; expected nothing that is not known here"),
        ("max_length", 0, None),  # likewise
    ],
)
def test_settings_that_matter_are_believed_or_refused(
    directory: Path, key: str, value: object, expected: str | None
) -> None:
    change(directory / "config.json", **{key: value})

    if expected is None:
        read_whole(directory)
        return
    with pytest.raises(ImportFault) as caught:
        read_whole(directory)

    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("file", "content", "expected"),
    [
        ("merges.txt", None, "merges.txt: missing"),
        ("merges.txt", "a\n", "merges.txt: the line 'a'; expected two pieces a line"),
        ("merges.txt", "", "merges.txt: nothing; expected two pieces a line"),
        ("vocab-src.json", '{"a": 0}', "vocab-src.json: 1 pieces"),
        ("vocab-src.json", '{"a": 0}', "vocab-src.json: ['a'] first; expected <s>, <pad>, </s>, <unk>"),
        ("vocab-tgt.json", None, "vocab-tgt.json: missing"),
        ("tokenizer_config.json", '{"do_upper_case": true}', "do_upper_case: True; expected nothing"),
        ("pytorch_model.bin", "x", "pytorch_model.bin: "),
    ],
)
def test_files_that_are_missing_or_wrong_are_named(
    directory: Path, file: str, content: str | None, expected: str
) -> None:
    (directory / file).unlink()
    if content is not None:
        (directory / file).write_text(content, encoding="utf-8")

    with pytest.raises(ImportFault) as caught:
        read_whole(directory)

    assert expected in str(caught.value)
