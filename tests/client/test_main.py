"""`babelserve-translate` as a user runs it: a process of its own."""

import contextlib
import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import termios
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from client.__main__ import main
from protos import translation_pb2
from tests.client.scripted_server import ScriptedServer, ScriptedService

ROOT = Path(__file__).parents[2]


def command(server: ScriptedServer, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "client", "--address", server.address, *arguments]


def translate(server: ScriptedServer, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        command(server, *arguments), input=stdin, capture_output=True, cwd=ROOT, timeout=50, check=False
    )


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


def test_line_i_of_the_output_translates_line_i_of_standard_input(server: ScriptedServer) -> None:
    lines = ["eins", "", "  zwei \u2028drei\r", "\U0001f600 \u00e9"] + [f"line {number}" for number in range(100)]

    done = translate(server, "--target", "de", stdin="\n".join(lines).encode())

    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.decode() == "\n".join(lines).upper() + "\n"


def test_from_file_to_file(server: ScriptedServer, tmp_path: Path) -> None:
    source, target = tmp_path / "in put.txt", tmp_path / "out.txt"
    source.write_text("a\nb\n")

    done = translate(server, "--target", "de", "--input", str(source), "--output", str(target))

    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert target.read_text() == "A\nB\n"


def test_an_empty_file_gives_an_empty_file(server: ScriptedServer, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.touch()

    assert translate(server, "--input", str(source), "--output", str(target)).returncode == 0
    assert target.read_bytes() == b""


def test_json_holds_all_facts_of_each_text(server: ScriptedServer) -> None:
    done = translate(server, "--target", "de", "--json", "--num-hypotheses", "2", "ü\nb", "!INTERNAL oops")

    good, bad = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 1
    assert (good["text"], good["finish_reason"], good["model"]) == ("Ü\nB", "stop", "scripted")
    assert good["hypotheses"] == [{"text": "Ü\nB", "score": -0.25}] * 2
    assert "error" not in good
    assert bad["error"] == {"code": "INTERNAL", "message": "oops"}


def test_failed_lines_leave_empty_ones_and_say_why(server: ScriptedServer) -> None:
    done = translate(server, "--target", "de", stdin=b"a\n!INVALID_ARGUMENT too odd\n\xff\nb\n")

    assert (done.returncode, done.stdout) == (1, b"A\n\n\nB\n")
    assert done.stderr.decode().splitlines() == [
        "babelserve-translate: line 2: INVALID_ARGUMENT: too odd",
        "babelserve-translate: line 3: INVALID_ARGUMENT: byte 0 of the line is not valid UTF-8",
    ]


def test_a_request_that_the_server_refuses_is_wrong_usage(server: ScriptedServer) -> None:
    done = translate(server, "--target", "de", "?INVALID_ARGUMENT target_language_code: not xx")

    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"babelserve-translate: refused by the server: target_language_code: not xx\n"


def test_the_api_key_comes_from_a_file(server: ScriptedServer, service: ScriptedService, tmp_path: Path) -> None:
    (tmp_path / "key").write_text("secret\n")

    done = translate(server, "--target", "de", "--api-key-file", str(tmp_path / "key"), "?UNAUTHENTICATED unknown")

    assert (done.returncode, done.stderr) == (2, b"babelserve-translate: refused by the server: unknown\n")
    assert service.metadata[0]["authorization"] == "Bearer secret"


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
    ],
)
def test_wrong_usage_says_what_is_wrong(
    arguments: Sequence[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--address", "127.0.0.1:1", "--target", "de", *arguments]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--batch-lines", "0"], ["--in-flight", "x"], ["--deadline", "nan"], ["--what"]])
def test_flags_out_of_range_are_wrong_usage(arguments: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)

    assert caught.value.code == 2
    assert arguments[0] in capsys.readouterr().err


def test_the_input_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.txt"
    source.write_text("precious\n")

    assert main(["--target", "de", "--input", str(source), "--output", str(source)]) == 2
    assert source.read_text() == "precious\n"
    assert "is the input" in capsys.readouterr().err


