import asyncio
import os
import tempfile
from typing import Any

import pytest
from starlette.types import Message

from babelserve.v1 import translation_pb2 as pb
from server.documents.job import Job, State
from server.errors import InvalidRequest
from server.fronts.backend import Caller
from server.web import files
from server.web.exchange import CHUNK_BYTES
from server.web.files import FileResponse, read_file
from server.web.parts import File


def test_a_file_has_a_name_and_a_content() -> None:
    assert read_file({"file": [File("a.txt", b"A")]}) == ("a.txt", b"A")
    assert read_file({"file": [File("file", b"A")], "filename": ["b.txt"]}) == ("b.txt", b"A")
    assert read_file({"file": [File("a.txt", b"A")], "filename": [File("b", b"")]}) == ("a.txt", b"A")
    assert read_file({"file": ["Ä"]}) == ("", "Ä".encode())


@pytest.mark.parametrize("values", [[], [1], [None], ["a", "b"], [[]]])
def test_anything_else_is_refused(values: list[object]) -> None:
    with pytest.raises(InvalidRequest, match=r"file: must be one file in a form of parts, not \d"):
        read_file({"file": values})


async def never() -> Message:
    raise AssertionError("nothing is received while a file is sent")


def job_of(content: bytes) -> Job:
    """A document whose result has this content."""
    caller, options = Caller(front="http", request_id="my-id"), pb.TranslateRequest()
    source, result = tempfile.TemporaryFile(), tempfile.TemporaryFile()  # noqa: SIM115 # the job closes them
    result.write(content)
    result.flush()
    job = Job(
        owner="a",
        caller=caller,
        name="a.txt",
        extension="txt",
        source=source,
        num_bytes=len(content),
        options=options,
    )
    job.state, job.result = State.DONE, result
    job.ended.set()
    return job


def forget(job: Job) -> None:
    job.give_up()
    job.close()


async def test_a_file_is_read_while_it_is_sent_even_if_it_is_forgotten_meanwhile() -> None:
    sent: list[Any] = []
    job = job_of(b"a" * (2 * CHUNK_BYTES + 1))
    assert job.result is not None
    response = FileResponse(job)

    async def send(message: Message) -> None:
        sent.append(message)
        if len(sent) == 2:  # the head and the first piece
            assert job.result is not None
            os.pwrite(job.result.fileno(), b"b" * CHUNK_BYTES, CHUNK_BYTES)
            forget(job)
            assert job.num_bytes == 2 * CHUNK_BYTES + 1

    await response({"type": "http"}, never, send)

    head, *pieces = sent
    assert (b"content-length", str(2 * CHUNK_BYTES + 1).encode()) in head["headers"]
    assert [each["body"] for each in pieces] == [b"a" * CHUNK_BYTES, b"b" * CHUNK_BYTES, b"a", b""]
    assert [each.get("more_body", False) for each in pieces] == [True, True, True, False]
    assert (job.result.closed, job.num_bytes) == (True, 0)


async def test_a_long_file_may_take_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "SEND_SECONDS", 0.2)
    ends: list[str] = []
    state = {"abort": lambda: ends.append("cut")}

    async def send(message: Message) -> None:
        if message["type"] == "http.response.start":
            await asyncio.sleep(0.5)
        elif not message.get("more_body", False):
            ends.append("sent")

    for num_bytes in (1 << 20, 64 << 20):
        job = job_of(bytes(num_bytes))
        await FileResponse(job)({"state": state}, never, send)
        forget(job)

    assert ends == ["cut", "sent"]
