"""Detects the source language of texts whose request leaves it open, among the served languages. An optional extra."""

import asyncio
import functools
import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from server.bundle.codes import few_of, language_of
from server.errors import DeadlineExceeded, InvalidRequest, PreconditionFailed
from server.text.detector import DETECTOR_BYTES, MAX_CHARACTERS, Detector, is_installed
from server.text.markup.readers import FIRST_CHARACTERS, first_words
from server.text.splitter import IsOver, Splitter
from server.translation.memory import MemoryBudget

HINT = "this server detects no languages, which needs py3langid: pip install 'babelserve[detect]'"

_REMEDY = "requests that name their source language need no detection"
_COST = 5  # characters that are split into sentences in the time in which the language of one is detected
_LEAST_CHARACTERS = 50  # a shorter text counts as this many
_MOST_NAMED = 4


class DetectedLanguage(NamedTuple):
    """The detected language of a text: a model's code, and its probability among the served languages, 0 to 1."""

    code: str
    confidence: float


class LanguageDetection:
    """Detects languages. Few characters are detected on the event loop's thread, many on one of the splitter's.

    The detector is loaded when a request first needs it. So other servers neither wait for it nor hold it in memory.

    Args:
        memory: the memory of requests, which shrinks before the detector is loaded.
        splitter: does what takes long.

    Attributes:
        is_available: whether the extra is installed.
    """

    def __init__(self, memory: MemoryBudget, splitter: Splitter) -> None:
        self.is_available = is_installed()
        self._memory = memory
        self._splitter = splitter
        self._loading: asyncio.Task[Detector] | None = None

    async def detect(
        self, texts: Sequence[str], codes: Sequence[str], mime_type: str = "", deadline: float = math.inf
    ) -> "list[DetectedLanguage | InvalidRequest | None]":
        """Returns the language of each text, or the error that refuses the text; None for a text without a letter.

        Args:
            texts: any texts. The first letter is looked for in their first `FIRST_CHARACTERS`.
            codes: the codes of the served languages, at least one, as the models have them.
            mime_type: of the texts, of whose markup nothing is looked at.
            deadline: instant of `time.monotonic`.

        Raises:
            PreconditionFailed: the detector does not know all of the languages, or there is no memory to load it.
            Overloaded: too much is being split or detected already.
            DeadlineExceeded: the deadline passed.
        """
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        detector = await asyncio.shield(self._loading)
        labels = _labels(detector, tuple(codes))
        num_characters = sum(_COST * max(_LEAST_CHARACTERS, min(len(text), MAX_CHARACTERS)) for text in texts)
        num_characters += sum(min(len(text), FIRST_CHARACTERS) for text in texts)
        look = functools.partial(_detect_all, detector, texts, mime_type, labels)
        return await self._splitter.work(num_characters, look, deadline)

    async def _load(self) -> Detector:
        if not self._memory.shrink(DETECTOR_BYTES):
            self._loading = None
            mib = DETECTOR_BYTES >> 20
            raise PreconditionFailed(
                f"detection of languages takes {mib} MiB of memory, which this server cannot spare; {_REMEDY}"
            )
        try:
            return await asyncio.to_thread(Detector)
        except BaseException:
            self._loading = None  # the next request tries again
            self._memory.max_bytes += DETECTOR_BYTES
            raise


@functools.lru_cache(maxsize=64)
def _labels(detector: Detector, codes: tuple[str, ...]) -> Mapping[str, str]:
    """Returns the code for each name that the detector has for a language, the first of several codes.

    Raises:
        PreconditionFailed: the detector has no name for some codes, and would take their texts for another language.
    """
    known: dict[str, str] = {}
    for label in detector.labels:
        known.setdefault(language_of(label) or label, label)
    labels: dict[str, str] = {}
    unknown: list[str] = []
    for code in codes:
        language = language_of(code)
        if language in known:
            labels.setdefault(known[language], code)
        else:
            unknown.append(code)
    if unknown:
        named = few_of(unknown, _MOST_NAMED)
        raise PreconditionFailed(f"detection cannot tell {named}, which this server translates from; {_REMEDY}")
    return labels


def _detect_all(
    detector: Detector, texts: Sequence[str], mime_type: str, labels: Mapping[str, str], is_over: IsOver
) -> "list[DetectedLanguage | InvalidRequest | None]":
    def watch(_: int = 0) -> None:
        if is_over():
            raise DeadlineExceeded("the time was over before the languages of the texts were detected")

    found = []
    for index, text in enumerate(texts):
        watch()
        found.append(_detect(detector, f"contents[{index}]", first_words(mime_type, text, watch), labels))
    return found


def _detect(
    detector: Detector, field: str, text: str, labels: Mapping[str, str]
) -> "DetectedLanguage | InvalidRequest | None":
    first = next((index for index, character in enumerate(text[:FIRST_CHARACTERS]) if character.isalpha()), None)
    if first is None:
        return None
    guess = detector.guess(text[first : first + MAX_CHARACTERS], labels)
    if guess.other:
        served = ", ".join(sorted(labels.values()))
        found = f"detected language {guess.other} (probability {guess.other_confidence:.2f})"
        return InvalidRequest(field, f"{found} is not served for this target, only {served} are")
    return DetectedLanguage(labels[guess.label], guess.confidence)
