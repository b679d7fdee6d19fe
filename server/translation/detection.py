"""Detects the source language of texts whose request leaves it open, among the served languages. An optional extra."""

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from server.bundle.codes import few_of, language_of
from server.errors import InvalidRequest
from server.text.detector import DETECTOR_BYTES, MAX_CHARACTERS, Detector, is_installed
from server.threads import SPLITTER_NICENESS, be_nice
from server.translation.memory import MemoryBudget

HINT = "this server detects no languages, which needs py3langid: pip install 'babelserve[detect]'"

_MOST_AT_ONCE = 400  # characters that are detected on the event loop's thread
_LEAST_CHARACTERS = 50  # a shorter text counts as this many
_NUM_THREADS = 4  # so that a request of many texts keeps no other one waiting
_MOST_NAMED = 4


class DetectedLanguage(NamedTuple):
    """The detected language of a text: a model's code, and its probability among the served languages, 0 to 1."""

    code: str
    confidence: float


class LanguageDetection:
    """Detects languages. Few characters are detected on the event loop's thread, many on a thread of low priority.

    The detector is loaded when a request first needs it. So other servers neither wait for it nor hold it in memory.

    Args:
        memory: the memory of requests, which shrinks once the detector is loaded.

    Attributes:
        is_available: whether the extra is installed.
    """

    def __init__(self, memory: MemoryBudget) -> None:
        self.is_available = is_installed()
        self._memory = memory
        self._threads = ThreadPoolExecutor(_NUM_THREADS, "detection", functools.partial(be_nice, SPLITTER_NICENESS))
        self._loading: asyncio.Task[Detector] | None = None

    async def detect(
        self, texts: Sequence[str], codes: Sequence[str], words_of: Callable[[str], str] = str
    ) -> "list[DetectedLanguage | InvalidRequest | None]":
        """Returns the language of each text, or the error that refuses the text; None for a text without a letter.

        Args:
            texts: any texts.
            codes: the codes of the served languages, at least one, as the models have them.
            words_of: returns the first words of a text, without markup.

        Raises:
            InvalidRequest: the detector does not know all of the languages.
        """
        if self._loading is None:
            self._loading = asyncio.create_task(self._load())
        detector = await asyncio.shield(self._loading)
        labels = _labels(detector, tuple(codes))
        look = functools.partial(_detect_all, detector, texts, words_of, labels)
        num_characters = sum(max(_LEAST_CHARACTERS, min(len(text), MAX_CHARACTERS)) for text in texts)
        if num_characters <= _MOST_AT_ONCE:
            return look()
        return await asyncio.get_running_loop().run_in_executor(self._threads, look)

    async def _load(self) -> Detector:
        try:
            detector = await asyncio.to_thread(Detector)
        except BaseException:
            self._loading = None  # the next request tries again
            raise
        self._memory.max_bytes -= DETECTOR_BYTES
        return detector


@functools.lru_cache(maxsize=64)
def _labels(detector: Detector, codes: tuple[str, ...]) -> Mapping[str, str]:
    """Returns the code for each name that the detector has for a language, the first of several codes.

    Raises:
        InvalidRequest: the detector has no name for some codes, and would take their texts for another language.
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
        raise InvalidRequest("source_language_code", f"is required: {named} cannot be told by detection")
    return labels


def _detect_all(
    detector: Detector, texts: Sequence[str], words_of: Callable[[str], str], labels: Mapping[str, str]
) -> "list[DetectedLanguage | InvalidRequest | None]":
    return [_detect(detector, f"contents[{index}]", words_of(text), labels) for index, text in enumerate(texts)]


def _detect(
    detector: Detector, field: str, text: str, labels: Mapping[str, str]
) -> "DetectedLanguage | InvalidRequest | None":
    if not any(map(str.isalpha, text[:MAX_CHARACTERS])):
        return None
    guess = detector.guess(text, labels)
    if guess.other:
        served = ", ".join(sorted(labels.values()))
        found = f"detected language {guess.other} (probability {guess.other_confidence:.2f})"
        return InvalidRequest(field, f"{found} is not served for this target, only {served} are")
    return DetectedLanguage(labels[guess.label], guess.confidence)
