"""Reads a file of a glossary by the suffix of its name."""

import hashlib

from server.text.glossary import NamedGlossary
from server.text.glossary_entries import MalformedGlossary, languages_of_name
from server.text.glossary_rows import read_rows
from server.text.glossary_tbx import read_tbx
from server.text.term_table import Term, TermTable

MAX_WORDS = (
    500_000  # of all sources; half, and 100,000 terms in Chinese do not fit; twice that, and long ones take 0.5 GiB
)
SUFFIXES = (".tsv", ".csv", ".tbx")


def read_glossary_file(name: str, suffix: str, content: bytes) -> NamedGlossary:
    """Returns a glossary; takes linear time.

    Args:
        name: of the file, without its suffix; it may end with the languages, such as `it.en-de`.
        suffix: one of `SUFFIXES`.
        content: of the file.

    Raises:
        MalformedGlossary: the content is no glossary.
    """
    languages = languages_of_name(name)
    if suffix == ".tbx":
        entries = read_tbx(content, languages)
    else:
        entries = read_rows(content, languages, is_csv=suffix == ".csv")
    version = hashlib.sha256(content).hexdigest()[:12]
    table = TermTable()
    for source, targets in entries.targets.items():
        table.add(Term((source,), targets))
        if table.num_words > MAX_WORDS:
            rule = f"its sources together must have at most {MAX_WORDS} words; these have more"
            raise MalformedGlossary(f"{rule}. A letter of a script without blanks is a word")
    return NamedGlossary(name, entries.source, entries.target, version, table)
