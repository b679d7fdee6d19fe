"""`babelserve-translate` as a user runs it: a process of its own."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Sequence
from pathlib import Path

import pytest

from client.__main__ import main
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
    assert b"--target is needed; the server has: de, fr" in done.stderr


def test_a_server_may_list_languages_instead_of_pairs(server: ScriptedServer, service: ScriptedService) -> None:
    service.language_pairs, service.target_languages = [], ["it", "fr"]

    assert b"--target is needed; the server has: fr, it" in translate(server, "hello").stderr


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
