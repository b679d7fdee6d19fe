"""Terms in texts, and in their translations."""

import pytest

from server.errors import InvalidRequest
from server.text.glossary import Glossary, NamedGlossary, compile_glossary, locate, translate_alone
from server.text.term_table import Term, TermTable


def glossary(*sources: str, ignore_case: bool = False) -> Glossary:
    return Glossary([Term((source,), ("x",)) for source in sources], ignore_case=ignore_case)


def found_in(terms: Glossary, text: str) -> list[str]:
    return [text[found.start : found.end] for found in terms.find(text)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("The hard disk of a hard-disk recorder.", ["hard disk"]),
        ("A disk, the disk's edge, disks and diskettes.", ["disk", "disk"]),
        ("A hard hard disk drive", ["hard disk drive"]),
        ("(disk)", ["disk"]),
        ("floppy-disk", []),
        ("The hard disk's light, a disk\u2019t", ["hard disk"]),
        ("a Disk", []),
        ("Disk, please.", ["Disk"]),
        ('"Disk" is it.', ["Disk"]),
        ("Hard disk drives", ["Hard disk"]),
        ("Hard Disk", []),
        ("A DISK", ["DISK"]),
        ("NO HARD DISK DRIVE!", ["HARD DISK DRIVE"]),
        ("", []),
        ("...", []),
    ],
)
def test_terms_are_whole_words_the_longest_first(text: str, found: list[str]) -> None:
    assert found_in(glossary("disk", "hard disk", "hard disk drive"), text) == found


def test_a_target_that_is_given_alone_has_the_forms_of_its_language() -> None:
    terms = [
        Term(("user",), ("Anwender",)),
        Term(("screen",), ("Schirm", "Schirme")),
        Term(("name",), ("Name", "Name")),
        Term(("Swift",), ("Swift",)),
    ]
    found = [each.term.targets for each in Glossary(terms).inflecting("de").find("user screen name Swift")]

    assert found == [("Anwender", "Anwenders", "Anwendern"), ("Schirm", "Schirme"), ("Name", "Name"), ("Swift",)]
    assert [each.term.targets for each in Glossary(terms).find("user")] == [("Anwender",)]
    assert [each.term.targets for each in Glossary(terms).inflecting("fr").find("user")] == [("Anwender",)]


def test_case_may_be_ignored() -> None:
    assert found_in(glossary("Apple"), "An apple, an Apple, an APPLE") == ["Apple"]
    assert found_in(glossary("Apple", ignore_case=True), "An apple, an Apple, an APPLE") == ["apple", "Apple", "APPLE"]


@pytest.mark.parametrize(
    ("source", "text"),
    [("图书馆", "他去图书馆了。"), ("C++", "I write C++ code."), ("$", "5 $ each"), ("Straße", "die Straße")],
)
def test_scripts_without_blanks_and_marks_are_found(source: str, text: str) -> None:
    assert found_in(glossary(source), text) == [source]


def test_other_forms_of_a_source_are_found() -> None:
    terms = Glossary([Term(("mouse", "mice"), ("Maus", "Mäuse"))])

    assert [found.term.targets[1] for found in terms.find("Mice and a mouse")] == ["Mäuse", "Mäuse"]


@pytest.mark.parametrize(
    ("terms", "message"),
    [
        ([Term((f"a{index}",), ("b",)) for index in range(1001)], r"^glossary.terms: must be at most 1000, not 1001"),
        ([Term((" ",), ("b",))], r"^glossary.terms\[0\].source: must have 1 to 200 characters"),
        (
            [Term(("a",), ("",))],
            r"^glossary.terms\[0\].target: must have 1 to 200 characters, not all white space, not 0",
        ),
        ([Term(("a",), ("b", "x" * 201))], r"^glossary.terms\[0\].target_forms\[0\]: must .* not 201"),
        ([Term(("a", *"bcdefg" * 6), ("b",))], r"^glossary.terms\[0\].source_forms: must be at most 31, not 36"),
        ([Term(("a\nb",), ("b",))], r"^glossary.terms\[0\].source: must have no control characters, no line breaks"),
        ([Term(("a",), ("b",)), Term(("a",), ("c",))], r"^glossary.terms\[1\]: has a source that glossary.terms\[0\]"),
        (
            [Term(tuple(f"{name}{form} {'+' * 180}" for form in range(20)), ("b",)) for name in "abcdefgh"],
            r"^glossary.terms\[5\]: makes 21720 words of all sources; a request has room for 20000$",
        ),
    ],
)
def test_a_glossary_that_breaks_a_rule_is_refused(terms: list[Term], message: str) -> None:
    with pytest.raises(InvalidRequest, match=message):
        Glossary(terms)


