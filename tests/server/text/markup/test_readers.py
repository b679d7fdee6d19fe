"""The types of documents."""

import pytest

from server.text.markup.readers import READERS, first_words
from tests.server.text.markup.identity import identity

DOCUMENTS = {
    "text/html": "<p>A <b>red</b> dog.</p>",
    "application/xliff+xml": (
        '<xliff version="1.2"><file><body><trans-unit id="1"><source>A dog.</source></trans-unit></body></file></xliff>'
    ),
    "text/markdown": "# A *red* dog\n",
}


@pytest.mark.parametrize("name", READERS)
def test_each_type_has_its_reader(name: str) -> None:
    document = READERS[name](DOCUMENTS[name])

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
