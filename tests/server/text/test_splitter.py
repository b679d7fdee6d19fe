import asyncio
import itertools
import os
import threading
import time
from collections.abc import Iterable

import pytest
import pytest_asyncio

from server.bundle.manifest import TOKENIZER_FILE, Manifest
from server.bundle.tokenizer import Tokenizer
from server.errors import DeadlineExceeded, InvalidRequest, Overloaded
from server.text import splitter
from server.text.glossary import Glossary
from server.text.markup.html import read_html
from server.text.source import SplitText
from server.text.splitter import MAX_SENTENCES, MAX_TEXT_BYTES, SplitRules, Splitter
from server.text.term_table import Term
from server.threads import SPLITTER_NICENESS

LONG = "A dog runs. " * 1000


class HaltingTokenizer(Tokenizer):
    """Counts the sentences, and halts in the first until `may_go_on`."""

    def __init__(self, manifest: Manifest, model: bytes) -> None:
        super().__init__(manifest, {TOKENIZER_FILE: model}.__getitem__)
        self.num_sentences = 0
        self.started = asyncio.Event()
        self.may_go_on = threading.Event()
        self._loop = asyncio.get_running_loop()

    def encode(self, text: str, prefix: tuple[int, ...] = ()) -> tuple[int, ...]:
        self.num_sentences += 1
        self._loop.call_soon_threadsafe(self.started.set)
        assert self.may_go_on.wait(10)
        return super().encode(text, prefix)


@pytest_asyncio.fixture
async def halting(manifest: Manifest, tokenizer_model: bytes) -> HaltingTokenizer:
    return HaltingTokenizer(manifest, tokenizer_model)


def rules(tokenizer: Tokenizer) -> Iterable[SplitRules]:
    return itertools.repeat(SplitRules("en", tokenizer.encode, 64))


@pytest.fixture
def later() -> float:
    return time.monotonic() + 60


def num_sentences(texts: list[SplitText]) -> list[int]:
    return [len(text.sentences) for text in texts]


async def test_a_sentence_that_is_a_term_needs_no_model(tokenizer: Tokenizer, later: float) -> None:
    glossary = Glossary([Term(("dog",), ("Hund",)), Term(("3 dogs",), ("3 Hunde",))])
    with_terms = SplitRules("en", tokenizer.encode, 64, glossary=glossary)

    (split,) = await Splitter().split(["Dog\nA dog runs.\ncat"], itertools.repeat(with_terms), later)

    assert [sentence.written for sentence in split.sentences] == ["Hund", None, None]
    assert [sentence.source_ids is None for sentence in split.sentences] == [True, False, False]
    assert [len(sentence.terms) for sentence in split.sentences] == [1, 1, 0]


