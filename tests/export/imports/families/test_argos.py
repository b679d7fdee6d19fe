"""Argos packages with byte pairs; those with SentencePiece are in test_ctranslate2.py and test_converted.py."""

import json
import shutil
from pathlib import Path

import pytest

from export.imports.families.argos import find
from export.imports.report import ImportFault
from export.imports.subject import build_subject
from export.manifest import draft_manifest
from server.bundle.tokenizer import Tokenizer
from tests.export.imports.parity import read_whole

converting = pytest.importorskip("tests.export.imports.families.test_ctranslate2", reason="needs ctranslate2")
pytest.importorskip("sacremoses", reason="needs sacremoses, of the extra moses")
PIECES = ["<unk>", "<s>", "</s>", "l@@", "o@@", "w", "low", "er", "lo@@", "well-known", "\u300a", "&quot;", "@@"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package as those of 2021 are: merges of subword-nmt 0.1, which stand for the end of a word by a piece."""
    path = tmp_path / "translate-en_de"
    directory = converting.convert(converting.build("pre"), path / "model")
    (directory / "sentencepiece.model").unlink()
    filler = [f"t{i}" for i in range(40 - len(PIECES))]
    (directory / "shared_vocabulary.json").write_text(json.dumps([*PIECES, *filler]), encoding="utf-8")
    settings = {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<unk>"}
    (directory / "config.json").write_text(json.dumps(settings), encoding="utf-8")
    hyphen = ["w e", "we l", "wel l", "well -", "well- k", "well-k n", "well-kn o", "well-kno w", "well-know n"]
    quote = ["& q", "&q u", "&qu o", "&quo t", "&quot ;", "&quot; </w>"]
    merges = ["l o", "lo w</w>", "w </w>", "e r", "er </w>", *hyphen, "well-known </w>", *quote]
    (path / "bpe.model").write_text("\n".join(merges) + "\n", encoding="utf-8")
    metadata = {"from_code": "en", "to_code": "de", "package_version": "1.0", "argos_version": "1.0"}
    (path / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")
    return path


def open_tokenizer(package: Path, directory: Path) -> Tokenizer:
    model, report = read_whole(package)
    subject = build_subject(model, report)
    for name, content in subject.tokenizer.items():
        (directory / name).write_bytes(content)
    manifest = draft_manifest(subject, directory, version="1")
    return Tokenizer(manifest, lambda name: (directory / name).read_bytes())


def test_texts_are_cut_as_argos_cuts_them(package: Path, tmp_path: Path) -> None:
    """No word with a hyphen is split, quotation marks are Moses', and nothing else is cleaned."""
    tokenizer = open_tokenizer(package, tmp_path)

    def cut(text: str) -> list[str]:
        return [PIECES[token] for token in tokenizer.encode(text)]

    assert cut("low lw well-known") == ["low", "l@@", "w", "well-known"]
    assert cut('"lower"') == ["&quot;", "lo@@", "<unk>", "er", "&quot;"]
    assert cut("\u300a low") == ["\u300a", "low"]
    assert tokenizer.decode([11, 3, 5, 11, 6]) == '"lw" low'


def test_its_name_and_search_are_those_of_argos(package: Path) -> None:
    model, _ = read_whole(package)

    assert (model.family, model.name, find(package.parent)) == ("Argos", "argos-en-de", package)
    assert (model.search.beam_size, model.search.length_penalty) == (4, 0.2)
    moses = json.loads(model.tokenizer["moses.json"])
    assert (moses["clean"], moses["dash_splits"], moses["end_is_piece"]) == (False, False, True)


def test_codes_of_its_own_become_bcp_47(package: Path) -> None:
    metadata = json.loads((package / "metadata.json").read_text(encoding="utf-8"))
    metadata |= {"from_code": "zt", "to_code": "pb"}
    (package / "metadata.json").write_text(json.dumps(metadata), encoding="utf-8")

    model, _ = read_whole(package)

    assert [(pair.source, pair.target) for pair in model.language_pairs] == [("zh-Hant", "pt-BR")]
    assert model.name == "argos-zt-pb"


def test_a_sentencepiece_model_goes_first(package: Path) -> None:
    """As Argos looks for it."""
    shutil.copy(converting.MODELS / "marian-shared" / "source.spm", package / "sentencepiece.model")

    model, _ = read_whole(package)

    assert "moses.json" not in model.tokenizer


def test_what_is_wrong_with_its_merges_is_named(package: Path) -> None:
    (package / "bpe.model").write_text("a\n", encoding="utf-8")

    with pytest.raises(ImportFault, match=r"bpe\.model: the line 'a'; expected two pieces a line"):
        read_whole(package)