def test_there_are_at_most_16_names() -> None:
    assert len(Glossary([], names=[str(index) for index in range(16)]).names) == 16
    with pytest.raises(InvalidRequest, match=r"^glossary.names: must be at most 16, not 17$"):
        Glossary([], names=[str(index) for index in range(17)])


def named(name: str, *sources: str) -> NamedGlossary:
    return NamedGlossary(name, "en", "de", "0", TermTable(Term((source,), (name,)) for source in sources))


def test_own_terms_win_then_what_is_named_first_and_longer_ones_before_both() -> None:
    own = Glossary([Term(("disk",), ("own",)), Term(("dog",), ("own",))])
    both = own.with_named([named("a", "disk", "hard", "Cat"), named("b", "hard", "hard disk", "dog house", "cat")])

    assert [(each.start, each.term.targets[0]) for each in both.find("a disk, hard, hard disk, dog, dog house")] == [
        (2, "own"),
        (8, "a"),
        (14, "b"),
        (25, "own"),
        (30, "b"),
    ]
    assert [each.term.targets for each in both.find("Cat and cat")] == [("a",), ("b",)]
    assert [each.name for each in both.named] == ["a", "b"]
    assert own.named == ()
    assert list(own.find("hard")) == []


def test_case_is_ignored_in_named_glossaries_too_if_it_is_asked_for() -> None:
    terms = named("a", "Apple", "PEAR")

    assert len(list(Glossary([]).with_named([terms]).find("an apple, a pear"))) == 0
    assert len(list(Glossary([], ignore_case=True).with_named([terms]).find("an apple, a pear"))) == 2


def test_sources_that_differ_in_case_alone_are_the_same_if_case_is_ignored() -> None:
    assert found_in(glossary("polish", "Polish"), "We polish Polish cars.") == ["polish", "Polish"]
    with pytest.raises(InvalidRequest, match="has already"):
        glossary("polish", "Polish", ignore_case=True)


def test_small_glossaries_of_the_last_callers_are_kept() -> None:
    terms = (Term(("a",), ("b",)),)
    many = tuple(Term((f"a{index}",), ("b" * 200,)) for index in range(170))

    assert compile_glossary(terms, False) is compile_glossary(terms, False)
    assert compile_glossary(many, False) is not compile_glossary(many, False)
    assert compile_glossary((), False) is None
    named = compile_glossary((), False, ("it", "law", "it"))
    assert named is not None
    assert named.names == ("it", "law")


@pytest.mark.parametrize(
    ("translation", "spans"),
    [
        ("Der Hund und die Katze.", [(4, 8), None]),
        ("Die Hunde.", [(4, 9), None]),
        ("Hund. Hund!", [(0, 4), (6, 10)]),
        ("Hundehütte, Windhund, hund", [None, None]),
        ("DER HUND", [(4, 8), None]),
        ("Der HUND", [None, None]),
    ],
)
def test_each_term_has_its_own_place_in_a_translation(translation: str, spans: list[tuple[int, int] | None]) -> None:
    terms = Glossary([Term(("dog",), ("Hund", "Hunde"))])
    found = list(terms.find("A dog and a dog."))

    assert [used.span for used in locate(found, translation)] == spans


@pytest.mark.parametrize(
    ("targets", "language", "span"),
    [
        (("System",), "de", (17, 23)),
        (("Kanalisation",), "de", (4, 16)),
        (("System", "Systeme"), "de", None),
        (("System",), "nl", None),
    ],
)
def test_a_target_that_is_given_alone_may_be_a_part_of_a_longer_word_of_german(
    targets: tuple[str, ...], language: str, span: tuple[int, int] | None
) -> None:
    found = list(Glossary([Term(("system",), targets)]).inflecting(language).find("the sewer system"))

    assert [used.span for used in locate(found, "Das Kanalisationssystem")] == [span]


def test_a_term_is_a_word_of_its_own_rather_than_a_part_and_each_part_serves_one_term() -> None:
    terms = Glossary([Term(("system",), ("System",)), Term(("sewer",), ("Kanalisation",))]).inflecting("de")
    found = list(terms.find("sewer system, system"))

    spans = [used.span for used in locate(found, "Kanalisationssystem, System")]
    assert spans == [(0, 12), (21, 27), (13, 19)]


