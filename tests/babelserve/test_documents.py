import gzip
import json
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from tqdm import tqdm

from babelserve import Client
from babelserve.documents import read_document, translate_document
from babelserve.formats.document import Document
from babelserve.job import translate_lines
from babelserve.journal import Journal
from babelserve.lines import MAX_TEXT_BYTES, Line, TranslatedLine
from babelserve.outputs import UsageError
from tests.babelserve.scripted_server import ScriptedService

SOURCE = '["one", "!INVALID_ARGUMENT too odd", "three", 4]'


def run(document: Document, journal: Journal, client: Client, told: list[str]) -> int:
    def translate(lines: Iterator[Line]) -> Iterator[list[TranslatedLine]]:
        return translate_lines(client, lines, target="de", batch_lines=1, in_flight=1, mime_type=document.mime_type)

    return translate_document(document, journal, "de", translate, tqdm(disable=True), told.append)


def test_a_file_is_translated_and_what_fails_stays(tmp_path: Path, client: Client, service: ScriptedService) -> None:
    (tmp_path / "in.json").write_text(SOURCE)
    document = read_document("json", tmp_path / "in.json")
    journal = Journal(tmp_path / "out.json", document.texts, "de")
    journal.open(resume=False)
    told: list[str] = []

    assert run(document, journal, client, told) == 1
    assert (tmp_path / "out.json").read_text() == SOURCE.replace("one", "ONE").replace("three", "THREE")
    assert told == [f"text 2: {grpc.StatusCode.INVALID_ARGUMENT.name}: too odd"]
    assert {request.mime_type for request in service.requests} == {"text/plain"}


def test_only_what_the_journal_lacks_is_sent(tmp_path: Path, client: Client, service: ScriptedService) -> None:
    (tmp_path / "in.json").write_text('["one", "two"]')
    document = read_document("json", tmp_path / "in.json")
    first = Journal(tmp_path / "out.json", document.texts, "de")
    first.open(resume=False)
    first.add(0, "EINS")
    first.leave()
    journal = Journal(tmp_path / "out.json", document.texts, "de")
    journal.open(resume=True)

    assert run(document, journal, client, []) == 0
    assert (tmp_path / "out.json").read_text() == '["EINS", "TWO"]'
    assert [request.contents[0] for request in service.requests] == ["two"]


def test_a_text_that_is_too_long_fails_alone(tmp_path: Path, client: Client) -> None:
    (tmp_path / "in.json").write_text(json.dumps(["a" * (MAX_TEXT_BYTES + 1), "b"]))
    document = read_document("json", tmp_path / "in.json")
    journal = Journal(tmp_path / "out.json", document.texts, "de")
    told: list[str] = []

    assert run(document, journal, client, told) == 1
    assert told == [f"text 1: INVALID_ARGUMENT: the text has {MAX_TEXT_BYTES + 1} bytes; the limit is {MAX_TEXT_BYTES}"]
    assert (tmp_path / "out.json").read_text().endswith('aa", "B"]')


def test_a_file_of_another_format_is_named(tmp_path: Path) -> None:
    (tmp_path / "in.docx").write_text("hello")

    with pytest.raises(UsageError, match=r"in\.docx is no ZIP archive, or a damaged one"):
        read_document("docx", tmp_path / "in.docx")


def test_a_gzipped_file_is_said_to_be_one(tmp_path: Path) -> None:
    (tmp_path / "in.html.gz").write_bytes(gzip.compress(b"<p>a</p>"))

    with pytest.raises(UsageError, match=r"in\.html\.gz is gzip: unpack it first$"):
        read_document("html", tmp_path / "in.html.gz")
