"""Tokenizers of Moses and byte-pair encoding, as the files of a bundle: FSMT's, fairseq's and older ones of Argos."""

import dataclasses
import json
from collections.abc import Collection, Sequence
from pathlib import Path

from export.imports.families.pieces import table
from export.imports.formats.json_files import read_bytes
from export.imports.formats.tensors import FormatError
from export.imports.report import Report
from server.bundle.byte_pairs import END_OF_WORD
from server.bundle.manifest import MOSES_FILE, SOURCE_PIECES_FILE, TARGET_PIECES_FILE
from server.bundle.moses import MosesFile

CONTINUED = "@@"  # behind pieces that do not end a word, where those that do have nothing
_MERGES_BYTES = 4 << 20  # fastBPE's of 64,000 merges have 1.5 MB; that many may take 300 MB of memory


def read_merges(directory: Path, file: str, report: Report) -> tuple[str, ...]:
    """Returns pairs of pieces with a space between; fastBPE writes how often each occurred behind it."""
    try:
        lines = read_bytes(directory / file, _MERGES_BYTES).decode().split("\n")
    except (FormatError, UnicodeDecodeError) as error:
        report.fault(file, found=error)
        return ()
    pairs = [line.split()[:2] for line in lines if line.strip() and not line.startswith("#version")]
    wrong = next((pair for pair in pairs if len(pair) < 2), None)
    if wrong or not pairs:
        report.fault(file, found=f"the line {wrong[0]!r}" if wrong else "nothing", expected="two pieces a line")
    return tuple(" ".join(pair) for pair in pairs if len(pair) == 2)


def end_is_piece(merges: Sequence[str]) -> bool:
    """Whether merges are those of subword-nmt before version 0.2, which does not always say so."""
    return any(merge.endswith(f" {END_OF_WORD}") for merge in merges)


def with_ends(pieces: Sequence[str], control: Collection[str]) -> list[str]:
    """Returns pieces that say which of them end a word, of those that say which do not."""
    marked = []
    for piece in pieces:
        if piece in control:
            marked.append(piece)
        else:
            is_last = piece == CONTINUED or not piece.endswith(CONTINUED)
            marked.append(f"{piece}{END_OF_WORD}" if is_last else piece.removesuffix(CONTINUED))
    return marked


def write_moses(
    moses: MosesFile, file: str, sides: Sequence[list[str]], control: Collection[str], report: Report
) -> dict[str, bytes]:
    """Returns the tokenizer of a bundle.

    Args:
        moses: how texts are cut.
        file: where its merges are from, for faults.
        sides: pieces of source and target by id, `END_OF_WORD` behind those that end a word.
        control: pieces that stand for no text.
        report: gets what is wrong with `moses`.
    """
    for fault in moses.faults():
        report.fault(file, found=fault)
    return {
        MOSES_FILE: json.dumps(dataclasses.asdict(moses), ensure_ascii=False, separators=(",", ":")).encode(),
        SOURCE_PIECES_FILE: table(sides[0], control),
        TARGET_PIECES_FILE: table(sides[1], control),
    }
