"""`babelserve-translate --output`: what stands in its place, and who else writes it."""

import gzip
import os
import threading
from pathlib import Path

import grpc
import pytest
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status

from babelserve.__main__ import main
from tests.babelserve.command_line import stopped_at_half, translate
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


def test_a_second_job_with_the_same_output_is_refused_and_the_first_goes_on(
    server: ScriptedServer, service: ScriptedService, tmp_path: Path
) -> None:
    source, target = tmp_path / "in.txt", tmp_path / "out.txt"
    (tmp_path / "other.txt").write_text("other\n")
    (tmp_path / "link.txt").symlink_to(target)
    flags = ["--target", "de", "--batch-lines", "10"]
    may_go_on = threading.Event()

    with stopped_at_half(server, source, *flags, "--input", str(source), "--output", str(target)) as process:
        service.before_answer = lambda request: may_go_on.wait(30)
        other = ["--input", str(tmp_path / "other.txt")]
        for more in ([], ["--resume"], ["--format", "markdown"]):
            for path in (target, tmp_path / "link.txt"):
                done = translate(server, "--target", "de", *other, "--output", str(path), *more)
                assert done.returncode == 2
                assert (
                    f"another job writes {target}.part: wait for it, or give another --output\n" in done.stderr.decode()
                )
        service.is_closing.set()
        may_go_on.set()
        assert process.wait(30) == 0

    assert target.read_text() == source.read_text().upper()


@pytest.mark.parametrize("flags", [[], ["--resume"], ["--format", "markdown"]])
@pytest.mark.parametrize("is_link", [True, False])
def test_what_is_no_file_in_the_place_of_the_part_is_left_alone(
    server: ScriptedServer, tmp_path: Path, flags: list[str], is_link: bool
) -> None:
    (tmp_path / "in.txt").write_text("a\n")
    (tmp_path / "precious").write_text("precious\n")
    part = tmp_path / "out.txt.part"
    part.symlink_to(tmp_path / "precious") if is_link else os.mkfifo(part)

    done = translate(
        server, "--target", "de", "--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt"), *flags
    )

    assert (done.returncode, (tmp_path / "precious").read_text()) == (2, "precious\n")
    assert done.stderr.decode().endswith(f"{part} is a link, a pipe or the like, and no file of one name: remove it\n")


def test_json_does_not_go_on_after_lines(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("5\nb\n")
    (tmp_path / "out.txt.part").write_text("5\n")
    files = ["--input", str(tmp_path / "in.txt"), "--output", str(tmp_path / "out.txt")]

    done = translate(server, "--target", "de", *files, "--resume", "--json")

    assert done.returncode == 2
    assert done.stderr.decode().endswith("out.txt.part was written without --json: go on without it, too\n")


def test_an_output_is_gzipped_by_its_name(server: ScriptedServer, tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text("a\nb\n")
    files = ["--target", "de", "--input", str(tmp_path / "in.txt"), "--output"]

    assert translate(server, *files, str(tmp_path / "out.gz")).returncode == 0
    refused = translate(server, *files, str(tmp_path / "out.bz2"))

    assert gzip.decompress((tmp_path / "out.gz").read_bytes()) == b"A\nB\n"
    assert (refused.returncode, (tmp_path / "out.bz2").exists()) == (2, False)


@pytest.mark.parametrize("name", ["out.txt.part", "out.txt.part.whole"])
def test_the_input_is_not_overwritten_under_another_name(name: str, tmp_path: Path) -> None:
    source = tmp_path / name
    source.write_text("precious\n")

    assert main(["--target", "de", "--input", str(source), "--output", str(tmp_path / "out.txt")]) == 2
    assert source.read_text() == "precious\n"


def test_a_server_that_is_full_for_ever_ends_the_job(server: ScriptedServer, service: ScriptedService) -> None:
    retry = RetryInfo()
    retry.retry_delay.seconds = 2**62
    status = Status()
    status.details.add().Pack(retry)
    trailing = (("grpc-status-details-bin", status.SerializeToString()),)
    service.failures.append((grpc.StatusCode.RESOURCE_EXHAUSTED, "full", trailing))

    done = translate(server, "--target", "de", stdin=b"a\n")

    assert (done.returncode, done.stderr.count(b"\n")) == (3, 1)
    assert b"RESOURCE_EXHAUSTED: full" in done.stderr
