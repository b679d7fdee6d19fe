"""Models of every family that `babelserve-import` reads, to be spoiled: small, whole, and made without a network."""

import json
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.export.imports.families.test_marian import SETTINGS, SSRU, V, tensors, train_vocabulary
from tests.export.imports.writers import write_lexical, write_marian
from tests.imports import fairseq, opennmt
from tests.imports.families import MODELS

_CONVERTED = MODELS.with_name("converted")


def _copy(name: str) -> Callable[[Path], Path]:
    return lambda directory: Path(shutil.copytree(MODELS / name, directory / "opus-mt-en-de"))


def _native(directory: Path) -> Path:
    """Writes Marian's own, as OPUS-MT has them: .npz, SentencePiece models, and pieces numbered by a YAML file."""
    model = directory / "opus-en-de"
    model.mkdir()
    vocabulary = train_vocabulary(directory)
    for name in ("source.spm", "target.spm"):
        (model / name).write_bytes(vocabulary)
    np.savez(model / "model.npz", **tensors(SETTINGS))
    pieces = ["</s>", "<unk>", *(f"x{number}" for number in range(2, V))]
    (model / "opus.vocab.yml").write_text("".join(f"{each}: {i}\n" for i, each in enumerate(pieces)), encoding="utf-8")
    (model / "decoder.yml").write_text("beam-size: 6\nnormalize: 1\n", encoding="utf-8")
    return model


def _bergamot(directory: Path) -> Path:
    model = directory / "student-en-de"
    model.mkdir()
    (model / "vocab.ende.spm").write_bytes(train_vocabulary(directory))
    write_marian(model / "model.ende.bin", tensors(SETTINGS + SSRU))
    write_lexical(model / "lex.ende.bin", 4, [[token] for token in range(V)])
    return model


def _ctranslate2(directory: Path) -> Path:
    model = Path(shutil.copytree(_CONVERTED / "marian-shared", directory / "ct2-en-de"))
    for name in ("source.spm", "target.spm"):
        shutil.copy(MODELS / "marian-shared" / name, model)
    return model


def _argos(directory: Path) -> Path:
    """Writes a package that is unpacked; `pack` makes the archive of it."""
    package = directory / "package" / "translate-en_de"
    package.mkdir(parents=True)
    shutil.copytree(_CONVERTED / "marian-shared", package / "model")
    shutil.copy(MODELS / "marian-shared" / "source.spm", package / "sentencepiece.model")
    (package / "metadata.json").write_text(json.dumps({"from_code": "en", "to_code": "de"}), encoding="utf-8")
    return package


def pack(package: Path, method: int = zipfile.ZIP_DEFLATED) -> Path:
    """Returns an .argosmodel of a package that is unpacked."""
    archive = package.with_suffix(".argosmodel")
    with zipfile.ZipFile(archive, "w", method) as file:
        for path in sorted(package.rglob("*")):
            file.write(path, path.relative_to(package.parent))
    return archive


FAMILIES: dict[str, Callable[[Path], Path]] = {
    **{name: _copy(name) for name in ("marian-shared", "marian-separate", "marian-eos-first", "m2m100", "nllb")},
    **{name: _copy(name) for name in ("mbart50", "fsmt")},
    "native": _native,
    "bergamot": _bergamot,
    "ctranslate2": _ctranslate2,
    "argos": _argos,
    "fairseq": lambda directory: fairseq.write_directory(directory / "en-de"),
    "opennmt": lambda directory: opennmt.write_directory(directory / "en-de"),
}
