"""Documents of hand-made blocks."""

import html

from server.text.markup.document import Block, Document


def test_texts_stand_in_their_blocks_places() -> None:
    document = Document("<p>", (Block("One.", "</p><p>", html.escape), Block("Two.", "</p>", html.escape)))

    assert document.join(["Eins.", "Zwei."]) == "<p>Eins.</p><p>Zwei.</p>"
