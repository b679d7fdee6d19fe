"""Articles and adjectives that agree with the noun behind them, in German."""

import pytest

from server.text.agreement import Grammar, grammar_of, is_singular


@pytest.fixture
def german() -> Grammar:
    grammar = grammar_of("de-AT")
    assert grammar is not None
    return grammar


def agreeing(
    grammar: Grammar, text: str, term: str, forms: tuple[str, ...] = (), *, is_singular: bool = True
) -> list[str]:
    begin = text.index(term)
    return grammar.agreeing(text, (begin, begin + len(term)), forms or (term,), is_singular=is_singular)


def test_no_other_language_has_rules() -> None:
    assert grammar_of("fr") is None


@pytest.mark.parametrize(
    ("noun", "gender"),
    [
        ("Tisch", "m"),
        ("Schreibtisch", "m"),
        ("Anwender", "m"),
        ("Nummer", "f"),
        ("Anwendung", "f"),
        ("Fensterscheibe", "f"),
        ("Fenster", "n"),
        ("Kellerfenster", "n"),
        ("E-Mail-Konto", "n"),
        ("Anwendungen", "p"),
        ("Leiter", ""),
        ("Xyz", ""),
        ("nummer", ""),
        ("", ""),
    ],
)
def test_nouns_have_the_gender_of_their_longest_end(german: Grammar, noun: str, gender: str) -> None:
    assert german.gender(noun) == gender


@pytest.mark.parametrize(
    ("text", "term", "expected"),
    [
        ("Er sieht den Anwendung.", "Anwendung", ["Er sieht die Anwendung."]),
        ("Er hilft dem neuen Anwendung.", "Anwendung", ["Er hilft der neuen Anwendung."]),
        ("Er sieht ein neues Anwendung.", "Anwendung", ["Er sieht eine neue Anwendung."]),
        ("Er sieht sein sehr neues Anwendung.", "Anwendung", ["Er sieht seine sehr neue Anwendung."]),
        ("Das Anwendung hilft.", "Anwendung", ["Die Anwendung hilft."]),
        ("Im neuen Anwendung steht es.", "Anwendung", ["In der neuen Anwendung steht es."]),
        ("Er geht in die Haus.", "Haus", ["Er geht ins Haus."]),
        ("Jeder neue Anwendung hilft.", "Anwendung", ["Jede neue Anwendung hilft."]),
        ("Das Anwendungen hilft.", "Anwendungen", ["Die Anwendungen hilft."]),
    ],
)
def test_words_before_a_term_take_its_gender_and_keep_their_case(
    german: Grammar, text: str, term: str, expected: list[str]
) -> None:
    assert agreeing(german, text, term) == expected


def test_where_words_may_be_in_several_cases_each_is_tried(german: Grammar) -> None:
    assert agreeing(german, "Er sieht seine neue Drucker.", "Drucker") == [
        "Er sieht sein neuer Drucker.",
        "Er sieht seinen neuen Drucker.",
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Mit der Drucker geht es.", "Mit dem Drucker geht es."),
        ("Gut für die Drucker.", "Gut für den Drucker."),
        ("Er geht zur Drucker.", "Er geht zum Drucker."),
        ("Er geht in die Drucker.", "Er geht in den Drucker."),
        ("Dort ist in der Drucker.", "Dort ist im Drucker."),
    ],
)
def test_a_preposition_tells_the_case(german: Grammar, text: str, expected: str) -> None:
    assert agreeing(german, text, "Drucker") == [expected]
    assert agreeing(german, expected, "Drucker") == []


def test_an_adjective_tells_what_an_article_does_not(german: Grammar) -> None:
    """The article alone may be that of the dative or the genitive of the term, but not with this adjective."""
    assert agreeing(german, "Hier hilft der neue Anwendung.", "Anwendung") == ["Hier hilft die neue Anwendung."]
    assert agreeing(german, "Er hilft der neuen Anwendung.", "Anwendung") == []


