"""Vocabularies of SentencePiece models whose ids are not SentencePiece's own, as the tables of a bundle."""

import json
from collections.abc import Collection
from pathlib import Path

import sentencepiece

from export.imports.formats.json_files import read_bytes, read_json, read_vocabulary
from export.imports.formats.tensors import FormatError
from export.imports.report import Report

_MAX_NAMED = 5


def read_model(directory: Path, file: str, report: Report) -> tuple[bytes, sentencepiece.SentencePieceProcessor]:
    """Reads a SentencePiece model; a fault makes it an empty one."""
    processor = sentencepiece.SentencePieceProcessor()
    try:
        data = read_bytes(directory / file)
    except FormatError as error:
        report.fault(file, found=error)
        return b"", processor
    try:
        processor.LoadFromSerializedProto(data)
    except (OSError, RuntimeError, ValueError):
        report.fault(file, found="no SentencePiece model", remedy="download it again; git-lfs may have left a pointer")
    return data, processor


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
