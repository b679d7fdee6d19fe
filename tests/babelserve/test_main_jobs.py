"""`babelserve-translate` with files: jobs of lines, what a stopped one leaves, and how long one waits."""

import contextlib
import gzip
import os
import pty
import subprocess
import termios
from pathlib import Path

import pytest

from babelserve.__main__ import main
from tests.babelserve.command_line import ROOT, command, stopped_at_half, translate
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


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


def test_failed_lines_leave_empty_ones_and_say_why(server: ScriptedServer) -> None:
    done = translate(server, "--target", "de", stdin=b"a\n!INVALID_ARGUMENT too odd\n\xff\nb\n")

    assert (done.returncode, done.stdout) == (1, b"A\n\n\nB\n")
    assert done.stderr.decode().splitlines() == [
        "babelserve-translate: line 2: INVALID_ARGUMENT: too odd",
        "babelserve-translate: line 3: INVALID_ARGUMENT: byte 0 of the line is not valid UTF-8",
    ]


def test_the_input_is_never_overwritten(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.txt"
    source.write_text("precious\n")

    assert main(["--target", "de", "--input", str(source), "--output", str(source)]) == 2
    assert source.read_text() == "precious\n"
    assert "is the input" in capsys.readouterr().err


def test_an_unreachable_server_leaves_an_older_output_alone(dead_address: str, tmp_path: Path) -> None:
    output = tmp_path / "out.txt"
    output.write_text("precious\n")

    assert main(["--address", dead_address, "--target", "de", "--output", str(output), "hello"]) == 3
    assert output.read_text() == "precious\n"


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
    files = ["--target", "de", "--batch-lines", "10", "--input", str(source), "--output", str(target)]

    with stopped_at_half(server, source, *files) as process:
        while not (part := tmp_path / "out.txt.part").is_file() or part.read_bytes().count(b"\n") < 20:
            pass
        process.kill()
    assert not target.exists()
    with part.open("ab") as file:
        file.write(b"TO")  # torn
    service.requests.clear()
    service.before_answer = lambda request: None

    done = translate(server, *files, "--resume")

    assert done.returncode == 0
    assert done.stderr.decode() == (
        f"babelserve-translate: goes on after 20 lines of {part}, which must have the same options\n"
    )
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
        "babelserve-translate: refused by the server: unknown; see --api-key-file",
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


def test_a_job_outlives_its_server(server: ScriptedServer, tmp_path: Path) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    files = ["--target", "de", "--batch-lines", "10", "--input", str(source), "--output", str(target)]

    with stopped_at_half(server, source, *files) as process:
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
