"""What a directory says of its licence, for the manifest, and what to say aloud."""

import re
from pathlib import Path

from export.imports.formats.json_files import MAX_SETTINGS_BYTES, read_bytes
from export.imports.formats.tensors import FormatError
from export.imports.report import Report, shown

UNKNOWN = "unknown"
_CARD = "README.md"
_FENCE = "---"
_LICENCE = re.compile(r"licen[sc]e:\s*[\"']?([^\s\"'#]+)")


def read_licence(directory: Path, report: Report, default: str = UNKNOWN) -> str:
    """Returns the licence in the header of the model card, or else `default`; notes what a user must know of it."""
    licence = default
    if (directory / _CARD).is_file():
        try:
            lines = read_bytes(directory / _CARD, MAX_SETTINGS_BYTES).decode(errors="replace").splitlines()
        except FormatError:
            lines = []
        fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
        header = lines[1 : fences[1]] if len(fences) == 2 and fences[0] == 0 else []
        found = next(filter(None, map(_LICENCE.match, header)), None)
        licence = shown(found[1]) if found else default
    if "-nc" in licence.lower():
        report.note(f"LICENCE: {licence}: this model must not be used commercially")
    elif licence == UNKNOWN:
        report.note("the licence is unknown: the model's makers must be asked what may be done with it")
    return licence
