"""A request's texts into sentences, within the limits of a request, and without stalling the event loop.

Splitting is work in Python under the interpreter's lock: some seconds for the longest request. So it is done on other
threads, ends when nobody waits for it any more, and is refused when too much of it is under way.
"""

import asyncio
import threading
import time
from collections.abc import Callable, Sequence

from server.errors import DeadlineExceeded, InvalidRequest, Overloaded
from server.text.sentences import SplitText, split_text
from server.translation.job import ServedModel

MAX_TEXT_BYTES = 2 << 20
MAX_SENTENCES = 1 << 15  # of one request: each costs memory and the event loop's time; 2 MiB of prose have about 25,000
MAX_CHARACTERS = 16 << 20  # of all requests that are being split; one message has at most 8 MiB
_SHORT_CHARACTERS = 2000  # splitting less than that is not worth another thread
_RETRY_AFTER_SECONDS = 1.0


class Splitter:
    """Splits texts, and knows how much is being split. To be used on the event loop's thread."""

    def __init__(self) -> None:
        self._num_characters = 0  # that are being split on other threads

    async def split(
        self, model: ServedModel, texts: Sequence[str], language: str, deadline: float
    ) -> list[SplitText | InvalidRequest]:
        """Splits each text; one that breaks a limit becomes its error.

        Args:
            model: whose tokenizer and limits apply.
            texts: any texts.
            language: BCP-47 code of the texts.
            deadline: instant of `time.monotonic`.

        Raises:
            Overloaded: too much is being split already.
            DeadlineExceeded: the deadline passed.
        """
        num_characters = sum(map(len, texts))
        if num_characters <= _SHORT_CHARACTERS:
            return _split_texts(model, texts, language, lambda: False)
        if self._num_characters + num_characters > MAX_CHARACTERS:
            message = f"{self._num_characters} characters are being split into sentences, limit {MAX_CHARACTERS}"
            raise Overloaded(message, _RETRY_AFTER_SECONDS)
        has_left = threading.Event()
        self._num_characters += num_characters
        try:
            return await asyncio.to_thread(
                _split_texts, model, texts, language, lambda: has_left.is_set() or time.monotonic() >= deadline
            )
        finally:
            has_left.set()
            self._num_characters -= num_characters


def _split_texts(
    model: ServedModel, texts: Sequence[str], language: str, is_over: Callable[[], bool]
) -> list[SplitText | InvalidRequest]:
    split: list[SplitText | InvalidRequest] = []
    room = MAX_SENTENCES
    for index, text in enumerate(texts):
        try:
            parts = _split_text(model, f"contents[{index}]", text, language, room, is_over)
        except InvalidRequest as error:
            split.append(error)
        else:
            split.append(parts)
            room -= len(parts.sentences)
    return split


def _split_text(
    model: ServedModel, field: str, text: str, language: str, room: int, is_over: Callable[[], bool]
) -> SplitText:
    # No character takes more than 4 bytes, so most texts need not be encoded to know.
    if len(text) * 4 > MAX_TEXT_BYTES and (num_bytes := len(text.encode())) > MAX_TEXT_BYTES:
        raise InvalidRequest(field, f"must be at most {MAX_TEXT_BYTES} bytes of UTF-8, not {num_bytes}")

    def watch(num_sentences: int) -> None:
        if num_sentences > room:
            raise InvalidRequest(field, f"makes more than {room} sentences; a request has room for {MAX_SENTENCES}")
        if is_over():
            raise DeadlineExceeded("the time was over before the translation could start")

    return split_text(text, language, model.tokenizer.encode, model.manifest.limits.max_source_tokens, watch)
