"""Where a sentence that seems to end goes on."""

import pytest

from server.text.sentence_ends import goes_on


@pytest.mark.parametrize(
    ("before", "behind", "language", "expected"),
    [
        ("Im 3. ", "Stock", "de", True),
        ("Im Jahr 3. ", "Es", "de", False),
        ("See vol. ", "3", "en", True),
        ("See vol. ", "Then", "en", False),
        ("See .", "/docs", "en", True),
        ("See HTTP://EXAMPLE.", "COM", "en", True),
        ("See http://example.", "Then", "en", False),
        ("See http://example.com/3.", "Then", "en", False),
        ("See HTTP://EXAMPLE.COM/V2.", "PDF", "en", True),
        ("See http://example.com/README.", "Then", "en", False),
        ("See http://example.com/a?", "ID=5", "fr", True),
        ("See http://example.com/a?", "It works", "fr", False),
        ("See http://example.com/a!", "Then", "fr", False),
        ('He said "http://EXAMPLE.COM."', "Then", "en", False),
        ("请看http://a.org。", "然后", "zh", False),
        ("详见HTTP://A.ORG。再看A.", "B", "zh", False),
        ("HTTP://A.ORG?", "是=", "zh", False),
    ],
)
def test_a_sentence_goes_on_behind_these(before: str, behind: str, language: str, expected: bool) -> None:
    assert goes_on(before + behind, len(before), language) == expected
