"""What a directory says of its licence, for the manifest, and what to say aloud."""

import re
from pathlib import Path

from export.imports.formats.json_files import read_bytes
from export.imports.formats.tensors import FormatError
from export.imports.report import Report, shown

UNKNOWN = "unknown"
_CARD = "README.md"
_HEADER = re.compile(r"\A---\s*\n(.*?)\n---\s*(?:\n|\Z)", re.DOTALL)
_LICENCE = re.compile(r"^licen[sc]e:\s*[\"']?([^\s\"'#]+)", re.MULTILINE)


def read_licence(directory: Path, report: Report, default: str = UNKNOWN) -> str:
    """Returns the licence in the header of the model card, or else `default`; notes what a user must know of it."""
    licence = default
    if (directory / _CARD).is_file():
        try:
            header = _HEADER.search(read_bytes(directory / _CARD).decode(errors="replace"))
        except FormatError:
            header = None
        found = _LICENCE.search(header[1]) if header else None
        licence = shown(found[1]) if found else default
    if "-nc" in licence.lower():
        report.note(f"LICENCE: {licence}: this model must not be used commercially")
    elif licence == UNKNOWN:
        report.note("the licence is unknown: the model's makers must be asked what may be done with it")
    return licence
