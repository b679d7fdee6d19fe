"""A tiny OPUS-MT model that CTranslate2's own converter has converted: the ids that CTranslate2 itself gives."""

import json
import shutil
import zipfile
from pathlib import Path

import pytest

from export.imports.detect import opened, read_model
from export.imports.foreign import ForeignModel
from export.imports.languages import GivenLanguages
from export.imports.report import Report
from export.imports.subject import build_subject
from export.manifest import draft_manifest
from model.search import search
from server.bundle.tokenizer import Tokenizer
from tests.imports.expected import read
from tests.imports.families import EXPECTED, MODELS

ctranslate2 = pytest.importorskip("ctranslate2", reason="needs ctranslate2, of `make bench`")
CONVERTED = MODELS.parent / "converted" / "marian-shared"  # float16, to be small
NUM_SENTENCES = 300
MAX_TOKENS = 24


@pytest.fixture(scope="module")
def texts() -> list[str]:
    return [sentence.text for sentence in read(EXPECTED / "marian-shared.json.gz").sentences[:NUM_SENTENCES]]


@pytest.fixture(scope="module")
def pieces() -> list[str]:
    content: list[str] = json.loads((CONVERTED / "shared_vocabulary.json").read_text(encoding="utf-8"))
    return content


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What users have: the converter's files with the original's SentencePiece models."""
    path = Path(shutil.copytree(CONVERTED, tmp_path_factory.mktemp("converted") / "opus-mt-en-de"))
    for name in ("source.spm", "target.spm"):
        shutil.copy(MODELS / "marian-shared" / name, path / name)
    return path


@pytest.fixture(scope="module")
def package(directory: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An Argos package of the same model."""
    path = tmp_path_factory.mktemp("argos") / "translate-en_de.argosmodel"
    with zipfile.ZipFile(path, "w") as archive:
        for file in CONVERTED.iterdir():
            archive.write(file, f"translate-en_de/model/{file.name}")
        archive.write(directory / "source.spm", "translate-en_de/sentencepiece.model")
        metadata = {"from_code": "en", "to_code": "de", "package_version": "1.0", "argos_version": "1.5"}
        archive.writestr("translate-en_de/metadata.json", json.dumps(metadata))
    return path


def imported(source: Path, texts: list[str], tmp_path: Path) -> tuple[ForeignModel, list[list[int]], list[list[int]]]:
    """Returns a model as it is read, the ids of the texts, and those of their greedy translations."""
    report = Report()
    with opened(source) as found:
        model = read_model(found, GivenLanguages(source=("en",), target=("de",)), report)
        assert model is not None
        model.check(report)
        report.check()
        subject = build_subject(model, report)
    for name, content in subject.tokenizer.items():
        (tmp_path / name).write_bytes(content)
    tokenizer = Tokenizer(draft_manifest(subject, tmp_path, version="1"), lambda name: (tmp_path / name).read_bytes())
    sources = [list(tokenizer.encode(text, ())) for text in texts]
    return model, sources, [best[0].ids for best in search(subject.model, sources, max_tokens=MAX_TOKENS)]


@pytest.mark.parametrize("kind", ["directory", "package"])
def test_translations_have_the_ids_of_ctranslate2(
    kind: str, texts: list[str], pieces: list[str], tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    model, sources, translations = imported(request.getfixturevalue(kind), texts, tmp_path)

    assert model.family == ("CTranslate2" if kind == "directory" else "Argos")
    translator = ctranslate2.Translator(str(CONVERTED), compute_type="float32", inter_threads=1, intra_threads=1)
    results = translator.translate_batch(
        [[pieces[token] for token in source] for source in sources], beam_size=1, max_decoding_length=MAX_TOKENS
    )
    expected = [[pieces.index(piece) for piece in result.hypotheses[0]] for result in results]
    differing = [i for i, (one, other) in enumerate(zip(translations, expected, strict=True)) if one != other]
    assert len({tuple(ids) for ids in translations}) > 150
    assert differing == []
