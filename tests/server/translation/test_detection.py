import asyncio
import os
import threading
from unittest.mock import ANY

import pytest

from server.errors import DeadlineExceeded, InvalidRequest, Overloaded, PreconditionFailed
from server.text import detector as detector_module
from server.text import splitter as splitter_module
from server.text.detector import DETECTOR_BYTES, Detector, Guess
from server.text.markup.readers import FIRST_CHARACTERS
from server.text.splitter import Splitter
from server.threads import SPLITTER_NICENESS
from server.translation import detection as detection_room
from server.translation.detection import DetectedLanguage, LanguageDetection
from server.translation.memory import MemoryBudget

pytest.importorskip("py3langid", reason="it comes with the extra `detect`")

ENGLISH, GERMAN, SPANISH = "The dog runs over the field.", "Der Hund läuft über das Feld.", "El perro corre por aquí."


@pytest.fixture(scope="module")
def memory() -> MemoryBudget:
    return MemoryBudget(1 << 30)


@pytest.fixture
def detection(memory: MemoryBudget) -> LanguageDetection:
    return LanguageDetection(memory, Splitter())


async def test_each_text_has_its_language_or_is_refused_by_its_place(detection: LanguageDetection) -> None:
    english, german, digits, spanish = await detection.detect([ENGLISH, GERMAN, " 42 \n", SPANISH], ["de", "en"])

    assert isinstance(english, DetectedLanguage)
    assert isinstance(german, DetectedLanguage)
    assert (english.code, german.code, digits) == ("en", "de", None)
    assert 0.9 < english.confidence <= 1.0
    assert isinstance(spanish, InvalidRequest)
    assert str(spanish).startswith("contents[3]: detected language es (probability 0.")
    assert str(spanish).endswith(") is not served for this target, only de, en are")
    assert "perro" not in str(spanish)


async def test_languages_are_found_by_the_codes_that_models_have(detection: LanguageDetection) -> None:
    texts = ["这是一个测试，我们明天去北京。", "Jeg vet ikke hva du snakker om, men det er greit.", GERMAN]

    found = await detection.detect(texts, ["zh-Hant", "zh-Hans", "nb", "deu_Latn"])

    assert [each.code for each in found if isinstance(each, DetectedLanguage)] == ["zh-Hant", "nb", "deu_Latn"]


async def test_a_language_that_cannot_be_told_is_no_fault_of_the_request(detection: LanguageDetection) -> None:
    codes = ["de", "ast", "fur", "ceb", "ban", "min"]
    with pytest.raises(PreconditionFailed, match="detection cannot tell ast, fur, ceb, ban and 1 more"):
        await detection.detect([GERMAN], codes)


async def test_it_is_loaded_once_when_it_is_first_needed_and_counts_as_memory(
    detection: LanguageDetection, memory: MemoryBudget
) -> None:
    before = memory.max_bytes
    await asyncio.gather(*(detection.detect([GERMAN], ["de", "en"]) for _ in range(3)))

    assert memory.max_bytes == before - DETECTOR_BYTES


async def test_it_is_not_loaded_where_too_little_memory_would_be_left_for_requests() -> None:
    memory = MemoryBudget(100 << 20)
    detection = LanguageDetection(memory, Splitter())

    for _ in range(2):
        with pytest.raises(PreconditionFailed, match="detection of languages takes 80 MiB of memory"):
            await detection.detect(["A dog."], ["en", "de"])

    assert memory.max_bytes == 100 << 20
    memory.max_bytes = 200 << 20  # a model was unloaded
    assert await detection.detect(["A dog is running."], ["en", "de"])


async def test_a_detector_that_could_not_be_loaded_is_loaded_for_the_next_request(
    detection: LanguageDetection, monkeypatch: pytest.MonkeyPatch
) -> None:
    errors = [MemoryError()]

    def load() -> Detector:
        if errors:
            raise errors.pop()
        return Detector()

    monkeypatch.setattr(detection_room, "Detector", load)
    with pytest.raises(MemoryError):
        await detection.detect([GERMAN], ["de", "en"])

    (found,) = await detection.detect([GERMAN], ["de", "en"])

    assert isinstance(found, DetectedLanguage)


async def test_much_text_is_looked_at_off_the_event_loop(
    detection: LanguageDetection, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads, nice = [], []

    def guess(self: Detector, text: str, labels: object) -> Guess:
        threads.append(threading.get_ident())
        nice.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return Guess("de", 1.0)

    monkeypatch.setattr(detector_module.Detector, "guess", guess)
    await detection.detect(["Hallo."], ["de", "en"])
    await detection.detect(["Hallo."] * 20, ["de", "en"])
    await detection.detect(["Hallo. " * 100], ["de", "en"])

    own = threading.get_ident()
    assert [thread == own for thread in (threads[0], threads[1], threads[-1])] == [True, False, False]
    assert min(nice[1:]) >= SPLITTER_NICENESS


async def test_prose_behind_signs_is_found(detection: LanguageDetection) -> None:
    (found,) = await detection.detect(["-" * 600 + "\n" + GERMAN], ["de", "en"])

    assert isinstance(found, DetectedLanguage)
    assert found.code == "de"


async def test_a_letter_far_behind_signs_is_not_looked_for(detection: LanguageDetection) -> None:
    signs = "-" * FIRST_CHARACTERS

    assert await detection.detect([signs[1:] + GERMAN, signs + GERMAN], ["de", "en"]) == [ANY, None]


async def test_it_ends_when_nobody_waits_any_more(
    detection: LanguageDetection, monkeypatch: pytest.MonkeyPatch
) -> None:
    await detection.detect([GERMAN], ["de", "en"])
    monkeypatch.setattr(detection_room, "first_words", None)

    with pytest.raises(DeadlineExceeded):
        await detection.detect([GERMAN] * 100, ["de", "en"], "text/plain", 0.0)


async def test_reading_markup_ends_within_a_text(detection: LanguageDetection, monkeypatch: pytest.MonkeyPatch) -> None:
    await detection.detect([GERMAN], ["de", "en"])
    asked = iter([False, True])  # before the text, and within it
    monkeypatch.setattr(Splitter, "work", lambda _, __, work, ___: asyncio.sleep(0, work(lambda: next(asked))))

    with pytest.raises(DeadlineExceeded):
        await detection.detect(["*a* " * 100], ["de", "en"], "text/markdown")


@pytest.mark.parametrize("mime_type", ["", "text/markdown"])
async def test_it_counts_as_splitting_with_what_it_reads(
    detection: LanguageDetection, monkeypatch: pytest.MonkeyPatch, mime_type: str
) -> None:
    monkeypatch.setattr(splitter_module, "MAX_CHARACTERS", 5 * 512 + (1 << 14))
    text = GERMAN * 1000
    await detection.detect([text], ["de", "en"], mime_type)

    with pytest.raises(Overloaded):
        await detection.detect([text, "."], ["de", "en"], mime_type)
