"""Translates shards with models of its own: the server's translator, without a server round it.

The texts of all shards go through one bulk call (`server.translation.bulk`), so that the lanes have work while a shard
ends and the next begins. The output of a shard is written when its last text is answered.
"""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from prometheus_client import CollectorRegistry

from babelserve.v1.translation_pb2 import TranslateRequest
from server.access.tenants import ANONYMOUS
from server.api.messages import read_request
from server.bulk.cell import Cell
from server.bulk.job import Job, Shard
from server.errors import InvalidRequest, TranslationError
from server.models.loading import process_memory
from server.models.machine import resident_bytes
from server.models.start_up import growth_of, new_catalogue, open_models, serve_models
from server.telemetry.metrics import Metrics
from server.threads import tune_interpreter
from server.translation.bulk import Bulk, BulkAnswer, BulkText
from server.translation.memory import MemoryBudget, requests_share
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

# Of a group of texts, which is one request. Half, and a text costs more beside its translation. Twice, and that changes
# little, while more texts wait for the last of their group.
_GROUP_TEXTS = 16
_GROUP_CHARACTERS = 2000  # more are split on a thread of their own, which takes longer


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A shard whose output is written.

    Attributes:
        rows: how many it has.
        tokens: of the translations.
    """

    rows: int
    tokens: int


@dataclass(slots=True)
class _Open:
    """A shard that is under way.

    Attributes:
        cells: of each row its text, and then the outcome.
        left: how many texts are not answered yet.
        tokens: of the translations so far.
    """

    shard: Shard
    rows: Any
    cells: list[Cell]
    left: int
    tokens: int = 0


class _Answer(NamedTuple):
    """What becomes of the row of a text: its cell, and the tokens of its translation."""

    identity: int
    cell: Cell
    tokens: int = 0


class Worker:
    """Models in this process. It blocks until they are loaded. It may be used on one thread.

    Args:
        job: what it translates.

    Raises:
        StartupError: the models cannot be loaded, or the job was begun with others.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._runner = asyncio.Runner()
        try:
            self._runner.run(self._load())
        except BaseException:
            self._runner.close()
            raise

    def run(self, shards: Iterable[Shard], tell: Callable[[Done], object]) -> None:
        """Translates shards and writes their outputs. After an error the worker can only be closed.

        Args:
            shards: are read one after another.
            tell: is called for each shard when its output is written.

        Raises:
            TranslationError: the job's options are wrong, or the engine is lost.
            OSError: an input cannot be read, or an output not written.
        """
        try:
            self._runner.run(self._run(shards, tell))
        except BaseException as error:
            self._runner.close()  # but no engine: its lanes may hang
            if isinstance(error, ExceptionGroup):  # of what ends a bulk call from within, such as an unreadable input
                raise error.exceptions[0] from error
            raise

    def close(self) -> None:
        """Ends the models' engines."""
        self._catalogue.stop()
        self._runner.close()

    async def _load(self) -> None:
        settings, metrics = self._job.settings, Metrics(CollectorRegistry())
        self._catalogue, loader = new_catalogue(settings, metrics)
        serve_models(self._catalogue, open_models(settings, metrics, loader))
        models = self._catalogue.models
        self._job.claim_models([f"{each.manifest.name} {each.variant} {each.sha256}" for each in models])
        growth = growth_of(models, settings)
        self._translator = Translator(
            self._catalogue,
            beam_size=settings.beam_size,
            max_request_seconds=settings.max_request_seconds,
            memory=MemoryBudget(requests_share(process_memory(settings), resident_bytes(), growth, 0)),
            metrics=metrics.access,
            pivots=settings.pivots,
        )
        tune_interpreter()

    async def _run(self, shards: Iterable[Shard], tell: Callable[[Done], object]) -> None:
        request = read_request(TranslateRequest.FromString(self._job.request), None, ANONYMOUS)
        of_text: dict[int, tuple[_Open, int]] = {}  # the shard and the row of each text, by its identity
        finished: list[_Open] = []

        async def finish() -> None:
            while finished:
                tell(await asyncio.to_thread(self._finish, finished.pop(0)))

        bulk = Bulk(self._translator, RunningCalls(), request, _write)
        async with contextlib.aclosing(bulk.answers(self._groups(shards, of_text, finished))) as answers:
            async for answer in answers:
                opened, row = of_text.pop(answer.identity)
                opened.cells[row] = answer.cell
                opened.tokens += answer.tokens
                opened.left -= 1
                if not opened.left:
                    finished.append(opened)
                await finish()
        await finish()

    async def _groups(
        self, shards: Iterable[Shard], of_text: dict[int, tuple[_Open, int]], finished: list[_Open]
    ) -> AsyncIterator[list[BulkText]]:
        """Yields the texts of all shards, and notes where each belongs. A shard without any is finished at once."""
        identities = itertools.count()
        for shard in shards:
            rows, cells = await asyncio.to_thread(self._job.read, shard)
            texts = [(row, cell.text) for row, cell in enumerate(cells) if cell.text is not None]
            texts.sort(key=lambda each: len(each[1]), reverse=True)  # texts of one length have no padding
            opened = _Open(shard, rows, cells, len(texts))
            if not texts:
                finished.append(opened)
            start = 0
            while start < len(texts):
                longest = max(1, len(texts[start][1]))
                end = start + max(1, min(_GROUP_TEXTS, _GROUP_CHARACTERS // longest))
                group = []
                for row, text in texts[start:end]:
                    identity = next(identities)
                    of_text[identity] = opened, row
                    group.append(BulkText(identity, text, len(text.encode())))
                yield group
                start = end

    def _finish(self, opened: _Open) -> Done:
        self._job.write(opened.shard, opened.rows, opened.cells)
        return Done(rows=len(opened.cells), tokens=opened.tokens)


async def _write(answer: BulkAnswer) -> _Answer:
    """Returns what becomes of a row. Raises TranslationError for what is no fault of the text."""
    job = answer.outcome
    if isinstance(job, InvalidRequest):
        return _Answer(answer.identity, Cell(None, str(job).replace("contents[0]", "text", 1)))
    if isinstance(job, TranslationError):
        raise job
    text = job.answers[answer.index]
    return _Answer(answer.identity, Cell(text.text(0)), text.num_target_tokens)
