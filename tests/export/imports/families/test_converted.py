"""Tiny models that CTranslate2's own converter has converted: the ids that CTranslate2 itself gives."""

import importlib.util
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from export.imports.detect import opened, read_model
from export.imports.languages import GivenLanguages
from export.imports.report import ImportFault, Report
from model.search import search
from model.transformer import Transformer
from tests.export.imports.parity import Imported, import_tiny
from tests.imports.converting import CONVERTED, ask_ctranslate2, convert, with_tokenizer
from tests.imports.families import MODELS

pytest.importorskip("ctranslate2", reason="needs ctranslate2, of `make bench`")
MAX_TOKENS = 24
NAMES = sorted(path.name for path in CONVERTED.iterdir())  # float16 and int8, to be small
LARGE = ["m2m100", "mbart50", "nllb"]  # converted here, where `transformers` is installed


def translate(imported: Imported) -> list[list[int]]:
    """Returns the ids of greedy translations by the oracle, without prefix and eos."""
    sentences, model = imported.expected.sentences, imported.subject.model
    assert isinstance(model, Transformer)
    found = search(
        model,
        [sentence.source_ids for sentence in sentences],
        max_tokens=MAX_TOKENS,
        forced_prefixes=[imported.pair(sentence).target_prefix for sentence in sentences],
    )
    return [hypotheses[0].ids for hypotheses in found]


def ask(directory: Path, imported: Imported) -> list[list[int]]:
    """Returns CTranslate2's."""
    sentences = imported.expected.sentences
    prefixes = [imported.pair(sentence).target_prefix for sentence in sentences]
    return ask_ctranslate2(directory, sentences, prefixes, MAX_TOKENS)


@pytest.fixture(scope="module", params=NAMES)
def directory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What users have: the converter's files with the original's SentencePiece models."""
    name = {"marian-shared": "opus-mt-en-de"}.get(request.param, request.param)
    path = Path(shutil.copytree(CONVERTED / request.param, tmp_path_factory.mktemp("converted") / name))
    return with_tokenizer(request.param, path)


def test_translations_have_the_ids_of_ctranslate2(directory: Path, tmp_path: Path) -> None:
    name = {"opus-mt-en-de": "marian-shared"}.get(directory.name, directory.name)
    imported = import_tiny(name, tmp_path, directory)
    sentences = imported.expected.sentences

    encoded = [list(imported.tokenizer.encode(s.text, imported.pair(s).source_prefix)) for s in sentences]
    ours, theirs = translate(imported), ask(directory, imported)

    assert encoded == [sentence.source_ids for sentence in sentences]
    assert len({tuple(ids) for ids in ours}) > 150
    assert [i for i, ids in enumerate(ours) if ids != theirs[i]] == []


@pytest.mark.skipif(importlib.util.find_spec("transformers") is None, reason="needs transformers, to convert")
@pytest.mark.parametrize("name", LARGE)
def test_in_float32_they_are_those_of_generate_too(name: str, tmp_path: Path) -> None:
    directory = convert(name, tmp_path / name)
    (tmp_path / "files").mkdir()
    imported = import_tiny(name, tmp_path / "files", directory)
    run = next(run for run in imported.expected.runs if (run.beam_size, run.forced_eos) == (1, False))
    generated = [
        [token for token in ids[1:] if token != imported.expected.eos_id] for ids in imported.expected.outputs(run)
    ]

    ours, theirs = translate(imported), ask(directory, imported)

    assert ours == theirs
    assert sum(a == b for a, b in zip(ours, generated, strict=True)) == len(ours)


def test_a_model_of_many_languages_knows_them_by_their_tokens(tmp_path: Path) -> None:
    report = Report()
    directory = with_tokenizer("nllb", Path(shutil.copytree(CONVERTED / "nllb", tmp_path / "nllb")))

    model = read_model(directory, GivenLanguages(source=("en",), target=("de", "zh-TW")), report)

    pieces = json.loads((directory / "shared_vocabulary.json").read_text(encoding="utf-8"))
    assert model is not None
    assert (model.family, model.languages is None, model.language_pairs) == ("CTranslate2 (NLLB)", False, ())
    assert model.languages is not None
    assert {code: pieces[each.prefix[0]] for code, each in model.languages.source.items()} == {"en": "eng_Latn"}
    targets = {code: pieces[each.prefix[0]] for code, each in model.languages.target.items()}
    assert targets == {"de": "deu_Latn", "zh-Hant": "zho_Hant"}
    assert report.notes == ["LICENCE: cc-by-nc-4.0: this model must not be used commercially"]
    assert "deu_Latn" not in model.tokenizer["source_pieces.json"].decode()


def test_a_model_without_its_start_token_is_refused(tmp_path: Path) -> None:
    """mBART-25 wants the language there."""
    directory = with_tokenizer("nllb", Path(shutil.copytree(CONVERTED / "nllb", tmp_path / "nllb")))
    config = json.loads((directory / "config.json").read_text(encoding="utf-8"))
    (directory / "config.json").write_text(json.dumps({**config, "decoder_start_token": None}), encoding="utf-8")
    report = Report()

    read_model(directory, GivenLanguages(), report)

    with pytest.raises(ImportFault, match="decoder_start_token: nothing; expected that of eos_token"):
        report.check()


def test_an_argos_package_of_it_is_read_likewise(tmp_path: Path) -> None:
    archive_path = tmp_path / "translate-en_de.argosmodel"
    with zipfile.ZipFile(archive_path, "w") as archive:
        for file in (CONVERTED / "marian-shared").iterdir():
            archive.write(file, f"translate-en_de/model/{file.name}")
        archive.write(MODELS / "marian-shared" / "source.spm", "translate-en_de/sentencepiece.model")
        metadata = {"from_code": "en", "to_code": "de", "package_version": "1.0", "argos_version": "1.5"}
        archive.writestr("translate-en_de/metadata.json", json.dumps(metadata))

    with opened(archive_path) as found:
        (tmp_path / "files").mkdir()
        imported = import_tiny("marian-shared", tmp_path / "files", found)
        theirs = ask(found / "translate-en_de" / "model", imported)

        assert translate(imported) == theirs
