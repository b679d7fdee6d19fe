"""Vocabularies of SentencePiece models whose ids are not SentencePiece's own, as the tables of a bundle."""

import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import sentencepiece

from export.imports.formats.json_files import read_bytes, read_json, read_vocabulary
from export.imports.formats.tensors import FormatError
from export.imports.report import Report
from server.bundle.manifest import SOURCE_MODEL_FILE, SOURCE_PIECES_FILE, TARGET_MODEL_FILE, TARGET_PIECES_FILE
from server.bundle.sentence_pieces import open_model

_MAX_NAMED = 5
_MODELS = (
    ("source.spm", "target.spm"),
    ("sentencepiece.model", "sentencepiece.model"),
    ("../sentencepiece.model", "../sentencepiece.model"),  # Argos has it beside the model's directory
    ("sentencepiece.bpe.model", "sentencepiece.bpe.model"),
    ("spm.model", "spm.model"),
)
CONTROL = ("<s>", "</s>", "<unk>", "<blank>", "<pad>", "<mask>")


@dataclass(frozen=True, slots=True)
class Vocabularies:
    """The pieces of both sides, in the order of their ids, and the tokenizer's files for the bundle by name."""

    source: list[str]
    target: list[str]
    files: dict[str, bytes]


def read_model(directory: Path, file: str, report: Report) -> tuple[bytes, sentencepiece.SentencePieceProcessor]:
    """Reads a SentencePiece model; a fault makes it an empty one."""
    data = b""
    try:
        data = read_bytes(directory / file)
        return data, open_model(data)
    except FormatError as error:
        report.fault(file, found=error)
    except ValueError as error:
        report.fault(file, found=error, remedy="download it again, all of it")
    return data, sentencepiece.SentencePieceProcessor()


def read_pieces(directory: Path, file: str, report: Report) -> list[str]:
    """Reads the pieces by id of a vocabulary; a fault makes it empty."""
    try:
        return read_vocabulary(read_json(directory / file))
    except FormatError as error:
        report.fault(file, found=error)
        return []


def check_rows(pieces: list[str], num_rows: int, file: str, key: str, report: Report) -> None:
    """Notes a fault if a vocabulary has not as many pieces as the embedding has rows."""
    if pieces and len(pieces) != num_rows:
        more = ", ".join(map(repr, pieces[num_rows : num_rows + _MAX_NAMED]))
        found = f"{len(pieces)} pieces" + (f", of which {more} have no row" if more else "")
        report.fault(file, found=found, expected=f"{num_rows}, as config.json has in {key}")


def table(pieces: list[str], control: Collection[str]) -> bytes:
    """Returns a bundle's table of pieces: tokens that are no text stand in it as empty."""
    shown = ["" if piece in control else piece for piece in pieces]
    return json.dumps(shown, ensure_ascii=False, separators=(",", ":")).encode()


def read_models(
    directory: Path,
    pieces: Sequence[list[str]],
    control: Collection[str],
    report: Report,
    named: Sequence[tuple[str, str]] = (),
) -> dict[str, bytes]:
    """Returns the tokenizer of a bundle from the SentencePiece models that users put beside a network.

    Args:
        directory: of the model.
        pieces: of source and target, by id.
        control: pieces that stand for no text, beside those that never do.
        report: gets a fault if there is no model.
        named: files of both sides that the model itself names, if they are there.
    """
    pairs = (*named, *_MODELS)
    found = next((names for names in pairs if all((directory / name).is_file() for name in names)), None)
    if found is None:
        report.fault(
            "sentencepiece.model",
            found="missing",
            expected="it, or source.spm and target.spm",
            remedy="put the SentencePiece model that it was trained with there: the original has it",
        )
        return {}
    data = {}
    for file, bundle_file in zip(found, (SOURCE_MODEL_FILE, TARGET_MODEL_FILE), strict=True):
        data[bundle_file], _ = read_model(directory, file, report)
    if found[0] == found[1]:
        data.pop(TARGET_MODEL_FILE)
    filler = (piece for side in pieces for piece in side if piece.startswith(("｟", "averyunlikelytoken")))
    no_text = {*CONTROL, *control, *filler, *(piece for side in pieces for piece in side if "madeupword" in piece)}
    data[SOURCE_PIECES_FILE] = table(pieces[0], no_text)
    if pieces[0] != pieces[1]:
        data[TARGET_PIECES_FILE] = table(pieces[1], no_text)
    return data
