"""`babelserve-translate` with terms: flags, files, and what is told of terms that were missed."""

import json
from pathlib import Path

import pytest

from babelserve.__main__ import main
from babelserve.v1 import translation_pb2
from tests.babelserve.command_line import translate
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService

TERMS = ["--target", "de", "--term", "dog=DOG|DOGS", "--term", "cat=Katze"]


def test_terms_reach_the_server_and_missed_ones_are_told_once(
    server: ScriptedServer, service: ScriptedService, tmp_path: Path
) -> None:
    (tmp_path / "terms.csv").write_text("cow;Kuh;Kühe\n")

    done = translate(server, *TERMS, "--glossary", str(tmp_path / "terms.csv"), "a dog", "a cat", "a cow, a cat")

    assert (done.returncode, done.stdout) == (0, b"A DOG\nA CAT\nA COW, A CAT\n")
    assert done.stderr.decode().splitlines() == [
        "babelserve-translate: the term 'cat' was missed 2 times",
        "babelserve-translate: the term 'cow' was missed 1 time",
    ]
    assert [(term.source, term.target, list(term.target_forms)) for term in service.requests[0].glossary.terms] == [
        ("dog", "DOG", ["DOGS"]),
        ("cat", "Katze", []),
        ("cow", "Kuh", ["Kühe"]),
    ]


@pytest.mark.parametrize(
    ("flags", "sources"),
    [
        (["--source", "auto", "--target", "de"], ["cow"]),
        (["--source", "en", "--target", "DE"], ["cow"]),
        (["--source", "en", "--target", "fr"], ["en", "cow"]),
    ],
)
def test_a_head_of_the_languages_that_are_asked_for_is_no_term(
    flags: list[str], sources: list[str], server: ScriptedServer, service: ScriptedService, tmp_path: Path
) -> None:
    (tmp_path / "terms.csv").write_text("en;de\ncow;Kuh\n")

    translate(server, *flags, "--glossary", str(tmp_path / "terms.csv"), "a cow")

    assert [term.source for term in service.requests[0].glossary.terms] == sources


def test_json_has_the_terms_of_each_text(server: ScriptedServer) -> None:
    done = translate(server, *TERMS, "--json", "a dog", "a cat", "a cow")

    applied, missed, without = [json.loads(line) for line in done.stdout.splitlines()]
    assert applied["terms"] == [
        {
            "source": "dog",
            "target": "DOG",
            "source_begin": 2,
            "source_end": 5,
            "begin": 2,
            "end": 5,
            "is_applied": True,
        }
    ]
    assert [(term["source"], term["is_applied"]) for term in missed["terms"]] == [("cat", False)]
    assert "terms" not in without


def test_glossaries_of_the_server_are_named_and_listed(server: ScriptedServer, service: ScriptedService) -> None:
    service.glossaries = [
        translation_pb2.GlossaryInfo(name=name, source_language_code="en", target_language_code="de", num_terms=7)
        for name in ("it", "law")
    ]

    flags = ["--server-glossary", "law", "--server-glossary", "it"]
    done = translate(server, *TERMS, *flags, "--json", "a dog")
    shown, as_json = translate(server, "--list-glossaries"), translate(server, "--list-glossaries", "--json")
    service.glossaries = []
    none = translate(server, "--list-glossaries", "--json")

    (request,) = service.requests
    assert (list(request.glossary.names), len(request.glossary.terms)) == (["law", "it"], 2)
    assert json.loads(done.stdout)["glossaries"] == [{"name": "law", "version": "1"}, {"name": "it", "version": "1"}]
    assert [line.split()[0] for line in shown.stdout.decode().splitlines()] == ["NAME", "it", "law"]
    assert [json.loads(line) for line in as_json.stdout.splitlines()] == [
        {"name": name, "source": "en", "target": "de", "num_terms": 7, "version": ""} for name in ("it", "law")
    ]
    assert (none.returncode, none.stdout, none.stderr) == (0, b"", b"")


def test_missed_terms_of_a_file_with_a_format_are_told_too(server: ScriptedServer) -> None:
    done = translate(server, *TERMS, "--format", "html", stdin=b"<p>a cat</p><p>a dog</p>")

    assert (done.returncode, done.stdout) == (0, b"<p>A CAT</p><p>A DOG</p>")
    assert done.stderr == b"babelserve-translate: the term 'cat' was missed 1 time\n"


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--term", "x"], "--term 1: must be SOURCE=TARGET, not 'x'"),
        (["--glossary", "/nonexistent"], "[Errno 2] No such file or directory: '/nonexistent'"),
        (["--ignore-case", "--term", "a=b", "--term", "A=c"], "--term 2: the source 'A' is that of --term 1 already"),
    ],
)
def test_faults_are_told_in_one_line_before_a_server_is_asked(
    flags: list[str], message: str, dead_address: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--address", dead_address, *flags, "text"]) == 2
    assert capsys.readouterr().err == f"babelserve-translate: {message}\n"
