"""What a directory says of its licence, for the manifest, and what to say aloud."""

import re
from pathlib import Path
from typing import Any

from export.imports.formats.json_files import MAX_SETTINGS_BYTES, read_bytes
from export.imports.formats.tensors import FormatError
from export.imports.formats.yaml_files import parse_yaml
from export.imports.report import Report, shown

UNKNOWN = "unknown"
_CARD = "README.md"
_FENCE = b"---"
_KEYS = ("license", "licence", "license_name")  # the last for what Hugging Face has no name for
_NOT_COMMERCIAL = re.compile(r"\bnc\b|non-?commercial", re.IGNORECASE)


def read_licence(directory: Path, report: Report, default: str = UNKNOWN) -> str:
    """Returns the licences in the header of the model card, or else `default`; notes what a user must know of them."""
    text = default
    if (directory / _CARD).is_file():
        try:
            header = _read_header(directory / _CARD)
        except FormatError as error:
            header = {}
            report.note(f"{_CARD}: its header {error}: read yourself what it says of the licence")
        found = [header.get(key) for key in _KEYS]
        names = [name for each in found for name in (each if isinstance(each, list) else [each]) if name]
        text = ", ".join(str(name).strip() for name in names) or default
    licence = shown(text)
    if _NOT_COMMERCIAL.search(text):
        report.note(f"LICENCE: {licence}: this model must not be used commercially")
    elif licence == UNKNOWN:
        report.note("the licence is unknown: the model's makers must be asked what may be done with it")
    return licence


def _read_header(path: Path) -> dict[str, Any]:
    """Returns what a model card says between its first line and the next `---`. Raises FormatError."""
    lines = read_bytes(path, MAX_SETTINGS_BYTES).split(b"\n")
    fences = [number for number, line in enumerate(lines) if line.rstrip() == _FENCE][:2]
    return parse_yaml(b"\n".join(lines[1 : fences[1]])) if len(fences) == 2 and fences[0] == 0 else {}
