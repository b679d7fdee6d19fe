"""What all files of glossaries have in common: languages, terms, and the rules for these."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from server.text.term_table import MAX_FORMS, phrase_fault

MAX_TERMS = 100_000  # of a file; half, and exports of term banks do not fit; twice that, and one takes 100 MiB
CODE = r"[A-Za-z]{2,3}(?:[-_][A-Za-z0-9]{2,8})*"
HINT = "or the file's name must say its languages, such as NAME.en-de"


class MalformedGlossary(Exception):
    """A file is no glossary, or breaks a limit. The message has line, limit and value, and no text of the file."""


@dataclass(frozen=True, slots=True)
class Entries:
    """What a file has.

    Attributes:
        source, target: codes of its languages, as the file has them.
        targets: of each source; there is at least one.
    """

    source: str
    target: str
    targets: dict[str, tuple[str, ...]]


def normal_code(code: str) -> str:
    """Returns a code of a language in small letters, with hyphens."""
    return code.strip().lower().replace("_", "-")


def check_phrase(line: int, what: str, text: str) -> str:
    """Returns a form of a term with single blanks. Raises MalformedGlossary if it breaks a rule."""
    if fault := phrase_fault(text):
        raise MalformedGlossary(f"line {line}: {what} {fault}")
    return " ".join(text.split())


def check_count(line: int, num_terms: int, num_forms: int) -> None:
    """Raises MalformedGlossary if there are more terms than a file may have, or more targets than a term may have."""
    if num_terms > MAX_TERMS:
        raise MalformedGlossary(f"line {line}: a glossary must have at most {MAX_TERMS} terms; this one has more")
    if num_forms > MAX_FORMS:
        raise MalformedGlossary(f"line {line}: a term must have at most {MAX_FORMS} targets, not {num_forms}")


def languages_of_name(name: str) -> tuple[str, str] | None:
    """Returns the codes with which a file's name ends, such as `it.en-pt_BR` without its suffix; None without any."""
    code = CODE.replace("[-_]", "_")
    match = re.fullmatch(rf".+\.({code})-({code})", name)
    return (match[1], match[2]) if match else None


def collected(languages: Sequence[str], targets: dict[str, tuple[str, ...]]) -> Entries:
    """Returns the entries of a file. Raises MalformedGlossary if there is no term.

    Args:
        languages: the codes of source and target.
        targets: of each source.
    """
    if not targets:
        raise MalformedGlossary("must have at least one term, not 0")
    source, target = languages
    return Entries(source, target, targets)
