"""Tests of the trials that show what a network returns."""

from collections.abc import Callable

from export.probe import CODES, probe
from server.bundle.masking import Masking

SENTENCES = [f"This sentence, number {number}, has some more words." for number in range(30)]


class Vocabulary:
    """Knows some characters; "\u00e9" is a letter of its languages."""

    def knows(self, character: str) -> bool:
        return character in "$+\u00e9\u0141\u2022\u00bd\u20ac.,"

    def source_pieces(self) -> list[str]:
        return [f"\u00e9{letter}x" for letter in "abcdefgh"] + ["\u0141", "\u2022"]


def found(translate: Callable[[str], str], masking: Masking | None = None) -> Masking:
    return probe(
        lambda texts: list(map(translate, texts)),
        Vocabulary(),  # type: ignore[arg-type]
        SENTENCES,
        masking or Masking(),
    )


def test_a_network_that_returns_everything_knows_everything_and_copies_the_first_codes() -> None:
    assert found(lambda text: text) == Masking(codes=CODES[:2])


def test_characters_that_are_lost_are_unknown() -> None:
    lost = str.maketrans("", "", "\u2022\u0141.,")  # the last two are punctuation, and are not tried

    assert found(lambda text: text.translate(lost)).unknown_characters == "\u0141\u2022"


def test_a_letter_of_the_languages_is_not_tried() -> None:
    assert found(lambda text: text.replace("\u00e9", "e")).unknown_characters == ""


def test_a_character_counts_as_known_if_half_of_the_translations_have_it() -> None:
    def returned_in(numbers: range) -> Callable[[str], str]:
        return lambda text: text if any(f"number {each}, " in text for each in numbers) else text.replace("\u2022", "")

    assert found(returned_in(range(0, 24, 2))).unknown_characters == ""
    assert found(returned_in(range(0, 22, 2))).unknown_characters == "\u2022"


def test_codes_that_are_changed_are_not_taken() -> None:
    assert found(lambda text: text.replace("%", "% ")).codes == CODES[1:3]
    assert found(lambda text: "").codes == ()


def test_what_is_known_already_stays() -> None:
    masking = found(lambda text: text, Masking(num_placeholders=16, folds_capitals=True))

    assert (masking.num_placeholders, masking.folds_capitals) == (16, True)


def test_a_network_that_reads_no_capitals_is_shown_small_letters() -> None:
    def translate(text: str) -> str:
        return text if text.isupper() else text.replace("sentence", "Satz")

    assert found(translate).folds_capitals
    assert not found(lambda text: "" if text.islower() else text).folds_capitals
