"""Keeps the documents of all callers, within bounds. They are gone when the server ends."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import IO

from babelserve.v1 import translation_pb2 as pb
from server.documents.formats import extension_of, plain_name
from server.documents.job import Job, run
from server.documents.parsing import Parser
from server.errors import Code, InvalidRequest, Overloaded, TranslationError
from server.fronts.backend import Backend, Caller
from server.models.machine import usable_cores

MAX_FILE_BYTES = (
    16 << 20
)  # half refuses presentations with pictures; twice, and four uploads fill the memory for bodies


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is kept.

    Attributes:
        of_owner: documents of one tenant, or of one address without a tenant. Where they are as many, the one that
            ended first gives way. Half, and a folder that is dropped on the page is refused. Twice, and one caller may
            have so many texts under way.
        in_all: documents. Half, and six busy callers fill it; twice, and each has its texts in memory.
        num_bytes: of all files. It is room in the folder for temporary files, which may be memory.
        owner_bytes: of the files of one owner, so that slow downloads of one leave room to others. Half, and four
            long presentations fill it. Twice, and one owner fills all.
        seconds: for which a result is kept. Half, and people come back too late; twice, and texts stay for longer.
    """

    of_owner: int = 16
    in_all: int = 100
    num_bytes: int = 256 << 20
    owner_bytes: int = 128 << 20
    seconds: float = 1800.0


class DocumentNotFound(TranslationError):
    """There is no such document of this caller."""

    code = Code.NOT_FOUND

    def __init__(self, seconds: float) -> None:
        kept = (
            f"documents are kept for {seconds / 60:.0f} minutes after their end, and not over a restart of the server"
        )
        super().__init__(f"Document not found: {kept}")


