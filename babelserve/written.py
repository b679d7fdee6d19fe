"""Writes the translations of lines: plain, or a JSON object for each."""

import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from typing import BinaryIO

from tqdm import tqdm

from babelserve.files import Done
from babelserve.lines import TranslatedLine
from babelserve.terminal import write_shown

# JSON need not escape these; a terminal would obey them.
_CONTROLS = re.compile("[\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def write_lines(
    results: Iterator[list[TranslatedLine]],
    output: BinaryIO,
    progress: tqdm,
    done: Done,
    tell: Callable[[str], object],
    *,
    as_json: bool,
    one_line: bool,
) -> bool:
    """Writes batch after batch; tells why lines have failed.

    Args:
        results: as `translate_lines` yields them.
        output: takes a line for each.
        progress: counts the input's bytes.
        done: what a stopped job has left.
        tell: takes a line for the user.
        as_json: whether to write all facts, as JSON.
        one_line: whether a plain translation must be one line, as its source is.

    Returns:
        Whether every line has a translation.

    Raises:
        TranslationError: as `translate_lines`.
        OSError: the output cannot be written.
    """
    number, num_failed = done.num_lines, done.num_failed
    if num_failed:
        tell(f"of the {number} lines that were done, {num_failed} have no translation")
    for batch in results:
        for line in batch:
            number += 1
            if line.translation.error is not None:
                num_failed += 1
                reason = f"{line.translation.error.code.name}: {line.translation.error.message}"
                tell(f"{'line' if one_line else 'text'} {number}: {reason}")
            written = _facts(line) if as_json else _plain(line, one_line)
            write_shown(output, written.encode() + b"\n")
            progress.update(line.num_bytes)
        output.flush()
    return not num_failed


def to_json(fields: dict[str, object]) -> str:
    """Returns one line of JSON that a terminal can show. A number that JSON does not have (NaN, infinite) is null."""
    try:
        written = json.dumps(fields, ensure_ascii=False, allow_nan=False)
    except ValueError:
        finite = json.loads(json.dumps(fields), parse_constant=lambda name: None)
        written = json.dumps(finite, ensure_ascii=False)
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", written)


def _plain(line: TranslatedLine, one_line: bool) -> str:
    # A model may make a line break of its own; it must not shift the lines that follow.
    return line.translation.text.replace("\n", " ") if one_line else line.translation.text


def _facts(line: TranslatedLine) -> str:
    translation = line.translation
    fields: dict[str, object] = {
        "text": translation.text,
        "score": translation.score,
        "finish_reason": translation.finish_reason.value,
        "source_tokens": translation.source_tokens,
        "target_tokens": translation.target_tokens,
        "hypotheses": [dataclasses.asdict(hypothesis) for hypothesis in translation.hypotheses],
        "model": line.model,
        "model_version": line.model_version,
    }
    if translation.detected is not None:
        fields["detected"] = dataclasses.asdict(translation.detected)
    if translation.route:
        fields["route"] = [dataclasses.asdict(leg) for leg in translation.route]
    if translation.kept:
        fields["kept"] = [{"text": part.text, "placement": part.placement.value} for part in translation.kept]
    if translation.terms:
        fields["terms"] = [dataclasses.asdict(term) for term in translation.terms]
    if line.glossaries:
        fields["glossaries"] = [dataclasses.asdict(glossary) for glossary in line.glossaries]
    if translation.error is not None:
        fields["error"] = {"code": translation.error.code.name, "message": translation.error.message}
    return to_json(fields)
