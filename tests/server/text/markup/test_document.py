"""What every reader of documents uses."""

from server.text.markup.document import looking


def test_items_are_looked_at_every_so_often() -> None:
    looked: list[int] = []

    assert list(looking(range(200), lambda: looked.append(1))) == list(range(200))
    assert len(looked) == 3