def test_health_need_not_be_asked(server: ScriptedServer, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    server.set_serving(False)
    arguments = ["--address", server.address, "--target", "de", "hello"]

    assert (main(["--deadline", "5", *arguments]), main(["--no-health", *arguments])) == (3, 0)
    assert capfdbinary.readouterr().out == b"HELLO\n"


def test_an_unreachable_server_has_its_own_code(dead_address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--address", dead_address, "--target", "de", "hello"]) == 3
    assert f"{dead_address}: UNAVAILABLE" in capsys.readouterr().err


def test_an_unreachable_server_leaves_an_older_output_alone(dead_address: str, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    output.write_text("precious\n")

    assert main(["--address", dead_address, "--target", "de", "--output", str(output), "hello"]) == 3
    assert output.read_text() == "precious\n"


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


def test_the_progress_bar_shows_on_a_terminal(server: ScriptedServer, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("words\n" * 100)
    terminal, terminal_of_process = pty.openpty()
    termios.tcsetwinsize(terminal, (24, 100))
    arguments = command(server, "--target", "de", "--input", str(source), "--output", str(target))

    subprocess.run(arguments, cwd=ROOT, stderr=terminal_of_process, check=True, timeout=50)
    os.close(terminal_of_process)
    shown = b""
    with contextlib.suppress(OSError):  # the end of a pseudo-terminal
        while chunk := os.read(terminal, 4096):
            shown += chunk
    os.close(terminal)

    assert b"100%" in shown
    assert b"600/600" in shown


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


def test_every_option_of_a_translation_has_its_flag(server: ScriptedServer, service: ScriptedService) -> None:
    flags = ["--target", "de", "--beam-size", "1", "--max-output-tokens", "7", "--use-shortlist", "--no-scores"]

    assert translate(server, *flags, "--priority", "low", "a").returncode == 0
    assert translate(server, "--target", "de", "a").returncode == 0

    asked, plain = service.requests
    assert asked.priority == translation_pb2.PRIORITY_LOW
    decoding = asked.decoding
    assert (decoding.max_output_tokens, decoding.use_shortlist, decoding.with_scores) == (7, True, False)
    assert decoding.HasField("with_scores")
    assert plain.decoding == translation_pb2.DecodingOptions()


def test_a_gzipped_file_is_read_like_a_plain_one(server: ScriptedServer, tmp_path: Path) -> None:
    source = tmp_path / "in.txt.gz"
    source.write_bytes(gzip.compress("ä\nb\n".encode()))

    from_file = translate(server, "--target", "de", "--input", str(source))
    from_stdin = translate(server, "--target", "de", stdin=source.read_bytes())

    assert (from_file.returncode, from_file.stdout.decode(), from_file.stderr) == (0, "Ä\nB\n", b"")
    assert (from_stdin.returncode, from_stdin.stdout) == (0, from_file.stdout)


def test_a_busy_server_is_waited_for_in_its_own_time(server: ScriptedServer, service: ScriptedService) -> None:
    service.most_texts = 4
    lines = b"".join(b"line %d\n" % number for number in range(100))

    done = translate(server, "--target", "de", stdin=lines)

    assert (done.returncode, done.stdout, done.stderr) == (0, lines.upper(), b"")


def test_a_file_job_that_is_killed_goes_on_where_it_was(
    server: ScriptedServer, service: ScriptedService, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"line {number}\n" for number in range(50)))
    files = ["--target", "de", "--batch-lines", "10", "--input", str(source), "--output", str(target)]
    at_half = threading.Event()

    def stop_at_half(request: translation_pb2.TranslateRequest) -> None:
        if request.contents[0] == "line 20":
            at_half.set()
            service.is_closing.wait()

    service.before_answer = stop_at_half
    process = subprocess.Popen(command(server, *files), cwd=ROOT)
    with process:
        assert at_half.wait(30)
        while not (part := tmp_path / "out.txt.part").is_file() or part.read_bytes().count(b"\n") < 20:
            pass
        process.kill()
    assert not target.exists()
    with part.open("ab") as file:
        file.write(b"TO")  # torn
    service.requests.clear()
    service.before_answer = lambda request: None

    done = translate(server, *files, "--resume")

    assert (done.returncode, done.stderr) == (0, b"")
    assert target.read_text() == source.read_text().upper()
    assert min(int(request.contents[0].removeprefix("line ")) for request in service.requests) == 20
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.txt", "out.txt"]


def test_a_job_that_is_given_up_says_how_to_go_on(server: ScriptedServer, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("a\n?UNAUTHENTICATED unknown\n")
    files = [
        "--target",
        "de",
        "--batch-lines",
        "1",
        "--in-flight",
        "1",
        "--input",
        str(source),
        "--output",
        str(target),
    ]

    done = translate(server, *files)

    assert done.returncode == 2
    assert done.stderr.decode().splitlines() == [
        f"babelserve-translate: what is done is in {target}.part; --resume goes on from there",
        "babelserve-translate: refused by the server: unknown",
    ]
    source.write_text("a\nb\n")
    assert translate(server, *files, "--resume").returncode == 0
    assert target.read_text() == "A\nB\n"


def test_resuming_what_is_all_done_needs_no_server_and_tells_of_failed_lines(dead_address: str, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("a\nb\n")
    (tmp_path / "out.txt.part").write_text("A\n\n")
    flags = ["--address", dead_address, "--resume", "--input", str(source), "--output", str(target)]

    assert main(flags) == 1
    assert target.read_text() == "A\n\n"


@pytest.mark.parametrize("flags", [["text", "--output", "x"], ["--input", "x"]])
def test_only_lines_with_an_output_can_be_gone_on_with(flags: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--resume", *flags]) == 2
    assert "--resume goes on with the lines of an --output" in capsys.readouterr().err


def test_a_job_outlives_its_server(server: ScriptedServer, service: ScriptedService, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    source.write_text("".join(f"line {number}\n" for number in range(50)))
    at_half = threading.Event()

    def stop_at_half(request: translation_pb2.TranslateRequest) -> None:
        if request.contents[0] == "line 20":
            at_half.set()
            service.is_closing.wait()

    service.before_answer = stop_at_half
    files = ["--batch-lines", "10", "--input", str(source), "--output", str(target)]
    process = subprocess.Popen(command(server, "--target", "de", *files), cwd=ROOT, stderr=subprocess.PIPE)
    with process:
        assert at_half.wait(30)
        server.close()
        assert process.stderr is not None
        told = process.stderr.readline()
        with contextlib.closing(ScriptedServer(port=server.port)):
            assert process.wait(30) == 0

    assert target.read_text() == source.read_text().upper()
    assert told.startswith(b"babelserve-translate: ")
    assert told.endswith(b"; waiting for up to 300 s\n")


def test_patience_is_settable(dead_address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    flags = ["--address", dead_address, "--target", "de", "--input", str(tmp_path / "in.txt")]

    assert main([*flags, "--wait", "0.5"]) == 3
    first, last = capsys.readouterr().err.splitlines()

    assert first.endswith("; waiting for up to 0 s")
    assert f"{dead_address}: UNAVAILABLE" in last


def test_a_mistake_with_tls_ends_even_a_patient_job(server: ScriptedServer) -> None:
    done = translate(server, "--tls", "--target", "de", stdin=b"a\n")

    assert done.returncode == 3
    expected = f"babelserve-translate: {server.address}: UNAVAILABLE: the server does not speak TLS at this port\n"
    assert done.stderr.decode() == expected
