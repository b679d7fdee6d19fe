"""`babelserve-translate` as a user runs it: a process of its own."""

import json
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from babelserve.__main__ import main
from babelserve.arguments import build_parser
from babelserve.messages import TranslateOptions
from babelserve.v1 import translation_pb2
from tests.babelserve.command_line import ROOT, command, translate, with_closed, without_reader
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


def test_arguments_are_texts(server: ScriptedServer, service: ScriptedService) -> None:
    done = translate(server, "--source", "en", "--target", "de", 'it\'s "so" $5', "zwei\nZeilen ü")

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == 'IT\'S "SO" $5\nZWEI\nZEILEN Ü\n'
    assert service.requests[0].source_language_code == "en"


def test_a_servers_only_target_language_need_not_be_named(server: ScriptedServer, service: ScriptedService) -> None:
    done = translate(server, "hello")

    assert (done.returncode, done.stdout) == (0, b"HELLO\n")
    assert service.requests[0].target_language_code == "de"


def test_of_several_target_languages_one_must_be_named(server: ScriptedServer, service: ScriptedService) -> None:
    service.language_pairs = [("en", "de"), ("en", "fr")]

    done = translate(server, "hello")

    assert done.returncode == 2
    assert b": a target language must be named; the server has: de, fr\n" in done.stderr


def test_a_server_may_list_languages_instead_of_pairs(server: ScriptedServer, service: ScriptedService) -> None:
    service.language_pairs, service.target_languages = [], ["it", "fr"]

    assert b": a target language must be named; the server has: fr, it\n" in translate(server, "hello").stderr


def test_json_holds_all_facts_of_each_text(server: ScriptedServer) -> None:
    done = translate(server, "--target", "de", "--json", "--num-hypotheses", "2", "ü\nb", "!INTERNAL oops")

    good, bad = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert (good["text"], good["finish_reason"], good["model"]) == ("Ü\nB", "stop", "scripted")
    assert good["hypotheses"] == [{"text": "Ü\nB", "score": -0.25}] * 2
    assert "error" not in good
    assert bad["error"] == {"code": "INTERNAL", "message": "oops"}


@pytest.mark.parametrize("code", ["INVALID_ARGUMENT", "FAILED_PRECONDITION"])
def test_a_request_that_the_server_refuses_is_wrong_usage(server: ScriptedServer, code: str) -> None:
    done = translate(server, "--target", "de", f"?{code} target_language_code: not xx")

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"babelserve-translate: refused by the server: target_language_code: not xx\n"