async def test_a_request_has_room_for_so_many_sentences(tokenizer: Tokenizer, later: float) -> None:
    full = "1\n" * (MAX_SENTENCES - 1)

    texts = await Splitter().split([full, "1\n" * (MAX_TEXT_BYTES // 2), "1", "2"], rules(tokenizer), later)

    assert num_sentences(texts) == [MAX_SENTENCES - 1, 0, 1, 0]
    assert [text.error is None for text in texts] == [True, False, True, False]
    assert str(texts[1].error) == f"contents[1]: makes more than 1 sentences; a request has room for {MAX_SENTENCES}"


async def test_a_text_of_too_many_sentences_is_not_split_to_its_end(
    halting: HaltingTokenizer, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    monkeypatch.setattr(splitter, "MAX_SENTENCES", 10)
    halting.may_go_on.set()

    (text,) = await Splitter().split(["ab\n" * 10_000], rules(halting), later)

    assert isinstance(text.error, InvalidRequest)
    assert halting.num_sentences == 11


async def test_texts_of_too_many_sentences_cost_no_more_than_a_few_such(
    halting: HaltingTokenizer, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    monkeypatch.setattr(splitter, "MAX_SENTENCES", 10)
    monkeypatch.setattr(splitter, "MAX_SEEN", 20)
    halting.may_go_on.set()

    texts = await Splitter().split(["ab", *["ab\n" * 1000] * 100, "ab"], rules(halting), later)

    assert num_sentences(texts) == [1, *[0] * 101]
    assert halting.num_sentences == 1 + 2 * 10
    assert str(texts[-1].error) == "contents[101]: is not split: the texts before it make more than 20 sentences"


async def test_splitting_ends_when_the_caller_leaves(halting: HaltingTokenizer, later: float) -> None:
    splitting = asyncio.create_task(Splitter().split([LONG, LONG], rules(halting), later))
    await halting.started.wait()

    splitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await splitting
    halting.may_go_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()

    assert halting.num_sentences < 3


async def test_splitting_ends_when_the_deadline_passes(halting: HaltingTokenizer) -> None:
    halting.may_go_on.set()

    with pytest.raises(DeadlineExceeded):
        await Splitter().split([LONG], rules(halting), time.monotonic())

    assert halting.num_sentences == 0


async def test_too_much_text_at_once_is_refused(
    halting: HaltingTokenizer, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    monkeypatch.setattr(splitter, "MAX_CHARACTERS", 2 * len(LONG))
    shared = Splitter()
    splitting = asyncio.create_task(shared.split([LONG], rules(halting), later))
    await halting.started.wait()

    with pytest.raises(Overloaded) as caught:
        await shared.split([LONG, "x"], rules(halting), later)
    halting.may_go_on.set()
    await splitting
    texts = await shared.split([LONG, LONG], rules(halting), later)

    assert (caught.value.reason, caught.value.retry_after_seconds > 0) == ("splitting", True)
    assert str(len(LONG)) in str(caught.value)
    assert num_sentences(texts) == [1000, 1000]


async def test_a_long_request_rests_after_each_piece_once_it_takes_long(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    slept: list[float] = []
    worked = itertools.count(step=0.001)
    monkeypatch.setattr(time, "thread_time", lambda: next(worked))
    monkeypatch.setattr(time, "sleep", slept.append)

    (text,) = await Splitter().split([LONG], rules(tokenizer), later)

    assert len(text.sentences) == 1000
    assert 300 < len(slept) < 600, "of 1,000 pieces of a millisecond, the first hundred are free"
    assert set(slept) == {0.008}


async def test_who_splits_long_texts_lets_others_go_first(tokenizer: Tokenizer, later: float) -> None:
    seen: set[int] = set()

    def encode(text: str) -> tuple[int, ...]:
        seen.add(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))
        return tokenizer.encode(text)

    await Splitter().split([LONG], [SplitRules("en", encode, 64)], later)

    assert min(seen) >= SPLITTER_NICENESS


def html_rules(tokenizer: Tokenizer) -> Iterable[SplitRules]:
    return itertools.repeat(SplitRules("en", tokenizer.encode, 64, read=read_html))


async def test_a_request_has_room_for_so_many_pieces_of_markup(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    monkeypatch.setattr(splitter, "MAX_PIECES", 1000)
    tags = "A dog runs." + "<img>" * 600

    texts = await Splitter().split([tags, tags, "A dog runs."], html_rules(tokenizer), later)

    assert num_sentences(texts) == [1, 0, 1]
    assert "contents[1]: has more than 399 pieces of markup; a request has room for 1000" in str(texts[1].error)


async def test_a_document_is_not_read_when_the_deadline_has_passed(tokenizer: Tokenizer) -> None:
    with pytest.raises(DeadlineExceeded):
        await Splitter().split(["<img>" * 1000], html_rules(tokenizer), time.monotonic())


async def test_reading_a_long_document_rests(
    tokenizer: Tokenizer, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    slept: list[float] = []
    worked = itertools.count(step=0.01)
    monkeypatch.setattr(time, "thread_time", lambda: next(worked))
    monkeypatch.setattr(time, "sleep", slept.append)

    await Splitter().split(["<img>" * 10_000], html_rules(tokenizer), later)

    assert len(slept) > 10
