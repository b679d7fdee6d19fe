"""Tokens that a tokenizer of `transformers` has beside its pieces: languages above all, found by their names."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from export.imports.formats.json_files import MAX_LISTED_BYTES, read_json
from export.imports.formats.tensors import FormatError
from export.imports.report import Report
from export.imports.settings import ForeignSettings, read_settings


def read_added_tokens(directory: Path, first: int, num_rows: int, report: Report) -> dict[str, int]:
    """Returns the id of each added token by its name.

    Args:
        directory: of the model.
        first: the id behind the last piece: where a list of names without ids begins. Such a list is what older
            directories have, and their tokenizers number it from there on.
        num_rows: of the embedding.
        report: gets a fault if files contradict each other, or there is a token without a row.
    """
    found: dict[str, int] = {}
    for file, name, token in _entries(directory, report):
        if not 0 <= token < num_rows:
            report.fault(file, name, found=f"id {token}", expected=f"an id below {num_rows}, the rows of the embedding")
        elif found.setdefault(name, token) != token:
            report.fault(file, name, found=f"id {token}", expected=f"{found[name]}, as another file says")
    names = [name for name in _names(directory, report) if name not in found]
    if names and not found:
        found = {name: token for token, name in enumerate(names, start=first)}
        if first + len(names) > num_rows:
            found_rows = f"{len(names)} added tokens from id {first} on"
            report.fault("special_tokens_map.json", found=found_rows, expected=f"at most {num_rows - first}")
    return found


def _entries(directory: Path, report: Report) -> Iterator[tuple[str, str, int]]:
    if (directory / "tokenizer.json").is_file():
        try:
            document = read_json(directory / "tokenizer.json", MAX_LISTED_BYTES)
        except FormatError as error:
            report.fault("tokenizer.json", found=error)
            document = None
        added = document.get("added_tokens") if isinstance(document, dict) else None
        for entry in added if isinstance(added, list) else []:
            if isinstance(entry, dict) and type(entry.get("id")) is int and type(entry.get("content")) is str:
                yield "tokenizer.json", entry["content"], entry["id"]
    decoder = read_settings(directory, "tokenizer_config.json", report, is_optional=True).get(
        "added_tokens_decoder", {}
    )
    for number, entry in decoder.items() if isinstance(decoder, dict) else ():
        content = entry.get("content") if isinstance(entry, dict) else entry
        if number.isascii() and number.isdigit() and len(number) < 8 and isinstance(content, str):
            yield "tokenizer_config.json", content, int(number)
    for name, token in read_settings(directory, "added_tokens.json", report, is_optional=True).values.items():
        if type(token) is int:
            yield "added_tokens.json", name, token


def _names(directory: Path, report: Report) -> list[str]:
    """Returns the names of additional tokens, in their order, of whichever file lists them."""
    for file in ("special_tokens_map.json", "tokenizer_config.json"):
        settings: ForeignSettings = read_settings(directory, file, report, is_optional=True)
        for key in ("additional_special_tokens", "extra_special_tokens"):
            listed: Any = settings.get(key, [])
            entries = listed if isinstance(listed, list) else []
            names = [each.get("content") if isinstance(each, dict) else each for each in entries]
            if names and all(isinstance(name, str) for name in names):
                return list(dict.fromkeys(map(str, names)))
    return []
