"""A request's texts into sentences, within the limits of a request, and without stalling the event loop.

Splitting is work in Python under the interpreter's lock: some seconds for the longest request. So it is done on other
threads of low priority, ends when nobody waits for it any more, and is refused when too much of it is under way.
A request that takes long is split in short pieces with rests between them, in which others have the interpreter: on
one core, beside 52 calls of 4 MiB again and again, short calls' p95 was 0.8 to 2.1 times that of calm in nine runs
of ten, 8 in the other, and 1.5 to 20 times without rests (2026-11-24). What is to be translated for minutes may be
split for seconds.
"""

import asyncio
import functools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

from server.errors import DeadlineExceeded, InvalidRequest, Overloaded
from server.text.glossary import Glossary, translate_alone
from server.text.markup.document import Document, MalformedDocument, Read
from server.text.markup.marking import split_document
from server.text.masking import NO_MASKING, Masker
from server.text.pairs import find_terms
from server.text.sentences import Encode, split_text
from server.text.source import SplitText
from server.threads import SPLITTER_NICENESS, be_nice

MAX_TEXT_BYTES = 2 << 20
MAX_SENTENCES = 1 << 15  # of one request: each costs memory and the event loop's time; 2 MiB of prose have about 25,000
MAX_SEEN = 2 * MAX_SENTENCES  # of one request, with those of texts that fail: each takes 5 us, however short it is
# Pieces of markup of one request: tags, and texts between them. Each takes up to 350 bytes and 20 us. Half as many, and
# files of 2 MiB with a tag for every 30 characters are refused; twice that, and four such requests take 360 MB.
MAX_PIECES = 1 << 17
MAX_CHARACTERS = 16 << 20  # of all requests that are being split; one message has at most 4 MiB
_SHORT_CHARACTERS = 2000  # splitting less than that is not worth another thread
_NUM_THREADS = 5  # so that one is left beside four of the longest requests, which `MAX_CHARACTERS` allow
_FREE_SECONDS = 0.1  # of work without a rest: some 300,000 characters
_PIECE_SECONDS = 0.002  # of work between two rests
_REST_SECONDS = 0.008

IsOver = Callable[[], bool]
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class SplitRules:
    """How texts are split.

    Attributes:
        language: BCP-47 code of the texts.
        encode: a sentence's ids, eos and prefixes included.
        max_tokens: most ids of a sentence.
        num_added: ids of a sentence that are not its text's: eos and prefixes.
        masker: says what `encode` is shown of a sentence.
        read: reads a text that has markup; None for plain texts.
        glossary: finds the terms of a sentence; None for none.
    """

    language: str
    encode: Encode
    max_tokens: int
    num_added: int = 1
    masker: Masker = NO_MASKING
    read: Read | None = None
    glossary: Glossary | None = None


class Splitter:
    """Splits texts, and knows how much is being split. To be used on the event loop's thread."""

    def __init__(self) -> None:
        self._num_characters = 0  # that are being split on other threads
        self._threads = ThreadPoolExecutor(_NUM_THREADS, "splitter", functools.partial(be_nice, SPLITTER_NICENESS))
        self._rest = threading.Lock()  # held while a thread rests

    async def split(self, texts: Sequence[str], rules: Iterable[SplitRules], deadline: float) -> list[SplitText]:
        """Splits each text; one that breaks a limit has its error.

        Args:
            texts: any texts.
            rules: how, for each text.
            deadline: instant of `time.monotonic`.

        Raises:
            Overloaded: too much is being split already.
            DeadlineExceeded: the deadline passed.
        """
        return await self.work(sum(map(len, texts)), functools.partial(_split_texts, texts, rules), deadline)

    async def work(self, num_characters: int, work: Callable[[IsOver], _T], deadline: float) -> _T:
        """Returns what a function makes of texts, which is called on another thread if that takes long.

        Args:
            num_characters: of the texts.
            work: is given a function that it asks every few characters whether to stop, as nobody waits any more.
            deadline: instant of `time.monotonic`.

        Raises:
            Overloaded: too much is being split already.
        """
        if num_characters <= _SHORT_CHARACTERS:
            return work(lambda: False)
        if self._num_characters + num_characters > MAX_CHARACTERS:
            message = f"{self._num_characters} characters are being split into sentences, limit {MAX_CHARACTERS}"
            raise Overloaded(message, "splitting")
        has_left = threading.Event()
        self._num_characters += num_characters
        try:
            return await asyncio.get_running_loop().run_in_executor(
                self._threads,
                self._work_slowly,
                work,
                lambda: has_left.is_set() or time.monotonic() >= deadline,
            )
        finally:
            has_left.set()
            self._num_characters -= num_characters

    def _work_slowly(self, work: Callable[[IsOver], _T], is_over: IsOver) -> _T:
        """Works on this thread, which is one of the splitter's, with rests once that takes long."""
        rested = time.thread_time() + _FREE_SECONDS

        def rest() -> bool:
            nonlocal rested
            if time.thread_time() - rested >= _PIECE_SECONDS:
                with self._rest:  # one after the other, so that many at once have no more of the interpreter than one
                    time.sleep(_REST_SECONDS)
                rested = time.thread_time()
            return is_over()

        return work(rest)