def test_a_target_in_small_letters_may_begin_a_translation() -> None:
    (found,) = Glossary([Term(("red",), ("rot",))]).find("It is red.")

    assert [used.span for used in locate([found], "Rot ist es, rot")] == [(0, 3)]


def test_terms_are_found_however_they_are_encoded() -> None:
    assert found_in(glossary("caf\u00e9"), "the cafe\u0301, a cafe") == ["cafe\u0301"]
    assert found_in(glossary("cafe\u0301"), "the caf\u00e9") == ["caf\u00e9"]
    assert found_in(glossary("e-mail"), "an e\u2011mail") == ["e\u2011mail"]
    (found,) = Glossary([Term(("user",), ("Nu\u0308tzer",))]).find("a user")
    assert [used.span for used in locate([found], "ein N\u00fctzer")] == [(4, 10)]


@pytest.mark.parametrize("text", ["\ufffd", "\u2581a", "\ue000", "a\u200bb", "\u202eb", "a\tb"])
def test_characters_that_mean_nothing_are_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match=r"glossary.terms\[0\].target: must have no control characters"):
        Glossary([Term(("a",), (text,))])


@pytest.mark.parametrize(
    "text", ["\u0645\u06cc\u200c\u0631\u0648\u0645", "hard\u00a0disk", "\U0001f469\u200d\U0001f4bb"]
)
def test_characters_that_scripts_need_are_taken(text: str) -> None:
    Glossary([Term((text,), (text,))])


def test_no_term_is_in_a_part_that_the_network_has_not_written() -> None:
    (found,) = Glossary([Term(("user",), ("user",))]).find("is a user")

    assert [used.span for used in locate([found], "{user} ist ein Benutzer", ["{user}"])] == [None]
    assert [used.span for used in locate([found], "{user} ist ein user", ["{user}"])] == [(15, 19)]


def test_a_translation_is_in_capitals_if_its_own_words_are() -> None:
    (found,) = Glossary([Term(("user",), ("Nutzer",))]).find("THE USER")

    assert [used.span for used in locate([found], "DER NUTZER {name}", ["{name}"])] == [(4, 10)]
    assert [used.span for used in locate([found], "DER NUTZER name", ["{name}"])] == [None]


@pytest.mark.parametrize(
    ("text", "translation"),
    [
        ("hard disk", "Festplatte x"),
        ("hard  disk", "Festplatte x"),
        ("Hard disk", "Festplatte x"),
        ("HARD DISK", "FESTPLATTE X"),
        ("dog", "hund"),
        ("Dog", "Hund"),
        ("hard disk.", None),
        ("A hard disk", None),
        ("dog dog", None),
        ("", None),
    ],
)
def test_a_sentence_that_is_a_term_becomes_its_target(text: str, translation: str | None) -> None:
    terms = Glossary([Term(("hard disk",), ("Festplatte  x", "Festplatten")), Term(("dog",), ("hund",))])

    assert translate_alone(text, list(terms.find(text))) == translation


def test_a_target_has_no_capital_that_neither_it_nor_the_sentence_has() -> None:
    terms = Glossary([Term(("Email",), ("email",))], ignore_case=True)

    assert [translate_alone(text, list(terms.find(text))) for text in ("email", "eMail", "EMAIL")] == [
        "email",
        "email",
        "EMAIL",
    ]


def test_vowel_signs_belong_to_their_word() -> None:
    assert found_in(glossary("राज"), "राजा का राज") == ["राज"]
    (found,) = Glossary([Term(("king",), ("राज",))]).find("a king")
    assert [used.span for used in locate([found], "राजा का राज")] == [(8, 11)]


def test_letters_of_scripts_without_blanks_and_marks_of_emphasis_belong_to_no_word_beside_them() -> None:
    (found,) = Glossary([Term(("computer",), ("PC",))]).find("my computer")

    assert [locate([found], text)[0].span for text in ("我的PC很好", "_PC_", "PCs")] == [(2, 4), (1, 3), None]


def test_a_place_serves_one_term() -> None:
    terms = Glossary([Term(("user",), ("rote Haus",)), Term(("house",), ("Haus",))])
    found = list(terms.find("user house"))

    assert [used.span for used in locate(found, "Das rote Haus.")] == [(4, 13), None]
