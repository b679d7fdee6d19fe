import numpy as np

from server.text.alignment import attending, find_spans, link_words, mean_by_word, weigh_words, words_of

SOURCE = ["\u2581The", "\u2581cat", "\u2581sleep", "s", ".", ""]
TARGET = ["\u2581Die", "\u2581Katze", "\u2581schlä", "ft", "."]
ATTENTION = np.array(
    [
        [0.8, 0.1, 0.0, 0.0, 0.0, 0.1],
        [0.1, 0.9, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.1, 0.6, 0.3, 0.0, 0.0],
        [0.0, 0.0, 0.5, 0.5, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 0.9, 0.1],
    ],
    np.float32,
)


def shown(source: str, target: str, links: list[tuple[tuple[int, int], tuple[int, int]]]) -> list[tuple[str, str]]:
    return [(source[slice(*one)], target[slice(*other)]) for one, other in links]


def linked(source: str, target: str) -> list[tuple[str, str]]:
    links = link_words(weigh_words(source, SOURCE, target, TARGET, ATTENTION))
    return shown(source, target, [(link.source, link.target) for link in links])


def test_words_are_linked_by_the_attention_of_their_pieces() -> None:
    assert linked("The cat sleeps.", "Die Katze schläft.") == [
        ("The", "Die"),
        ("cat", "Katze"),
        ("sleeps", "schläft"),
        (".", "."),
    ]


def test_texts_may_differ_in_case_blanks_and_marks() -> None:
    assert linked("THE  CAT SLEEPS\u2026", "DIE KATZE SCHLÄFT\u2026")[:3] == [
        ("THE", "DIE"),
        ("CAT", "KATZE"),
        ("SLEEPS", "SCHLÄFT"),
    ]


def test_the_weight_is_the_share_of_the_attention() -> None:
    links = link_words(weigh_words("The cat sleeps.", SOURCE, "Die Katze schläft.", TARGET, ATTENTION))

    assert [round(link.weight, 2) for link in links] == [0.8, 0.9, 0.95, 0.9]


def test_a_word_with_little_attention_has_no_link() -> None:
    even = np.full((5, 6), 0.06, np.float32)

    assert link_words(weigh_words("The cat sleeps.", SOURCE, "Die Katze schläft.", TARGET, even)) == []


def test_a_translation_at_its_limit_lacks_the_attention_of_its_last_id() -> None:
    links = link_words(weigh_words("The cat sleeps.", SOURCE, "Die Katze schläft.", TARGET, ATTENTION[:-1]))

    assert [link.target for link in links] == [(0, 3), (4, 9), (10, 17)]


def test_a_carrier_stands_for_what_it_carries() -> None:
    pieces = ["\u2581Hello", "\u2581%", "1", "!"]

    assert find_spans(pieces, "Hello {first name}!") == [(0, 5), (6, 18), (6, 18), (18, 19)]


def test_pieces_that_spell_nothing_stand_nowhere() -> None:
    assert find_spans(["", "\u2581", "\u2581a", ""], "a") == [None, None, (0, 1), None]


def test_nothing_is_linked_in_nothing() -> None:
    assert link_words(weigh_words("", [], "", [], np.zeros((0, 0), np.float32))) == []


def test_what_one_carrier_stands_for_is_one_word() -> None:
    source, target = "Hi {first name}.", "Hallo {first name}."
    pieces = ["\u2581Hi", "\u2581%", "1", "."], ["\u2581Hallo", "\u2581%", "1", "."]
    links = link_words(weigh_words(source, pieces[0], target, pieces[1], np.eye(4, dtype=np.float32)))

    assert shown(source, target, [(link.source, link.target) for link in links]) == [
        ("Hi", "Hallo"),
        ("{first name}", "{first name}"),
        (".", "."),
    ]


def test_a_letter_that_is_two_small_ones_moves_no_word() -> None:
    assert find_spans(["\u2581i\u0307stanbul", "\u2581ist"], "\u0130STANBUL ist") == [(0, 8), (9, 12)]


def test_hostile_texts_are_not_compared_for_long() -> None:
    """`SequenceMatcher` would compare them for minutes."""
    pieces, text = ["\u2581a", "\u2581b"] * 10_000, " ".join(["b a a"] * 6_000)

    spans = find_spans(pieces, text)

    assert len(spans) == len(pieces)


def test_equal_ends_of_a_long_text_keep_their_places() -> None:
    pieces = ["\u2581a", "\u2581b"] * 300
    text = "".join(pieces).replace("\u2581", " ").strip() + " c"

    spans = find_spans([*pieces, "\u2581d"], text)

    assert spans[:2] == [(0, 1), (2, 3)]
    assert spans[-2:] == [(len(text) - 3, len(text) - 2), (len(text) - 1, len(text))]


def test_pieces_are_put_together_to_words_and_marks() -> None:
    assert words_of(TARGET) == [(0, 1), (1, 2), (2, 4), (4, 5)]
    assert words_of([]) == []


def test_words_attend_to_a_part_of_the_source_with_most_of_what_they_have() -> None:
    spans = find_spans(SOURCE, "The cat sleeps.")

    by_word = mean_by_word(ATTENTION, words_of(TARGET))
    assert [attending(by_word, spans, span) for span in ((4, 7), (8, 14), (4, 14))] == [[1], [2], [1, 2]]
    assert attending(mean_by_word(ATTENTION[:3], words_of(TARGET)), spans, (8, 14)) == [], "a limit came before its end"
    assert attending(mean_by_word(ATTENTION[:0], []), spans, (8, 14)) == []


def test_without_a_word_that_is_sure_the_best_one_stands_for_a_part() -> None:
    by_word = np.array([[0.4, 0.3, 0.3], [0.2, 0.4, 0.4], [0.3, 0.4, 0.3]], np.float32)
    spans = [(0, 3), (4, 7), None]

    assert attending(by_word, spans, (0, 3)) == [0]
    assert attending(by_word[1:2], spans, (0, 3)) == [], "it has too little"
    assert attending(by_word[2:], spans, (0, 3)) == [], "it stands for another part"
