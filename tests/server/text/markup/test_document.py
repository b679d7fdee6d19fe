"""Documents of hand-made blocks."""

import html

from server.text.markup.document import Block, Document, looking


def test_texts_stand_in_their_blocks_places() -> None:
    document = Document("<p>", (Block("One.", "</p><p>", html.escape), Block("Two.", "</p>", html.escape)))

    assert document.join(["Eins.", "Zwei."]) == "<p>Eins.</p><p>Zwei.</p>"


def test_items_are_looked_at_every_so_often() -> None:
    looked: list[int] = []

    assert list(looking(range(200), lambda: looked.append(1))) == list(range(200))
    assert len(looked) == 3
