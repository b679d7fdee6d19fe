from server.bulk.cell import Cell, encoded


def test_a_text_with_half_a_surrogate_pair_is_an_error() -> None:
    assert encoded("a\U0001f600") == Cell("a\U0001f600")
    assert encoded("a\ud83d") == Cell(None, "the text is no valid Unicode")
