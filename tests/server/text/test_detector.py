"""The detector on everyday sentences: Tatoeba's, whose English and German ones no training of ours has seen."""

import gzip
from pathlib import Path

import pytest

pytest.importorskip("py3langid", reason="it comes with the extra `detect`")

from server.text.detector import MAX_CHARACTERS, Detector, is_installed

DATA = Path(__file__).parents[2] / "data"
SENTENCES = Path(__file__).parents[3] / "export" / "imports" / "sentences"
OTHERS = ("es", "it", "ja", "nl", "pt", "ru", "zh")


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector()


def tatoeba() -> dict[str, list[str]]:
    """1,000 sentences in English, as many in German, and 90 in French."""
    pairs = [line.split("\t") for line in (DATA / "tatoeba_held_out.tsv").read_text(encoding="utf-8").splitlines()]
    french = (DATA / "tatoeba_fr.txt").read_text(encoding="utf-8").splitlines()
    return {"en": [pair[0] for pair in pairs], "de": [pair[1] for pair in pairs], "fr": french}


@pytest.mark.parametrize(
    ("labels", "least"),
    [(("en", "de"), 0.99), (("en", "de", "fr"), 0.99), (("en", "de", "fr", *OTHERS), 0.98)],
)
def test_short_sentences_are_told_apart_and_not_refused(
    detector: Detector, labels: tuple[str, ...], least: float
) -> None:
    for language, texts in tatoeba().items():
        if language in labels:
            guesses = [detector.guess(text, labels) for text in texts]

            assert sum(guess.label == language for guess in guesses) >= least * len(texts), language
            assert sum(bool(guess.other) for guess in guesses) <= 0.002 * len(texts), language


def test_sentences_in_other_languages_are_known_for_it(detector: Detector) -> None:
    french = tatoeba()["fr"]
    texts = {code: (SENTENCES / f"{code}.txt").read_text(encoding="utf-8").splitlines() for code in OTHERS} | {
        "fr": french
    }
    found = {code: [detector.guess(text, ("en", "de")).other for text in texts[code] if text] for code in texts}

    num_known = sum(sum(map(bool, others)) for others in found.values())
    num_right = sum(others.count(code) for code, others in found.items())
    num_texts = sum(map(len, found.values()))
    assert num_known >= 0.9 * num_texts
    assert num_right >= 0.85 * num_texts


def test_how_sure_it_is_is_a_probability_among_those_that_were_asked_for(detector: Detector) -> None:
    sure = detector.guess("Two dogs are running through the snow.", ("de", "en"))
    unsure = detector.guess("Tom", ("de", "en", "fr"))
    alone = detector.guess("Tom", ("fr",))

    assert (sure.label, sure.other, sure.other_confidence) == ("en", "", 0.0)
    assert 0.99 < sure.confidence <= 1.0
    assert 1 / 3 <= unsure.confidence < 0.9
    assert alone.label == "fr"
    assert alone.confidence == pytest.approx(1.0)


@pytest.mark.parametrize("text", ["", "42", "https://x.y/z?a=1", "a1b2-c3d4 {}", "\ud800", "OK"])
def test_what_is_no_language_is_taken_for_one_that_was_asked_for(detector: Detector, text: str) -> None:
    guess = detector.guess(text, ("en", "de"))

    assert guess.label in ("en", "de")
    assert guess.other == ""


def test_the_beginning_of_a_long_text_decides(detector: Detector) -> None:
    with gzip.open(DATA / "multi30k_val.en.gz", "rt", encoding="utf-8") as file:
        text = file.read()[:MAX_CHARACTERS]

    assert detector.guess(text + "Zwei Hunde laufen durch den Schnee. " * 1000, ("de", "en")).label == "en"


def test_whoever_can_import_it_has_it_installed() -> None:
    assert is_installed()
