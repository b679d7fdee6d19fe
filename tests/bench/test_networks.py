"""What the comparison of networks says of answers, and how it shows figures."""

from tests.bench.networks import is_measured, score, tables

PAIRS = [
    ("A dog runs.", "Ein Hund rennt."),
    (
        "A man in a blue shirt is standing on a ladder cleaning a window.",
        "Ein Mann in einem blauen Hemd putzt Fenster.",
    ),
    ("Go on, go on!", "Los, los!"),
]


def test_answers_are_scored_in_all_and_by_the_length_of_the_source() -> None:
    found = score(PAIRS, [reference for _, reference in PAIRS])["scores"]

    assert {name: each["sentences"] for name, each in found.items()} == {"all": 3, "1-5": 2, "6-20": 1}
    assert {round(each["bleu"][0], 6) for each in found.values()} == {100.0}
    assert score(PAIRS, ["x", "Ein Mann.", "y"])["scores"]["all"]["chrf"][0] < 30


def test_a_doubled_word_counts_unless_the_reference_has_one() -> None:
    answers = ["Ein Hund Hund rennt.", "Ein Mann in einem blauen Hemd putzt Fenster.", "los los"]

    assert round(score(PAIRS, answers)["doubled %"], 1) == 66.7  # "Los, los!" has a comma between
    assert score([PAIRS[0]], ["Hund Hund rennt."])["doubled %"] == 100
    assert score([("a b", "Hund Hund rennt.")], ["Hund Hund rennt."])["doubled %"] == 0


def test_a_network_is_measured_again_in_another_variant_or_beam() -> None:
    found = {"variant": "cpu-int8", "beam_size": 1}

    asked = [("cpu-int8", 1), ("cpu-fp32", 1), ("cpu-int8", 4)]

    assert [is_measured(found, *each) for each in asked] == [True, False, False]
    assert not is_measured(None, "cpu-int8", 1)


def test_the_tables_have_a_row_for_each_network() -> None:
    figures = dict.fromkeys(
        ("million weights", "tokens/s", "sentences/s", "alone ms", "p95 ms at 80 % load", "peak MB"), 1234.56
    )
    network = {
        **figures,
        "state KB of a row": 1.0,
        "training tokens/s": 9000.0,
        "domains": {"captions": score(PAIRS, ["x"] * 3)},
    }

    costs, quality, by_length = tables({"ssru": network, "ctc": network | {"training tokens/s": 8000.0}})

    assert [line.split()[1] for line in costs.splitlines()[2:]] == ["ssru", "ctc"]
    assert ["9,000" in costs, "8,000" in costs] == [True, True]
    assert "1,234.6" in costs
    assert "captions, chrF" in quality
    assert "1-5 words (2)" in by_length
    assert "6-20 words (1)" in by_length
