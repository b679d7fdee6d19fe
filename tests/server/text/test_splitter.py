import asyncio
import dataclasses
import threading
import time
from pathlib import Path

import pytest
import pytest_asyncio

from server.bundle.tokenizer import Tokenizer
from server.errors import DeadlineExceeded, InvalidRequest, Overloaded
from server.text import splitter
from server.text.sentences import SplitText
from server.text.splitter import MAX_SENTENCES, MAX_TEXT_BYTES, Splitter
from server.translation.job import ServedModel
from tests.server.conftest import EOS, VOCAB_SIZE

LONG = "A dog runs. " * 1000


class HaltingTokenizer(Tokenizer):
    """Counts the sentences, and halts in the first until `may_go_on`."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, vocab_size=VOCAB_SIZE, eos_id=EOS)
        self.num_sentences = 0
        self.started = asyncio.Event()
        self.may_go_on = threading.Event()
        self._loop = asyncio.get_running_loop()

    def encode(self, text: str) -> tuple[int, ...]:
        self.num_sentences += 1
        self._loop.call_soon_threadsafe(self.started.set)
        assert self.may_go_on.wait(10)
        return super().encode(text)


@pytest_asyncio.fixture
async def halting(tokenizer_path: Path) -> HaltingTokenizer:
    return HaltingTokenizer(tokenizer_path)


@pytest.fixture
def halting_model(model: ServedModel, halting: HaltingTokenizer) -> ServedModel:
    return dataclasses.replace(model, tokenizer=halting)


@pytest.fixture
def later() -> float:
    return time.monotonic() + 60


def num_sentences(text: SplitText | InvalidRequest) -> int | None:
    return len(text.sentences) if isinstance(text, SplitText) else None


async def test_a_request_has_room_for_so_many_sentences(model: ServedModel, later: float) -> None:
    full = "1\n" * (MAX_SENTENCES - 1)

    texts = await Splitter().split(model, [full, "1\n" * (MAX_TEXT_BYTES // 2), "1", "2"], "en", later)

    assert [num_sentences(text) for text in texts] == [MAX_SENTENCES - 1, None, 1, None]
    assert str(texts[1]) == f"contents[1]: makes more than 1 sentences; a request has room for {MAX_SENTENCES}"


async def test_a_text_of_too_many_sentences_is_not_split_to_its_end(
    halting_model: ServedModel, halting: HaltingTokenizer, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    monkeypatch.setattr(splitter, "MAX_SENTENCES", 10)
    halting.may_go_on.set()

    (text,) = await Splitter().split(halting_model, ["a\n" * 10_000], "en", later)

    assert isinstance(text, InvalidRequest)
    assert halting.num_sentences == 11


async def test_splitting_ends_when_the_caller_leaves(
    halting_model: ServedModel, halting: HaltingTokenizer, later: float
) -> None:
    splitting = asyncio.create_task(Splitter().split(halting_model, [LONG, LONG], "en", later))
    await halting.started.wait()

    splitting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await splitting
    halting.may_go_on.set()
    await asyncio.get_running_loop().shutdown_default_executor()

    assert halting.num_sentences < 3


async def test_splitting_ends_when_the_deadline_passes(halting_model: ServedModel, halting: HaltingTokenizer) -> None:
    halting.may_go_on.set()

    with pytest.raises(DeadlineExceeded):
        await Splitter().split(halting_model, [LONG], "en", time.monotonic())

    assert halting.num_sentences == 0


async def test_too_much_text_at_once_is_refused(
    halting_model: ServedModel, halting: HaltingTokenizer, monkeypatch: pytest.MonkeyPatch, later: float
) -> None:
    monkeypatch.setattr(splitter, "MAX_CHARACTERS", 2 * len(LONG))
    shared = Splitter()
    splitting = asyncio.create_task(shared.split(halting_model, [LONG], "en", later))
    await halting.started.wait()

    with pytest.raises(Overloaded) as caught:
        await shared.split(halting_model, [LONG, "x"], "en", later)
    halting.may_go_on.set()
    await splitting
    texts = await shared.split(halting_model, [LONG, LONG], "en", later)

    assert caught.value.retry_after_seconds > 0
    assert str(len(LONG)) in str(caught.value)
    assert [num_sentences(text) for text in texts] == [1000, 1000]
