"""Documents that are read and written by real processes."""

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Iterator
from typing import IO

import pytest

from server.children import Bounds, Ended
from server.documents.parsing import BadDocument, Parser
from server.errors import NotServing
from tests.babelserve.formats.files import members, word
from tests.children import children
from tests.server.models.administered import until


@contextlib.contextmanager
def opened(data: bytes) -> Iterator[IO[bytes]]:
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.flush()
        yield file


async def test_a_document_is_read_and_written() -> None:
    parser = Parser(1)
    with opened(word("One", "Two & three")) as source:
        parsed = await parser.read("docx", source)
        written, num_unfit = await parser.write("docx", source, ["Eins", None], "de")
        with written:
            written.seek(0)
            body = members(written.read())["word/document.xml"].decode()

    assert parsed == ("text/html", ["One", "Two &amp; three"])
    assert num_unfit == 0
    assert "Eins</w:t>" in body
    assert "Two &amp; three</w:t>" in body


async def test_translations_that_do_not_fit_are_counted() -> None:
    with opened(word("One", "Two", "Three")) as source:
        written, num_unfit = await Parser(1).write("docx", source, ["Eins</b>", None, "Drei"], "de")
        with written:
            written.seek(0)
            body = members(written.read())["word/document.xml"].decode()

    assert num_unfit == 1
    assert all(f"{text}</w:t>" in body for text in ("One", "Two", "Drei"))


@pytest.mark.parametrize("num_unfit", [-1, 2, 1e400, "1", None])
async def test_a_child_is_not_believed_what_cannot_be(monkeypatch: pytest.MonkeyPatch, num_unfit: object) -> None:
    async def say(*_: object, **__: object) -> Ended:
        return Ended(json.dumps({"fault": None, "num_unfit": num_unfit}).encode(), 0, False)

    monkeypatch.setattr("server.documents.parsing.run_child", say)
    with opened(b"One\nTwo") as source, pytest.raises(BadDocument, match="makes its reader fail"):
        await Parser(1).write("text", source, ["Eins", None], "de")


async def test_who_cancels_leaves_no_process_and_frees_its_place() -> None:
    parser, before = Parser(1), children()
    with opened(b"Hello") as source:
        reading = asyncio.create_task(parser.read("text", source))
        await until(lambda: bool(children() - before))
        begun = children() - before
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
        assert not children() & begun
        assert (await parser.read("text", source)).texts == ["Hello"]


async def test_only_so_many_processes_run_at_once() -> None:
    parser, before, most = Parser(2), children(), 0
    with opened(b"Hello") as source:
        reading = asyncio.gather(*(parser.read("text", source) for _ in range(6)))
        while not reading.done():
            most = max(most, len(children() - before))
            await asyncio.sleep(0.002)

    assert most == 2


async def test_what_takes_too_long_or_too_much_memory_is_ended() -> None:
    with opened(b"Hello") as source, pytest.raises(BadDocument, match="takes more than 0 s to read"):
        await Parser(1, Bounds(0.01, None)).read("text", source)
    long = b"[" + b'"a b",' * 400_000 + b'"a"]'
    with opened(long) as source, pytest.raises(BadDocument, match=r"takes too much memory|makes its reader fail"):
        await Parser(1, Bounds(60, 48 << 20)).read("json", source)


async def test_a_machine_without_room_for_processes_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/nowhere/python")

    with opened(b"Hello") as source, pytest.raises(NotServing, match="no process can be started to read documents"):
        await Parser(1).read("text", source)
