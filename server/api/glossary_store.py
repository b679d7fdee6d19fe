"""The use cases of `babelserve.v1.GlossaryStore`, whatever carries the messages.

A tenant may keep 100,000 terms. They are read and written on other threads, so that other callers need not wait.
"""

import asyncio
import functools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from babelserve.v1 import glossary_store_pb2 as pb
from server.access.tenants import caller
from server.errors import InvalidRequest
from server.models.kept_glossaries import GivenDictionary, KeptGlossaries, KeptGlossary
from server.threads import LANE_NICENESS, be_nice, whole
from server.translation.memory import MemoryBudget

_MAX_DICTIONARIES = 1000  # of a glossary; each has at least one term

_T = TypeVar("_T")


class GlossaryStore:
    """Answers messages. `seconds`, what the caller still waits, changes nothing.

    Args:
        kept: has the glossaries.
        memory: counts the memory of all requests.
    """

    def __init__(self, kept: KeptGlossaries, memory: MemoryBudget) -> None:
        self._kept = kept
        self._memory = memory
        # One thread, and one glossary at a time: all other work on threads has them for itself.
        self._writer = ThreadPoolExecutor(1, "glossary-writer", functools.partial(be_nice, LANE_NICENESS))
        self._turn = asyncio.Lock()

    async def put(self, message: pb.PutKeptGlossaryRequest, _: float | None = None) -> pb.KeptGlossary:
        """Keeps a glossary. Raises TranslationError; see `KeptGlossaries.put`."""
        given = message.glossary
        if (number := len(given.dictionaries)) > _MAX_DICTIONARIES:
            raise InvalidRequest("glossary.dictionaries", f"must be at most {_MAX_DICTIONARIES}, not {number}")
        dictionaries = [
            GivenDictionary(
                each.source_language_code,
                each.target_language_code,
                ((term.source, term.target) for term in each.terms),
            )
            for each in given.dictionaries
        ]
        kept = await self._kept.put(
            caller.get().name, given.title, dictionaries, identity=given.id, revision=given.revision
        )
        return _message(kept)

    async def get(self, message: pb.GetKeptGlossaryRequest, _: float | None = None) -> pb.KeptGlossary:
        """Returns a glossary, with its terms unless the request wants none. Raises as `read` does."""
        if message.without_terms:
            return _message(self._kept.get(caller.get().name, message.id))
        return await self.read(message, lambda glossary: glossary)

    async def read(self, message: pb.GetKeptGlossaryRequest, read: Callable[[pb.KeptGlossary], _T]) -> _T:
        """Returns what a function returns that takes the glossary with its terms, on another thread.

        Raises:
            GlossaryNotFound: there is none.
            TranslationError: there is no memory, as of `MemoryBudget.hold`; or the function raises it.
        """
        kept = self._kept.get(caller.get().name, message.id)
        async with self._turn:
            with self._memory.hold(kept.num_bytes, is_more=True):
                return await whole(self._writer.submit(lambda: read(_with_terms(kept))))

    async def list(self, _: pb.ListKeptGlossariesRequest, __: float | None = None) -> pb.ListKeptGlossariesResponse:
        """Returns the caller's glossaries without their terms, the oldest first."""
        return pb.ListKeptGlossariesResponse(glossaries=map(_message, self._kept.all_of(caller.get().name)))

    async def delete(
        self, message: pb.DeleteKeptGlossaryRequest, _: float | None = None
    ) -> pb.DeleteKeptGlossaryResponse:
        """Forgets a glossary. Raises GlossaryNotFound."""
        self._kept.delete(caller.get().name, message.id)
        return pb.DeleteKeptGlossaryResponse()


def _with_terms(kept: KeptGlossary) -> pb.KeptGlossary:
    answer = _message(kept)
    for dictionary, own in zip(answer.dictionaries, kept.dictionaries, strict=True):
        for source, target in own.terms.items():
            dictionary.terms.add(source=source, target=target)
    return answer


def _message(kept: KeptGlossary) -> pb.KeptGlossary:
    """Returns a glossary without its terms."""
    return pb.KeptGlossary(
        id=kept.identity,
        title=kept.title,
        create_time_ms=int(kept.create_time * 1000),
        revision=kept.revision,
        dictionaries=[
            pb.Dictionary(
                source_language_code=each.compiled.source,
                target_language_code=each.compiled.target,
                num_terms=len(each.terms),
                glossary_name=each.compiled.name,
            )
            for each in kept.dictionaries
        ],
    )