def _split_texts(texts: Sequence[str], rules: Iterable[SplitRules], is_over: IsOver) -> list[SplitText]:
    split: list[SplitText] = []
    room = _Room(MAX_SENTENCES, MAX_SEEN, MAX_PIECES)
    for index, (text, own) in enumerate(zip(texts, rules, strict=False)):
        try:
            split.append(_split_text(f"contents[{index}]", text, own, room, is_over))
        except InvalidRequest as error:
            split.append(SplitText("", (), error))
        room.sentences -= len(split[-1].sentences)
    return split


@dataclass(slots=True)
class _Room:
    """How many more sentences a request may have, how many more are looked for, and how many more pieces of markup."""

    sentences: int
    seen: int
    pieces: int


def _split_text(field: str, text: str, rules: SplitRules, room: _Room, is_over: IsOver) -> SplitText:
    if room.seen <= 0:
        raise InvalidRequest(field, f"is not split: the texts before it make more than {MAX_SEEN} sentences")
    # No character takes more than 4 bytes, so most texts need not be encoded to know.
    if len(text) * 4 > MAX_TEXT_BYTES and (num_bytes := len(text.encode())) > MAX_TEXT_BYTES:
        raise InvalidRequest(field, f"must be at most {MAX_TEXT_BYTES} bytes of UTF-8, not {num_bytes}")

    seen_before = room.seen

    def watch(num_sentences: int) -> None:
        room.seen = seen_before - num_sentences
        if num_sentences > room.sentences:
            message = f"makes more than {room.sentences} sentences; a request has room for {MAX_SENTENCES}"
            raise InvalidRequest(field, message)
        _check_time(is_over)

    def split(plain: str, num_before: int = 0) -> SplitText:
        def watch_all(num_sentences: int) -> None:
            watch(num_before + num_sentences)

        plain_split = split_text(
            plain, rules.language, rules.encode, rules.max_tokens, watch_all, rules.num_added, rules.masker
        )
        return plain_split if rules.glossary is None else _with_terms(plain_split, rules.glossary, is_over)

    if rules.read is None:
        return split(text)
    look = functools.partial(_check_time, is_over)
    return split_document(_read(field, text, rules.read, room, is_over), split, look)


def _with_terms(split: SplitText, glossary: Glossary, is_over: IsOver) -> SplitText:
    sentences = []
    for sentence in split.sentences:
        _check_time(is_over)
        if sentence.source_ids is not None:
            masked = sentence.masked
            source, pairs = (masked.source, masked.pairs) if masked is not None else (sentence.text, ())
            terms = find_terms(glossary, source, pairs)
            written = translate_alone(sentence.text, terms) if source == sentence.text else None
            ids = sentence.source_ids if written is None else None
            sentence = replace(sentence, terms=terms, written=written, source_ids=ids)
        sentences.append(sentence)
    return replace(split, sentences=tuple(sentences))


def _read(field: str, text: str, read: Read, room: _Room, is_over: IsOver) -> Document:
    before = room.pieces

    def watch(num_pieces: int) -> None:
        room.pieces = max(0, before - num_pieces)
        if num_pieces > before:
            message = f"has more than {before} pieces of markup; a request has room for {MAX_PIECES}"
            raise InvalidRequest(field, message)
        _check_time(is_over)

    try:
        return read(text, watch)
    except MalformedDocument as error:
        raise InvalidRequest(field, str(error)) from error


def _check_time(is_over: IsOver) -> None:
    if is_over():
        raise DeadlineExceeded("the time was over before the translation could start")
