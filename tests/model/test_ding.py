from model.ding import Entry, chosen, entries

LINES = [
    "# License :: GPL",
    "Windel {f} | Windeln {pl} :: nappy [Br.]; diaper [Am.] | nappies; diapers",
    "Schal {m} (Halstuch); Schaltuch {n} :: scarf",
    "lockig; kraus {adj} :: nappy",
    "Gang {m} (zwischen Sitzbänken) :: aisle",
    "Nachbar {m} :: neighbour",
    "gehen :: to go",
    "altes Wort [obs.] {n} | Wort [obs.] {n} :: old word | word",
    "ungleich viele | Formen :: forms",
]


def test_single_words_are_paired_each_with_the_first_of_the_other_side() -> None:
    assert entries(LINES) == [
        Entry("nappy", "Windel", 0, "f"),
        Entry("diaper", "Windel", 1, "f"),
        Entry("nappies", "Windeln", 0, "pl"),
        Entry("diapers", "Windeln", 1, "pl"),
        Entry("scarf", "Schal", 0, "m"),
        Entry("scarf", "Schaltuch", 1, "n"),
        Entry("nappy", "lockig", 0, ""),
        Entry("nappy", "kraus", 1, ""),
        Entry("aisle", "Gang", 0, "m"),
        Entry("neighbour", "Nachbar", 0, "m"),
    ]


def test_a_class_is_of_words_that_want_the_same_article_and_endings() -> None:
    classes = {entry.english: entry.word_class for entry in entries(LINES)}

    assert classes["diaper"] == "f"
    assert classes["aisle"] == "m-an"
    assert classes["nappies"] == "pl-n"
    assert classes["neighbour"] == ""  # "den Nachbarn"
    assert classes["nappy"] == ""  # an adjective


def test_the_senses_that_the_text_has_are_chosen_and_unknown_and_familiar_words_left_out() -> None:
    pairs = [("A scarf.", "Ein Schaltuch."), ("The aisle", "Der Gang"), ("Hair", "Ist es lockig?")]
    pairs += [("A diaper", "Eine Windel")] * 500

    kept = [(entry.english, entry.german) for entry in chosen(entries(LINES), pairs)]

    assert kept == [("aisle", "Gang"), ("nappy", "Windel"), ("nappy", "lockig"), ("scarf", "Schaltuch")]