class Documents:
    """Translates documents, on the event loop's thread.

    Args:
        backend: translates texts.
        limits: what is kept.
        parser: reads and writes; by default in one process for each core that this process may keep busy.
    """

    def __init__(self, backend: Backend, limits: Limits = Limits(), parser: Parser | None = None) -> None:
        self._backend = backend
        self._limits = limits
        self._parser = parser or Parser(usable_cores())
        self._jobs: dict[str, Job] = {}
        self._tasks: dict[Job, asyncio.Task[None]] = {}
        self._arriving: list[str] = []  # the owner of each file in memory whose options are being checked
        self._holding: set[Job] = set()  # whose files may be open, forgotten ones as well

    async def start(self, name: str, data: bytes, options: pb.TranslateRequest, caller: Caller) -> Job:
        """Begins to translate a file.

        Args:
            name: of the file, as the caller has it.
            data: all of it.
            options: what its texts ask for, without texts. Without a source language it is detected.
            caller: who calls; the texts are translated as calls of the same caller.

        Raises:
            InvalidRequest: the format, the size or an option is wrong.
            Overloaded: too many documents are under way, or a request would be refused now.
            TranslationError: as `Backend.translate`.
        """
        owner = await self._backend.identify(caller)
        if not 0 < len(data) <= MAX_FILE_BYTES:
            raise InvalidRequest("file", f"must have 1 to {MAX_FILE_BYTES} bytes, not {len(data)}")
        extension = extension_of(name, data)
        probe = pb.TranslateRequest()
        probe.CopyFrom(options)
        probe.contents[:] = [""]
        with self._arriving_of(owner):
            await self._backend.translate(probe, caller)  # so that wrong options are refused at once
        self._make_room(owner, len(data))
        source = tempfile.TemporaryFile()  # noqa: SIM115 # the job closes it
        job = Job(
            owner=owner,
            caller=replace(caller, seconds=None),
            name=plain_name(name, extension),
            extension=extension,
            source=source,
            num_bytes=len(data),
            options=options,
        )
        self._jobs[job.identity] = job
        self._holding.add(job)
        try:
            await asyncio.to_thread(_fill, source, data)
        except BaseException:  # the caller has left, or the disk is full
            self.forget(job)
            raise
        if job.identity in self._jobs:
            task = self._tasks[job] = asyncio.create_task(run(job, self._backend, self._parser))
            task.add_done_callback(lambda _: self._end(job))
        return job

    async def find(self, identity: str, caller: Caller) -> Job:
        """Returns a document of the caller. Raises DocumentNotFound, or TranslationError if the caller may not call."""
        owner = await self._backend.identify(caller)
        job = self.find_open(identity)
        if job.owner != owner:
            raise DocumentNotFound(self._limits.seconds)
        return job

    def find_open(self, identity: str) -> Job:
        """Returns a document, whoever asks: an identity cannot be guessed. Raises DocumentNotFound."""
        job = self._jobs.get(identity.lower())
        if job is None:
            raise DocumentNotFound(self._limits.seconds)
        return job

    def forget(self, job: Job) -> None:
        """Ends a document's work, if it is not at its end, and forgets it. Callers that wait for it get a failure."""
        self._jobs.pop(job.identity, None)
        job.give_up()
        task = self._tasks.pop(job, None)
        if task is not None:
            task.cancel()  # `_end` closes the files then
        else:
            job.close()

    async def close(self) -> None:
        """Forgets all documents. The processes have ended when it returns."""
        tasks = list(self._tasks.values())
        for job in list(self._jobs.values()):
            self.forget(job)
        if tasks:
            await asyncio.wait(tasks)

    @contextlib.contextmanager
    def _arriving_of(self, owner: str) -> Iterator[None]:
        """Counts a file until the block ends. Raises Overloaded if too many of its owner's have not ended."""
        running = [job for job in self._jobs.values() if job.owner == owner and not job.ended.is_set()]
        num_running = len(running) + self._arriving.count(owner)
        if num_running >= self._limits.of_owner:
            raise Overloaded(f"{num_running} documents of this caller are under way", "memory", 5.0)
        self._arriving.append(owner)
        try:
            yield
        finally:
            self._arriving.remove(owner)

    def _end(self, job: Job) -> None:
        self._tasks.pop(job, None)
        if job.identity not in self._jobs:
            job.close()
            return
        self._jobs[job.identity] = self._jobs.pop(job.identity)  # results stand in the order of their ends
        asyncio.get_running_loop().call_later(self._limits.seconds, self.forget, job)

    def _make_room(self, owner: str, num_bytes: int) -> None:
        """Forgets results so that a new document has room. If all of them are too few, it forgets none.

        At the limits of an owner, the caller's own results give way, at the limit of all documents results of the owner
        that has the most, and at that of bytes those of the owner whose files have the most. An owner other than the
        caller must have more documents than the caller has, or more bytes than the caller would have with the new one.

        Raises:
            Overloaded: too few documents have ended.
        """
        own = [job for job in self._jobs.values() if job.owner == owner]
        leaving = []
        if len(own) >= self._limits.of_owner:  # which are not all under way: see `_arriving_of`
            leaving = [job for job in own if job.ended.is_set()][:1]
        elif len(self._jobs) >= self._limits.in_all:
            held = Counter(job.owner for job in self._jobs.values())
            results = [job for job in self._jobs.values() if job.ended.is_set()]
            larger = [job for job in results if job.owner == owner or held[job.owner] > held[owner]]
            if not larger:
                raise Overloaded(f"the server keeps {len(self._jobs)} documents", "memory", 5.0)
            leaving = [max(larger, key=lambda job: held[job.owner])]
        for job in leaving + self._leaving_for_bytes(leaving, owner, num_bytes):
            self.forget(job)

    def _leaving_for_bytes(self, leaving: Sequence[Job], owner: str, num_bytes: int) -> list[Job]:
        """Returns the results that must leave, besides others, so that the bytes of a new document have room."""
        self._holding = {job for job in self._holding if job.num_bytes}
        staying = self._holding - {job for job in leaving if not job.num_readers}  # what somebody reads stays
        held = Counter({owner: num_bytes})  # bytes by owner
        for job in staying:
            held[job.owner] += job.num_bytes
        results = [job for job in self._jobs.values() if job in staying and job.ended.is_set() and not job.num_readers]
        found = []
        while (is_own := held[owner] > self._limits.owner_bytes) or held.total() > self._limits.num_bytes:
            larger = [job for job in results if job.owner == owner or (not is_own and held[job.owner] > held[owner])]
            if not larger:
                whose, most = ("of this caller ", self._limits.owner_bytes) if is_own else ("", self._limits.num_bytes)
                raise Overloaded(f"documents {whose}hold {most >> 20} MiB", "memory", 5.0)
            found.append(max(larger, key=lambda job: held[job.owner]))
            results.remove(found[-1])
            held[found[-1].owner] -= found[-1].num_bytes
        return found


def _fill(file: IO[bytes], data: bytes) -> None:
    file.write(data)
    file.flush()
