"""The types of documents."""

import pytest

from server.text.markup.document import unwatched
from server.text.markup.readers import TYPES, first_words, reader_of
from tests.server.text.markup.identity import identity

DOCUMENTS = {
    "text/html": "<p>A <b>red</b> dog.</p>",
    "application/xliff+xml": (
        '<xliff version="1.2"><file><body><trans-unit id="1"><source>A dog.</source></trans-unit></body></file></xliff>'
    ),
    "text/markdown": "# A *red* dog\n",
    "application/xml": "<p>A <b>red</b> dog.</p>",
}


@pytest.mark.parametrize("name", TYPES)
def test_each_type_has_its_reader(name: str) -> None:
    document = reader_of(name)(DOCUMENTS[name], unwatched)

    assert len(document.blocks) == 1
    assert identity(document).startswith(DOCUMENTS[name].partition("</trans-unit>")[0])


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("text/plain", "<b>A dog</b>", "<b>A dog</b>"),
        ("text/html", "<head><style>p {}</style><title>A dog</title></head><p>A <b>red</b> cat.", "A dog A red cat."),
        ("application/xliff+xml", '<xliff version="1.2"><file><source>A dog.</sour', "A dog.</sour"),
    ],
)
def test_the_first_words_of_a_text_are_without_markup(name: str, text: str, words: str) -> None:
    assert first_words(name, text).strip() == words


def test_no_more_is_read_for_the_first_words_than_they_need() -> None:
    read: list[int] = []
    long, sparse = "<p>A dog runs.</p>" * 1000, "<b></b>" * 2000 + "A dog runs."

    assert len(first_words("text/html", long, read.append)) < len(long) // 8
    assert first_words("text/html", sparse, read.append) == "A dog runs."
    assert max(read) > 2000


class TooMany(Exception):
    """A document has more pieces than somebody wants to read."""


# Documents of one piece of markup for every few characters: every kind of them is counted while it is read.
MANY = {
    "text/html": ["<b>x", "<img>", "<p>x", "<!---->", "<code>", "</b>", "<title>x</title>"],
    "application/xliff+xml": ["<x/>", "<g>x</g>", "<!---->", "<ph>x</ph>", "<target/>"],
    "application/xml": ["<x/>", "<g>x</g>", "<!---->", "&a;", "<![CDATA[x]]>"],
    "text/markdown": ["*a", "[", "[]", "`a``", "\n", "a\n\n", "- x\n", "> x\n", "\\*", "<b>", "&amp;", "a|"],
}


@pytest.mark.parametrize(("name", "unit"), [(name, unit) for name, units in MANY.items() for unit in units])
def test_a_document_of_many_pieces_is_not_read_to_its_end(name: str, unit: str) -> None:
    most, seen = 1000, list[int]()

    def watch(num_pieces: int) -> None:
        seen.append(num_pieces)
        if num_pieces > most:
            raise TooMany

    units = 10 * most * unit
    unit = f"<xliff><trans-unit><source>{units}</source></trans-unit></xliff>"
    document = unit if "xml" in name else f"a|b\n-|-\n{units}"
    with pytest.raises(TooMany):
        reader_of(name)(document, watch)

    assert most < seen[-1] < 1.1 * most
