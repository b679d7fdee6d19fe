"""The sentences that the tiny models learn, and those that they are asked to translate."""

from dataclasses import dataclass
from pathlib import Path

from tests.captions import read_captions

DATA = Path(__file__).parents[1] / "data"

# What a normaliser, an unknown piece or a space could get wrong. No control tokens: `transformers` obeys them.
ODD_SENTENCES = [
    "Ｔｏｍ ｉｓ ａｔ ｈｏｍｅ．",
    "The ﬁrst oﬃce is closed.",
    "I paid 5 € for ½ a cake™.",
    "Two   spaces  here.",
    "no\u00a0break\u2009spaces\u3000here",
    "“Who cares?” – ‘I do.’",
    "Müller und Öztürk grüßen Zoë.",
    "Mu\u0308ller isst Kuchen.",
    "Я не знаю.",
    "我不知道。",
    "Is that 🙂 or 👩‍🚀?",
    "soft\u00adhyphen and zero\u200bwidth",
    "TOM, COME HERE!!!",
    "a",
    "?",
    "1,234.56 km/h",
    "Don't you've got o'clock's rock'n'roll?",
    "e-mail: tom@example.org, https://example.org/a?b=c&d=e",
    "It's 100% <b>bold</b> & (really) [odd] | fine.",
    "Donaudampfschifffahrtsgesellschaftskapitän",
]


@dataclass(frozen=True, slots=True)
class Pair:
    """A sentence in English and in German."""

    english: str
    german: str

    def in_language(self, language: str) -> str:
        """Returns the sentence in "en" or "de", or in "nl", which stands for the German words in reverse order.

        The third language is none: a model must obey the language token to write it, and that is all that matters.
        """
        if language == "nl":
            return " ".join(reversed(self.german.split()))
        return {"en": self.english, "de": self.german}[language]


def training_pairs() -> list[Pair]:
    """Returns 1,000 pairs of Tatoeba and 200 of Multi30K; both are in `tests/data`."""
    return [*_tatoeba(), *_multi30k()]


def checked_pairs() -> list[Pair]:
    """Returns 330 pairs: 260 of Tatoeba without repetition, 50 of Multi30K, longer ones, and 20 odd ones."""
    tatoeba = list({pair.english: pair for pair in _tatoeba()}.values())[:260]
    return [*tatoeba, *_multi30k()[:50], *(Pair(text, text) for text in ODD_SENTENCES)]


def _tatoeba() -> list[Pair]:
    lines = (DATA / "tatoeba_held_out.tsv").read_text(encoding="utf-8").splitlines()
    return [Pair(*line.split("\t")) for line in lines]


def _multi30k() -> list[Pair]:
    captions = read_captions()
    return [Pair(*pair) for pair in zip(captions.sources, captions.references, strict=True)]
