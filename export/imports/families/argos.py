"""Argos packages: a CTranslate2 model with its tokenizer and metadata.

Its tokenizer is a SentencePiece model or, in older packages, Moses with the merges of subword-nmt.

Source of the layout, the search and the older tokenizer: argos-translate, argostranslate/package.py, translate.py and
tokenizer.py.
"""

import dataclasses
from pathlib import Path

from export.imports.families import ctranslate2
from export.imports.families.byte_pairs import end_is_piece, read_merges, with_ends, write_moses
from export.imports.families.pieces import CONTROL
from export.imports.foreign import ForeignModel
from export.imports.languages import GivenLanguages
from export.imports.report import Report
from export.imports.settings import read_settings
from server.bundle.manifest import SearchDefaults
from server.bundle.moses import MosesFile

_METADATA = "metadata.json"
_MERGES = "bpe.model"
_CODES = {"pb": "pt-BR", "zt": "zh-Hant"}  # of its own, which are no BCP-47
_HARMLESS = (
    "package_version argos_version from_name to_name links type package_type languages dependencies"
    " source_languages code title author credits"
)


def find(directory: Path) -> Path | None:
    """Returns the directory of a package: this one, or the only one in it; None if it is none."""
    candidates = [directory, *(path for path in directory.iterdir() if path.is_dir())]
    found = [path for path in candidates if (path / _METADATA).is_file() and ctranslate2.is_here(path / "model")]
    return found[0] if len(found) == 1 else None


def read(directory: Path, given: GivenLanguages, report: Report) -> ForeignModel | None:
    """Reads a package; returns None where faults leave nothing to go on with."""
    metadata = read_settings(directory, _METADATA, report)
    source, target = metadata.text("from_code"), metadata.text("to_code")
    metadata.expect("target_prefix", "", remedy="packages of several languages are not supported")
    metadata.finish(_HARMLESS.split())
    codes = [(_CODES.get(code, code),) for code in (source, target)]
    named = GivenLanguages(source=given.source or codes[0], target=given.target or codes[1])
    has_merges = (directory / _MERGES).is_file() and not (directory / "sentencepiece.model").is_file()

    def read_tokenizer(sides: list[list[str]]) -> dict[str, bytes]:
        return _read_byte_pairs(directory, (source, target), sides, report)

    model = ctranslate2.read(directory / "model", named, report, read_tokenizer if has_merges else None)
    if model is None:
        return None
    search = SearchDefaults(beam_size=4, length_penalty=0.2)
    return dataclasses.replace(model, family="Argos", name=f"argos-{source}-{target}", search=search)


def _read_byte_pairs(
    directory: Path, languages: tuple[str, str], sides: list[list[str]], report: Report
) -> dict[str, bytes]:
    merges = read_merges(directory, _MERGES, report)
    moses = MosesFile(
        source_language=languages[0],
        target_language=languages[1],
        clean=False,
        dash_splits=False,
        end_is_piece=end_is_piece(merges),
        merges=merges,
    )
    return write_moses(moses, _MERGES, [with_ends(side, CONTROL) for side in sides], CONTROL, report)
