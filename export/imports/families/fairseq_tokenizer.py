"""The dictionaries beside a checkpoint of fairseq, and how its texts are cut: nothing in it says so.

Source: fairseq, data/dictionary.py and data/encoders.
"""

from collections import Counter
from pathlib import Path, PurePosixPath
from typing import Any

from export.imports.families.byte_pairs import CONTINUED, end_is_piece, read_merges, with_ends, write_moses
from export.imports.families.fsmt import FIRST, control_pieces
from export.imports.families.pieces import read_models
from export.imports.formats.json_files import read_bytes
from export.imports.formats.tensors import FormatError
from export.imports.report import Report
from export.imports.settings import ForeignSettings
from server.bundle.moses import MosesFile

_MAX_NAME_BYTES = 255  # of Linux
_MERGES = ("bpecodes", "bpe.codes", "codes", "code", "*bpecodes*", "*.codes", "*.code", "*bpe.*[0-9]")

_DICTIONARY_BYTES = 8 << 20  # M2M100's has 3 MB; that many may take 500 MB of memory


def read_dictionary(directory: Path, file: str, num_rows: int, report: Report) -> list[str]:
    """Returns the pieces of a dictionary by id, those ahead of its file included; a fault makes it empty.

    Args:
        directory: of the model.
        file: its name.
        num_rows: of the embedding.
        report: gets the faults.
    """
    try:
        lines = read_bytes(directory / file, _DICTIONARY_BYTES).decode().removesuffix("\n").split("\n")
    except (FormatError, UnicodeDecodeError) as error:
        report.fault(file, found=error, remedy="fairseq-preprocess wrote it beside the data of the training")
        return []
    pieces = [*FIRST, *(line.rstrip("\r").rpartition(" ")[0] for line in lines)]
    empty = next((line for line, piece in zip(lines, pieces[len(FIRST) :], strict=True) if not piece), None)
    twice = next((piece for piece, count in Counter(pieces).items() if count > 1), None)
    if empty is not None:
        report.fault(file, found=f"the line {empty!r}", expected="a piece and its count")
    elif twice is not None:
        report.fault(file, found=f"{twice!r} twice, the first four ids included", expected="every piece once")
    elif num_rows and len(pieces) != num_rows:
        expected = f"{num_rows - len(FIRST)}, the rows of the embedding but for four"
        report.fault(file, found=f"{len(lines)} pieces", expected=expected, remedy="it is another model's")
    else:
        return pieces
    return []


def read_tokenizer(
    directory: Path,
    options: ForeignSettings,
    sides: tuple[list[str], list[str]],
    languages: tuple[tuple[str, ...], tuple[str, ...]],
    report: Report,
) -> dict[str, bytes]:
    """Returns the bundle's tokenizer: of which kind it is, the dictionaries show.

    Args:
        directory: of the model.
        options: of its checkpoint.
        sides: pieces of source and target by id; empty where there was a fault.
        languages: codes of source and target.
        report: gets the faults, and what was concluded.
    """
    named = [_file_name(options.get(key, "")) for key in ("sentencepiece_model", "sentencepiece_model_path")]
    merges_file = _file_name(options.get("bpe_codes", ""))
    has_no_splits = options.flag("moses_no_dash_splits", False)
    if not all(sides):
        return {}
    if not any(piece.endswith(CONTINUED) for side in sides for piece in side):
        named += sorted(path.name for path in directory.glob("*.model"))
        return read_models(directory, sides, control_pieces(sides), report, [(name, name) for name in named if name])
    found = [merges_file] if merges_file and (directory / merges_file).is_file() else []
    found += [name for pattern in _MERGES for name in sorted(_names(directory, pattern))]
    if not found:
        remedy = "put there what fastBPE or subword-nmt learnt: the makers of the model have it"
        report.fault("bpecodes", found="missing", expected="the merges of its byte-pair encoding", remedy=remedy)
        return {}
    merges = read_merges(directory, found[0], report)
    moses = MosesFile(
        source_language=_for_moses(languages[0]),
        target_language=_for_moses(languages[1]),
        lower_case=_is_lower_case(sides[0], report),
        dash_splits=not has_no_splits and _has_dash_splits(sides, report),
        end_is_piece=end_is_piece(merges),
        merges=merges,
    )
    control = control_pieces(sides)
    return write_moses(moses, found[0], [with_ends(side, control) for side in sides], control, report)


def _file_name(value: Any) -> str:
    """Returns the name of the file that an option names; empty if it names none that a disk can have."""
    name = PurePosixPath(value).name if isinstance(value, str) else ""
    return name if len(name.encode(errors="replace")) <= _MAX_NAME_BYTES else ""


def _names(directory: Path, pattern: str) -> list[str]:
    return [path.name for path in directory.glob(pattern) if path.is_file()]


def _for_moses(codes: tuple[str, ...]) -> str:
    return codes[0].partition("-")[0] if codes else "en"


def _is_lower_case(pieces: list[str], report: Report) -> bool:
    """Whether a source of other than lower case would be unknown, as nothing says how a text was prepared."""
    text = "".join(set(pieces) - control_pieces([pieces]))
    if text == text.upper() or text != text.lower():
        return False
    report.note("the source's dictionary has no capital letters: texts are made lower case")
    return True


def _has_dash_splits(sides: tuple[list[str], list[str]], report: Report) -> bool:
    if any(piece.startswith("@-") for side in sides for piece in side):
        return True
    report.note("the dictionaries have no @-@: words with hyphens are not split at them")
    return False
