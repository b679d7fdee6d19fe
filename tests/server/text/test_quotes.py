"""Tests of quotations that an apostrophe confuses."""

import pytest

from server.text.masking import Masker
from server.text.quotes import ended, find_quotes, is_quote, punctuated, written

MASKER = Masker(carriers=(("%1", "%2"), ("X1", "X2")), language="de")


@pytest.mark.parametrize(
    ("text", "shown", "translation", "expected"),
    [
        (
            "“Don’t go,” she said.",
            "%1 Don’t go %2, she said.",
            "%1 Geh nicht %2, sagte sie.",
            "„Geh nicht“, sagte sie.",
        ),
        ('"Don\'t!" he said', "%1 Don't! %2 he said", "%1 Nicht! %2 sagte er", '"Nicht!" sagte er'),
        ("He said 'it's mine' now", "He said %1 it's mine %2 now", "Er %1 mein %2 jetzt", "Er 'mein' jetzt"),
        ("'I can't,' he said", "%1 I can't %2, he said", "%1 Nein %2, sagte er", "'Nein', sagte er"),
        ("‘Can’t you?’ he said", "%1 Can’t you? %2 he said", "%1 Nein? %2 sagte er", "\u201aNein?\u2018 sagte er"),
    ],
)
def test_marks_of_quotations_are_carriers(text: str, shown: str, translation: str, expected: str) -> None:
    masked = MASKER.mask(text)
    restored = masked.restore(translation)

    assert masked.text == shown
    assert (restored.text, restored.parts, restored.is_whole) == (expected, (), True)


@pytest.mark.parametrize(
    "text",
    [
        '"It\'s mine," he said.',
        'He said "no".',
        "The boys' and the girls' room",
        "Don't",
        "5'10\" tall",
        "rock 'n' roll",
    ],
)
def test_other_quotations_and_apostrophes_stay(text: str) -> None:
    assert list(find_quotes(text, has_symbols=False)) == []


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ('"It\'s mine," he said, "not hers."', ['"', ',"', '"', '"']),
        ("„Geh“, »geh« und “geh”", ["„", "“", "»", "«", "“", "”"]),
        ("‘Go,’ he said, 'it is late.'", ["‘", ",’", "'", "'"]),
        ('"Go away.', ['"']),
        ("The boys' and the girls' room; rock 'n' roll", []),
        ("'Tis the season of the dogs' owners", []),
        ("This is 'John's' house", ["'", "'"]),
        ("He said 'yes' and called it 'Good News'.", ["'", "'", "'", "'"]),
        ("The '60s were 'cool times'.", ["'", "'"]),
        ("«Geh» und ‹geh›, ›geh‹", ["«", "»", "‹", "›", "›", "‹"]),
        ("«Go away.", ["«"]),
        ('5\'10" tall, " apart "', []),
        (f'"{"x" * 201}" she said', []),
    ],
)
def test_a_network_with_symbols_has_them_for_the_marks_of_any_quotation(text: str, marks: list[str]) -> None:
    assert [text[start:end] for start, end in find_quotes(text, has_symbols=True)] == marks


@pytest.mark.parametrize(
    ("text", "language", "shown", "translation", "expected"),
    [
        (
            "„Geh nicht“, sagte sie.",
            "en",
            "{ Geh nicht }, sagte sie.",
            "{ don't go }, she said.",
            "“Don't go,” she said.",
        ),
        ("»Lauf weg!«, rief er.", "en", "{ Lauf weg! }, rief er.", "{ Run away! }, he cried.", "“Run away!” he cried."),
        (
            "'It is late,' he said.",
            "de",
            "{ It is late }, he said.",
            "{ Es ist } spät, sagte er.",
            "'Es ist spät', sagte er.",
        ),
        ('"Go," he said.', "de", "{ Go }, he said.", "{ Geh, } sagte er.", '"Geh", sagte er.'),
        (
            "«Go home», he said.",
            "de",
            "{ Go home }, he said.",
            "{ Geh } nach Hause, sagte er.",
            "„Geh nach Hause“, sagte er.",
        ),
        ("‹Alles› ist gut.", "en", "{ Alles } ist gut.", "{ Everything } is good.", "‘Everything’ is good."),
        (
            '"I can\'t," she said, "but he can."',
            "de",
            "{ I can't }, she said, { but he can. }",
            "{ Ich nicht }, sie sagte, { , aber er kann. }",
            '"Ich nicht", sie sagte, "aber er kann."',
        ),
        (
            'The film "Jaws" is old.',
            "de",
            "The film { Jaws } is old.",
            "Der Film { Jaws } ist alt.",
            'Der Film "Jaws" ist alt.',
        ),
        (
            'See "{x}" and "my {x}".',
            "de",
            'See "|" and { my | }.',
            'Sieh "|" und { mein | }.',
            'Sieh "{x}" und "mein {x}".',
        ),
    ],
)
def test_quotations_come_back_with_the_commas_of_the_language(
    text: str, language: str, shown: str, translation: str, expected: str
) -> None:
    symbols = Masker(carriers=(tuple(map(chr, range(0xE000, 0xE010))),), language=language)
    masked = symbols.mask(text)
    carriers = [part.carrier for part in masked.parts]

    def written_out(pattern: str) -> str:
        left = list(carriers)
        return "".join(left.pop(0) if character in "{}|" else character for character in pattern)

    restored = masked.restore(written_out(translation))

    assert masked.text == written_out(shown)
    assert (restored.text, restored.is_whole) == (expected, True)


def test_the_end_of_a_quotation_goes_behind_the_last_verb() -> None:
    assert (
        ended("\ue000 Ich kann \ue001 nicht kommen, sagte er.", "\ue001")
        == "\ue000 Ich kann nicht kommen \ue001, sagte er."
    )
    assert ended("%1 Ja %2, sagte er, ja.", "%2") == "%1 Ja %2, sagte er, ja."
    assert ended("%1 Ja! %2 sagte er, ja.", "%2") == "%1 Ja! %2 sagte er, ja."
    assert ended("%1 Ja %2 sagte der alte Mann, ja.", "%2") == "%1 Ja %2 sagte der alte Mann, ja."


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ('"Go", he said', "en-GB", '"Go," he said'),
        ('"Go.", he said', "en", '"Go," he said'),
        ('"a", "b" and "c"', "en", '"a", "b" and "c"'),
        ('"Geh," sagte er', "de", '"Geh", sagte er'),
        ("'Geh,', sagte er", "pt", "'Geh', sagte er"),
        ('Er sagte ", aber er geht."', "de", 'Er sagte, "aber er geht."'),
        ('He said, ", but he goes."', "en", 'He said, "but he goes."'),
    ],
)
def test_commas_stand_where_the_language_has_them(text: str, language: str, expected: str) -> None:
    assert punctuated(text, language) == expected


def test_marks_are_known_with_their_comma() -> None:
    assert is_quote(",”")
    assert not is_quote(",")
    assert written(",”") == '"'


def test_a_mark_that_the_network_loses_is_told() -> None:
    restored = MASKER.mask("“Don’t go,” she said.").restore("Geh nicht, sagte sie.")

    assert [part.text for part in restored.parts] == ["“", ",”"]
    assert not restored.is_whole