def test_the_api_key_comes_from_a_file(server: ScriptedServer, service: ScriptedService, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")

    done = translate(server, "--target", "de", "--api-key-file", str(tmp_path / "key"), "?UNAUTHENTICATED unknown")

    assert (done.returncode, done.stderr) == (2, b"babelserve-translate: refused by the server: unknown\n")
    assert service.metadata[0]["authorization"] == "Bearer secret"


def test_who_has_no_key_is_told_the_flag_for_it(server: ScriptedServer) -> None:
    done = translate(server, "--target", "de", "?UNAUTHENTICATED a key is needed")

    assert done.returncode == 2
    assert done.stderr == b"babelserve-translate: refused by the server: a key is needed; see --api-key-file\n"


def test_a_server_that_fails_is_told_by_code_and_request(server: ScriptedServer) -> None:
    done = translate(server, "--target", "de", "--batch-lines", "1", "a", "?INTERNAL internal error")

    assert (done.returncode, done.stdout) == (3, b"A\n")
    assert b"INTERNAL: internal error" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--input", "/nonexistent"], "No such file"),
        (["--input", "x", "text"], "not both"),
        (["--tls-key", "x", "text"], "together"),
        (["--tls-ca", "/nonexistent", "text"], "No such file"),
        (["--api-key-file", "/dev/zero", "text"], "/dev/zero must hold the key alone: it has more than 4096 bytes"),
    ],
)
def test_wrong_usage_says_what_is_wrong(
    arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--address", "127.0.0.1:1", "--target", "de", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [["--batch-lines", "0"], ["--in-flight", "x"], ["--deadline", "nan"], ["--deadline", "1e10"], ["--what"]],
)
def test_flags_out_of_range_are_wrong_usage(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert arguments[0] in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["in-flight", "beam-size", "wait"])
def test_two_dashes_are_no_value_of_a_flag(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--target", "de", f"--{flag}=--", "text"])

    assert caught.value.code == 2
    assert flag in capsys.readouterr().err.splitlines()[-1]


def test_health_need_not_be_asked(server: ScriptedServer, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    server.set_serving(False)
    arguments = ["--address", server.address, "--target", "de", "hello"]

    assert (main(["--deadline", "5", *arguments]), main(["--no-health", *arguments])) == (3, 0)
    assert capfdbinary.readouterr().out == b"HELLO\n"


def test_an_unreachable_server_has_its_own_code(dead_address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--address", dead_address, "--target", "de", "hello"]) == 3
    assert f"{dead_address}: UNAVAILABLE" in capsys.readouterr().err


def test_ctrl_c_ends_it_and_cancels_the_call(server: ScriptedServer, service: ScriptedService) -> None:
    service.before_answer = lambda request: service.is_closing.wait()
    process = subprocess.Popen(command(server, "--target", "de", "hello"), cwd=ROOT, stderr=subprocess.PIPE)

    with process:
        assert service.has_request.wait(30)
        process.send_signal(signal.SIGINT)
        _, stderr = process.communicate(timeout=30)

    assert (process.returncode, stderr) == (130, b"")
    assert service.cancelled.wait(20)


def test_a_reader_that_goes_away_ends_it_quietly(server: ScriptedServer, tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text("some words of a long text\n" * 20_000)
    arguments = command(server, "--target", "de", "--input", str(source))
    process = subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"SOME WORDS OF A LONG TEXT\n"
        process.stdout.close()
        assert process.stderr is not None
        stderr = process.stderr.read()

    assert (process.returncode, stderr) == (141, b"")


@pytest.mark.parametrize(
    ("closing", "flags", "name"),
    [
        (">&-", ["--target", "de", "hello"], b"stdout"),
        (">&-", ["--list-models"], b"stdout"),
        ("<&-", ["--target", "de"], b"stdin"),
        ("<&-", ["--target", "de", "--format", "text"], b"stdin"),
    ],
)
def test_a_stream_that_is_closed_is_wrong_usage(
    server: ScriptedServer, closing: str, flags: list[str], name: bytes
) -> None:
    done = with_closed(closing, command(server, *flags))

    assert done == (2, b"", b"babelserve-translate: " + name + b" is closed\n")


@pytest.mark.parametrize("flags", [["--input", "in.txt"], ["--format", "text", "--input", "in.txt"]])
def test_what_is_told_is_not_among_the_translations_if_stderr_is_closed(
    server: ScriptedServer, flags: list[str], tmp_path: Path
) -> None:
    (tmp_path / "in.txt").write_text("good\n!INTERNAL oops\n")
    flags[-1] = str(tmp_path / "in.txt")

    code, translations, _ = with_closed("2>&-", command(server, "--target", "de", *flags))

    assert (code, translations.splitlines()[0], translations.count(b"\n")) == (1, b"GOOD", 2)
    assert b"babelserve-translate" not in translations


def test_a_reader_of_the_output_may_go_away_while_stdout_is_closed(server: ScriptedServer, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "out")
    with subprocess.Popen(["head", "-c1", str(tmp_path / "out")], stdout=subprocess.DEVNULL):
        (tmp_path / "in.txt").write_text("a text\n" * 100_000)
        flags = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out")]
        done = with_closed(">&-", command(server, "--target", "de", *flags))

    assert done == (141, b"", b"")


@pytest.mark.parametrize("flags", [["--list-models"], ["--list-models", "--json"], ["--list-glossaries"]])
def test_a_list_that_nobody_reads_ends_quietly(server: ScriptedServer, flags: list[str]) -> None:
    assert without_reader(command(server, *flags)) == (141, b"")


def test_a_model_that_the_server_lacks_is_named_with_those_that_it_has(server: ScriptedServer) -> None:
    done = translate(server, "--model", "nope", "hello")

    assert done.returncode == 2
    assert done.stderr == b"babelserve-translate: the server has no model nope; it has: scripted\n"


def test_models_are_listed(server: ScriptedServer) -> None:
    done, as_json = translate(server, "--list-models"), translate(server, "--list-models", "--json")

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode().splitlines()[1].split() == [
        "scripted",
        "1",
        "cpu-fp32",
        "to",
        "8",
        "no",
        "en",
        "to",
        "de",
    ]
    assert json.loads(as_json.stdout)["language_pairs"] == [["en", "de"]]


def test_pairs_by_way_of_another_language_are_listed_too(server: ScriptedServer, service: ScriptedService) -> None:
    service.language_pairs = [("fr", "en"), ("en", "de")]
    service.pivots = ["en"]

    assert translate(server, "--list-models").stdout.decode().splitlines()[2:] == ["over en: fr to de"]


def test_every_option_of_a_translation_has_its_flag(server: ScriptedServer, service: ScriptedService) -> None:
    named = {action.dest for action in build_parser()._actions}
    assert TranslateOptions.__annotations__.keys() - named == {
        "include_sentences",
        "include_alignment",
        "include_tokens",
        "include_search",
        "include_confidence",
    }
    flags = ["--target", "de", "--beam-size", "1", "--max-output-tokens", "7", "--use-shortlist", "--no-scores"]
    flags += ["--repetition-penalty", "1.5", "--no-repeat-ngram-size", "3", "--min-output-tokens", "2"]
    flags += ["--suppress", "foul", "--suppress", "foul word", "--patience", "2", "--sampling-top-k", "4"]
    flags += ["--sampling-top-p", "0.5", "--sampling-temperature", "0.25", "--sampling-seed", "6", "--no-end-loops"]
    flags += ["--refuse-unknown-scripts", "--translate-attributes", "--keep", "ACME", "--keep", "Big Co"]
    flags += ["--term", "a=A|B|C", "--ignore-case", "--join-lines", "--ignored-tags", "raw,x", "--splitting-tags", "p"]
    flags += ["--non-splitting-tags", "b", "--only-named-split", "--repair-xml"]
    flags += ["--target-prefix", "Das -", "--prefix-bias-beta", "0.5"]
    flags += ["--return-alternatives", "--min-alternative-expansion-prob", "0.25", "--coverage-penalty", "0.125"]
    flags += ["--min-length-ratio", "0.75", "--max-length-ratio", "1.5", "--exact-tokens", "9"]

    assert (
        translate(server, *flags, "--priority", "low", "--traffic-key", "user-7", "--formality", "more", "a").returncode
        == 0
    )
    assert translate(server, "--target", "de", "a").returncode == 0

    asked, plain = service.requests
    assert asked.priority == translation_pb2.PRIORITY_LOW
    assert (asked.traffic_key, asked.formality) == ("user-7", translation_pb2.FORMALITY_MORE)
    decoding = asked.decoding
    assert (decoding.max_output_tokens, decoding.use_shortlist, decoding.with_scores) == (7, True, False)
    assert decoding.HasField("with_scores")
    assert (decoding.repetition_penalty, decoding.no_repeat_ngram_size, decoding.min_output_tokens) == (1.5, 3, 2)
    assert (list(decoding.suppress), decoding.patience) == (["foul", "foul word"], 2.0)
    assert decoding.sampling == translation_pb2.Sampling(top_k=4, top_p=0.5, temperature=0.25, seed=6)
    assert (decoding.HasField("end_loops"), decoding.end_loops) == (True, False)
    assert (asked.text.refuse_unknown_scripts, plain.text.refuse_unknown_scripts) == (True, False)
    assert (asked.text.translate_attributes, plain.text.translate_attributes) == (True, False)
    tags = translation_pb2.TagRules(ignored=["raw", "x"], splitting=["p"], non_splitting=["b"], only_named_split=True)
    tags.repair = True
    assert (asked.text.tags, asked.text.join_lines) == (tags, True)
    assert (plain.text.HasField("tags"), plain.text.join_lines) == (False, False)
    assert [rule.literal for rule in asked.text.keep] == ["ACME", "Big Co"]
    (term,) = asked.glossary.terms
    assert term == translation_pb2.Term(source="a", target="A", target_forms=["B", "C"], exact=True)
    assert asked.glossary.ignore_case
    assert (list(asked.target_prefixes), list(plain.target_prefixes)) == (["Das -"], [])
    assert (decoding.return_alternatives, decoding.min_alternative_expansion_prob) == (True, 0.25)
    assert (decoding.prefix_bias_beta, decoding.coverage_penalty) == (0.5, 0.125)
    assert (decoding.min_length_ratio, decoding.max_length_ratio, decoding.exact_tokens) == (0.75, 1.5, 9)
    assert not plain.HasField("glossary")
    assert plain.decoding == translation_pb2.DecodingOptions()
