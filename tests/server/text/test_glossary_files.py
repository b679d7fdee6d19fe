"""Files of glossaries by their suffix."""

import hashlib

import pytest

from server.text.glossary import Glossary
from server.text.glossary_entries import MalformedGlossary
from server.text.glossary_files import SUFFIXES, read_glossary_file

ROWS = {".tsv": b"en\tde\ndog\tHund\n", ".csv": b"en;de\ndog;Hund\n"}
TBX = b"""<martif type="TBX" xml:lang="en"><termEntry><langSet xml:lang="en"><tig><term>dog</term></tig></langSet>
<langSet xml:lang="de"><tig><term>Hund</term></tig></langSet></termEntry></martif>"""


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_each_kind_of_file_becomes_a_glossary_with_a_version(suffix: str) -> None:
    content = {**ROWS, ".tbx": TBX}[suffix]

    glossary = read_glossary_file("animals", suffix, content)

    assert (glossary.name, glossary.source, glossary.target) == ("animals", "en", "de")
    assert glossary.version == hashlib.sha256(content).hexdigest()[:12]
    assert glossary.table.num_terms == 1
    (found,) = Glossary([], names=["animals"]).with_named([glossary]).find("A dog runs.")
    assert found.term.targets == ("Hund",)


def test_the_name_of_a_file_says_its_languages() -> None:
    glossary = read_glossary_file("animals.en-pt_BR", ".tsv", b"dog\tcachorro\n")

    assert (glossary.name, glossary.source, glossary.target) == ("animals.en-pt_BR", "en", "pt_BR")


def test_a_file_that_says_no_languages_is_refused() -> None:
    with pytest.raises(MalformedGlossary, match="must be codes of two languages"):
        read_glossary_file("animals", ".tsv", b"the dog\tder Hund\n")


def test_the_words_of_all_sources_have_a_limit() -> None:
    rows = "".join("图" * 190 + f"{index}\tx\n" for index in range(2700))

    with pytest.raises(MalformedGlossary, match="must have at most 500000 words; these have more"):
        read_glossary_file("zh.zh-en", ".tsv", rows.encode())
