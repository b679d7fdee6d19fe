"""`babelserve-translate --format`: whole files, what a stopped job leaves, and what is refused."""

import io
import subprocess
import threading
from pathlib import Path

import docx
import pytest

from babelserve.__main__ import main
from babelserve.v1 import translation_pb2
from tests.babelserve.command_line import ROOT, command, translate
from tests.babelserve.formats.files import EPUB, ODT, archive, members, word
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


def test_a_document_of_word_is_translated(server: ScriptedServer, service: ScriptedService, tmp_path: Path) -> None:
    source, target = tmp_path / "in.docx", tmp_path / "out.docx"
    source.write_bytes(word("One & two", "Three"))

    done = translate(server, "--format", "docx", "--input", str(source), "--output", str(target))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    written = docx.Document(io.BytesIO(target.read_bytes()))
    assert [paragraph.text for paragraph in written.paragraphs] == ["ONE & TWO", "THREE"]
    assert {request.mime_type for request in service.requests} == {"text/html"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.docx", "out.docx"]


def test_a_file_goes_from_standard_input_to_standard_output(server: ScriptedServer, service: ScriptedService) -> None:
    done = translate(server, "--target", "de", "--format", "html", stdin=b"<p class=a>one\n</p>")

    assert (done.returncode, done.stdout, done.stderr) == (0, b"<p class=a>ONE\n</p>", b"")
    assert [(request.mime_type, list(request.contents)) for request in service.requests] == [
        ("text/html", ["<p class=a>one\n</p>"])
    ]


@pytest.mark.parametrize(("name", "data"), [("odt", archive(ODT)), ("epub", archive(EPUB))])
def test_archives_keep_their_members(name: str, data: bytes, server: ScriptedServer) -> None:
    done = translate(server, "--target", "en", "--format", name, stdin=data)

    assert (done.returncode, done.stderr) == (0, b"")
    assert list(members(done.stdout)) == list(members(data))


def test_a_job_that_is_killed_goes_on_where_it_was(
    server: ScriptedServer, service: ScriptedService, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text("[" + ",\n ".join(f'"text {number}"' for number in range(50)) + "]")
    flags = [
        "--target",
        "de",
        "--format",
        "json",
        "--batch-lines",
        "10",
        "--input",
        str(source),
        "--output",
        str(target),
    ]
    at_half = threading.Event()

    def stop_at_half(request: translation_pb2.TranslateRequest) -> None:
        if request.contents[0] == "text 20":
            at_half.set()
            service.is_closing.wait()

    service.before_answer = stop_at_half
    part = tmp_path / "out.json.part"
    with subprocess.Popen(command(server, *flags), cwd=ROOT) as process:
        assert at_half.wait(30)
        while not part.is_file() or part.read_bytes().count(b"\n") < 20:
            pass
        process.kill()
    service.requests.clear()
    service.before_answer = lambda request: None

    done = translate(server, *flags, "--resume")

    assert (done.returncode, target.read_text()) == (0, source.read_text().upper())
    assert done.stderr.decode() == f"babelserve-translate: goes on after 20 texts of {part}\n"
    assert min(int(request.contents[0].removeprefix("text ")) for request in service.requests) == 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.json", "out.json"]


def test_failed_texts_stay_and_are_named(server: ScriptedServer) -> None:
    done = translate(server, "--target", "de", "--format", "json", stdin=b'["a", "!INVALID_ARGUMENT odd"]')

    assert (done.returncode, done.stdout) == (1, b'["A", "!INVALID_ARGUMENT odd"]')
    assert done.stderr == b"babelserve-translate: text 2: INVALID_ARGUMENT: odd\n"


def test_a_job_that_is_given_up_says_how_to_go_on(server: ScriptedServer, tmp_path: Path) -> None:
    source, target = tmp_path / "in.json", tmp_path / "out.json"
    source.write_text('["a", "?UNAUTHENTICATED unknown"]')
    flags = ["--target", "de", "--format", "json", "--batch-lines", "1", "--in-flight", "1"]

    done = translate(server, *flags, "--input", str(source), "--output", str(target))

    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        f"babelserve-translate: what is done is in {target}.part; --resume goes on from there",
        "babelserve-translate: refused by the server: unknown; see --api-key-file",
    ]
    assert not target.exists()


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("docx", b"hello", "is no ZIP archive, or a damaged one: File is not a zip file"),
        ("docx", word("One")[:-100], "is no ZIP archive, or a damaged one: File is not a zip file"),
        ("odt", archive({"content.xml": "<!DOCTYPE a [<!ENTITY b 'c'>]><a/>"}), "is XML that declares entities"),
        ("srt", "1\n00:01,0 --> 00:02,0\nä".encode("latin-1"), "is not UTF-8: byte 22 is wrong; convert it first"),
    ],
)
def test_bad_files_are_refused_in_one_line(
    name: str, data: bytes, message: str, dead_address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "in").write_bytes(data)
    flags = ["--address", dead_address, "--format", name, "--input", str(tmp_path / "in")]

    assert main([*flags, "--output", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err == f"babelserve-translate: {tmp_path / 'in'} {message}\n"
    assert [path.name for path in tmp_path.iterdir()] == ["in"]


def test_a_file_without_an_end_is_refused(dead_address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--address", dead_address, "--format", "text", "--input", "/dev/zero"]) == 2
    expected = "babelserve-translate: /dev/zero has more than 134217728 bytes, the limit of --format\n"
    assert capsys.readouterr().err == expected


@pytest.mark.parametrize("flags", [["text"], ["--json"]])
def test_texts_and_facts_do_not_go_with_a_format(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--format", "po", *flags]) == 2
    assert "--format translates one file: give no texts, and no --json" in capsys.readouterr().err
