"""`babelserve-translate --explain`: what is asked of the server, and what is refused."""

from pathlib import Path

import pytest

from tests.babelserve.command_line import translate
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


def test_it_asks_for_what_the_page_shows_and_prints_translations(
    server: ScriptedServer, service: ScriptedService, tmp_path: Path
) -> None:
    page = tmp_path / "why.html"
    done = translate(server, "--target", "de", "--explain", str(page), "one", "!INVALID_ARGUMENT <too long>")

    assert (done.returncode, done.stdout) == (1, b"ONE\n\n")
    assert "&lt;too long&gt;" in page.read_text()
    assert "By scripted 1." in page.read_text()
    contents = [list(request.contents) for request in service.requests]
    assert sorted(contents) == [["!INVALID_ARGUMENT <too long>"], ["one"]], "one request for each text, at one time"
    for request in service.requests:
        output = request.output
        assert (output.include_sentences, output.include_tokens, output.include_search) == (True, True, True)
        assert (output.include_alignment, output.include_confidence) == (False, False), "its model has neither"


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--mime-type", "text/html", "a"], b"plain texts"),
        (["--output", "out", "--resume"], b"plain texts"),
        (["--format", "srt", "--input", "in"], b"plain texts"),
        (["a"] * 101, b"up to 100 texts"),
        (["--input", "why.html"], b"is the file of --input"),
        (["--output", "why.html", "a"], b"is the file of --output"),
    ],
    ids=lambda value: value.decode() if isinstance(value, bytes) else "",
)
def test_what_a_page_cannot_explain_is_refused(
    server: ScriptedServer, tmp_path: Path, flags: list[str], reason: bytes
) -> None:
    (tmp_path / "why.html").write_text("mine")
    (tmp_path / "in").write_text("a")
    flags = [str(tmp_path / flag) if flag in ("in", "out", "why.html") else flag for flag in flags]

    done = translate(server, "--target", "de", "--explain", str(tmp_path / "why.html"), *flags)

    assert done.returncode == 2
    assert reason in done.stderr
    assert (tmp_path / "why.html").read_text() == "mine"


def test_a_page_that_cannot_be_written_is_said(server: ScriptedServer, tmp_path: Path) -> None:
    done = translate(server, "--target", "de", "--explain", str(tmp_path / "none" / "why.html"), "a")

    assert (done.returncode, done.stdout) == (2, b"A\n")
    assert b"No such file" in done.stderr
