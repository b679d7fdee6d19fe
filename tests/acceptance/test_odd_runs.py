from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.acceptance.kept_characters import judge
from tests.acceptance.lines import DATA, Answer, read_pairs
from tests.acceptance.odd_runs import (
    PLACES,
    OddLine,
    Run,
    fault_of_rest,
    fault_of_run,
    odd_lines,
    read_runs,
    without_run,
)

PAIRS = [("Tom likes his old car.", "Tom mag sein altes Auto."), ("I want to go home.", "Ich will nach Hause.")]


def line(run: str, source: str) -> OddLine:
    place = "start" if source.startswith(run) else "end" if source.endswith(run) else "between"
    return OddLine(" ".join(source.replace(run, " ").split()), "", Run("any", run), place, source)


def test_runs_are_at_least_300_that_differ() -> None:
    runs = read_runs(DATA / "odd_characters.txt")

    assert len({run.text for run in runs}) == len(runs) >= 300
    assert all(run.text and run.text == "".join(run.text.split()) for run in runs)


def test_a_file_of_runs_names_their_group(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("arrows\t→ ⇒\nhan\t你好\n", encoding="utf-8")

    assert read_runs(tmp_path / "runs") == [Run("arrows", "→"), Run("arrows", "⇒"), Run("han", "你好")]


def test_each_run_comes_at_each_place_in_turn() -> None:
    runs = [Run("any", text) for text in "→•⇒"]
    pairs = [(f"This is sentence {index} of nine.", "") for index in range(9)]

    lines = list(odd_lines(pairs, runs))

    assert {(each.run.text, each.place) for each in lines} == {(run.text, place) for run in runs for place in PLACES}
    assert all(each.source.split().count(each.run.text) == 1 for each in lines)
    assert all(each.source.startswith(each.run.text) == (each.place == "start") for each in lines)
    assert all(each.source.endswith(each.run.text) == (each.place == "end") for each in lines)


def test_a_sentence_that_has_the_run_or_no_gap_is_left_out() -> None:
    lines = list(odd_lines([("A → B is true.", ""), ("Go home.", ""), ("Tom is here.", "")], [Run("arrows", "→")]))

    assert [each.sentence for each in lines] == ["Tom is here."]


@pytest.mark.parametrize("source", ["en", "de"])
def test_there_are_2000_sentences_with_references(source: str) -> None:
    pairs = read_pairs(source, "de" if source == "en" else "en")

    assert len(pairs) > 2000
    assert all(text and reference for text, reference in pairs)


def test_there_are_no_references_in_another_language() -> None:
    assert {reference for _, reference in read_pairs("en", "pt")} == {""}
    with pytest.raises(ValueError, match='"fr"'):
        read_pairs("fr", "en")


@pytest.mark.parametrize(
    ("run", "source", "translation", "fault"),
    [
        ("→", "→ Tom is here.", "→ Tom ist da.", ""),
        ("→", "→ Tom is here.", "„→ Tom ist da.“", ""),
        ("→", "→ Tom is here.", "Tom → ist da.", "moved"),
        ("→", "→ Tom is here.", "Tom ist da.", "lost"),
        ("→", "→ Tom is here.", "→ Tom → ist da.", "doubled"),
        ("→→", "→→ Tom is here.", "→ → Tom ist da.", "lost"),
        ("你好", "你好 Tom is here.", "Tom 你好 ist heute da.", ""),
        ("你好", "你好 Tom is here.", "Tom ist da 你好.", "moved"),
        ("•", "Tom is here. •", "Tom ist da. •", ""),
        ("•", "Tom is here •", "Tom ist da •.", ""),
        ("•", "Tom is here. •", "Tom ist • da.", "moved"),
        ("你好", "Tom is here. 你好", "Tom ist heute 你好 da.", ""),
        ("你好", "Tom is here. 你好", "你好 Tom ist da.", "moved"),
        ("≈", "Tom is ≈ here.", "Tom ist ≈ da.", ""),
        ("≈", "≉ Tom ≈ is here today.", "Tom ist heute da ≈", "moved"),
        ("👍🏽", "Tom is 👍🏽 here.", "Tom ist 👍 da.", "lost"),
        ("{name}", "Tom is {name} here.", "Tom ist {Name} da.", "lost"),
    ],
)
def test_a_run_is_there_once_and_in_its_place(run: str, source: str, translation: str, fault: str) -> None:
    assert fault_of_run(line(run, source), translation) == fault


@pytest.mark.parametrize(
    ("translation", "fault"),
    [
        ("Tom ist → da.", ""),
        ("Tom ist → im WLAN.", ""),
        ("Tom ist → bei der UNESCO.", ""),
        ("Tom ist → im HINWEIS.", "capitals"),
        ("Tom ist → im Meta\ufffd.", "stray"),
        ("Tom ist → \ue004.", "stray"),
        ("Tom ist → \U000f0001.", "stray"),
        ("HIER ist → Tom.", ""),
        ("Toms UNICEF → ist da.", ""),
    ],
)
def test_noise_is_what_neither_source_nor_plain_translation_has(translation: str, fault: str) -> None:
    asked = line("→", "Tom is → from Unesco.")

    assert fault_of_rest(asked, translation, "Tom ist von UNICEF.") == fault


def test_a_run_may_itself_have_capitals_or_private_characters() -> None:
    asked = line("[USER_NAME]", "Tom is [USER_NAME] here.")

    assert fault_of_rest(asked, "Tom ist [USER_NAME] da.", "Tom ist da.") == ""
    assert without_run(asked, "Tom ist [USER_NAME] da.") == "Tom ist da."


def test_the_table_fails_with_one_lost_run_and_names_its_line() -> None:
    lines = list(odd_lines(PAIRS, [Run("arrows", "→"), Run("bullets", "•")]))

    def ask(texts: Sequence[str]) -> list[Answer]:
        return [Answer(text.replace("→", "")) for text in texts]

    checks, rows = judge(lines, ask)

    assert [check.passed for check in checks if check.passed is not None] == [False, True, True]
    assert checks[0].measured == "50.00 (1 lost)"
    assert [row[0] for row in rows] == ["lost"]


def test_the_table_passes_what_is_whole_and_fails_what_spoils_the_rest() -> None:
    lines = list(odd_lines(PAIRS, [Run("arrows", "→")]))
    assert [each.source for each in lines] == ["→ Tom likes his old car.", "I want → to go home."]
    plain = {each.sentence: each.reference for each in lines}
    answers = plain | {
        "→ " + PAIRS[0][0]: "→ Tom mag sein altes Auto.",
        "I want → to go home.": "Ich will → nach Hause.",
    }
    noise = plain | {each.source: "HINWEISEN →" for each in lines}

    def verdicts(answers: dict[str, str], *, untrained: bool = False) -> list[bool]:
        checks, _ = judge(lines, lambda texts: [Answer(answers[text]) for text in texts], untrained=untrained)
        return [check.passed for check in checks if check.passed is not None]

    assert verdicts(answers) == [True, True, True]
    assert verdicts(noise) == [False, False, False]
    assert verdicts(noise, untrained=True) == [True, False]