def test_behind_a_noun_a_term_is_a_genitive_if_it_may_be_one(german: Grammar) -> None:
    assert agreeing(german, "Er hilft der neuen Drucker.", "Drucker") == [
        "Er hilft dem neuen Drucker.",
        "Er hilft des neuen Drucker.",
    ]
    assert agreeing(german, "Die Farbe der neuen Drucker ist rot.", "Drucker") == [
        "Die Farbe des neuen Drucker ist rot."
    ]
    assert agreeing(german, "Dort stehe die Farbe der Drucker.", "Drucker") == [], "that may be a nominative"


def test_a_term_may_come_in_any_of_its_forms(german: Grammar) -> None:
    forms = ("Drucker", "Druckers")

    assert agreeing(german, "wegen einer Drucker", "Drucker", forms) == [
        "wegen einem Drucker",
        "wegen einem Druckers",
        "wegen eines Drucker",
        "wegen eines Druckers",
    ]


def test_a_feminine_for_one_thing_has_the_form_of_the_glossary(german: Grammar) -> None:
    forms = ("Anwendung", "Anwendungen")

    assert agreeing(german, "Das Anwendungen hilft.", "Anwendungen", forms) == ["Die Anwendung hilft."]
    assert agreeing(german, "Er hilft der Anwendungen.", "Anwendungen", forms) == ["Er hilft der Anwendung."]


def test_a_sentence_begins_with_a_nominative(german: Grammar) -> None:
    assert agreeing(german, "Der Anwendung hilft.", "Anwendung") == ["Die Anwendung hilft."]
    assert agreeing(german, "Jetzt hilft der Anwendung.", "Anwendung") == []
    assert agreeing(german, "Der neuen Anwendung hilft.", "Anwendung") == [], "no nominative ends so"


def test_words_before_a_term_for_several_things_stay_unless_it_is_a_plural(german: Grammar) -> None:
    assert agreeing(german, "Das Anwendungen hilft.", "Anwendungen", is_singular=False) == ["Die Anwendungen hilft."]
    assert agreeing(german, "Die Anwendungen helfen.", "Anwendungen", is_singular=False) == []
    assert agreeing(german, "Die Drucker helfen.", "Drucker", is_singular=False) == []


def test_adjectives_of_a_term_change_to_its_other_forms_alone(german: Grammar) -> None:
    term, forms = "künstlicher Intelligenz", ("künstliche Intelligenz", "künstlicher Intelligenz")

    assert agreeing(german, "ein künstlicher Intelligenz", term, forms) == ["eine künstliche Intelligenz"]
    assert agreeing(german, "ein künstlicher Intelligenz", term) == []


@pytest.mark.parametrize(
    ("text", "term"),
    [
        ("Die neue Anwendung hilft.", "Anwendung"),
        ("Anwendung hilft.", "Anwendung"),
        ("Er mag Anwendung.", "Anwendung"),
        ("Das ist es, Anwendung.", "Anwendung"),
        ("Das Haus, das Anwendung findet.", "Anwendung"),
        ("Das (Anwendung)", "Anwendung"),
        ("Das alte kleine neue Anwendung", "Anwendung"),
        ("Das Haus Anwendung", "Anwendung"),
        ("Der Xyz hilft.", "Xyz"),
        ("Der leiter hilft.", "leiter"),
        ("Das 3 hilft.", "3"),
        ("Das Anwendungssystem hilft.", "Anwendung"),
        ("Der Anwendung-System hilft.", "Anwendung"),
        ("Das Hauptanwendung hilft.", "anwendung"),
    ],
)
def test_what_agrees_stays_and_what_has_no_article_or_no_known_gender(german: Grammar, text: str, term: str) -> None:
    assert agreeing(german, text, term) == []


@pytest.mark.parametrize(
    ("phrase", "language", "expected"),
    [
        ("user", "en-GB", True),
        ("users", "en", False),
        ("USERS", "en", False),
        ("business class", "en", True),
        ("status", "en", True),
        ("analysis", "en", True),
        ("young people", "en", False),
        ("utente", "it", False),
    ],
)
def test_an_english_phrase_says_whether_it_means_one_thing(phrase: str, language: str, expected: bool) -> None:
    assert is_singular(phrase, language) == expected
