"""`babelserve-models` in front of a scripted server; tests/e2e/test_model_admin.py has a real one."""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest

from babelserve.admin import main
from babelserve.v1 import model_admin_pb2 as pb
from babelserve.v1.model_admin_pb2_grpc import ModelAdminServicer, add_ModelAdminServicer_to_server
from tests.babelserve.command_line import with_closed, without_reader

STATUS = pb.ModelStatus(
    model="en-de",
    versions=[
        pb.VersionStatus(version="3", state=pb.VersionStatus.AVAILABLE, fault="weights.bin: is cut"),
        pb.VersionStatus(version="2", state=pb.VersionStatus.LOADED, traffic_percent=100),
    ],
)
SHOWN = """en-de (pinned: new versions in its folder are not taken)
  3  available  0 %  refused: weights.bin: is cut
  2  loaded  100 %
"""


class ScriptedAdmin(ModelAdminServicer):
    """Answers with the same status, or refuses versions that are named after a code; keeps what it was asked."""

    def __init__(self) -> None:
        self.requests: list[object] = []
        self.keys: list[object] = []
        self.status = STATUS

    def ListVersions(self, request: pb.ListVersionsRequest, context: grpc.ServicerContext) -> pb.ListVersionsResponse:
        self.requests.append(request)
        return pb.ListVersionsResponse(models=[STATUS, pb.ModelStatus(model="de-en", follows_folder=True)])

    def Load(self, request: pb.LoadRequest, context: grpc.ServicerContext) -> pb.ModelStatus:
        self.keys.append(dict(context.invocation_metadata())["authorization"])
        if hasattr(grpc.StatusCode, request.version):
            reason = "no \x1b[2J\n" if request.model.endswith("\x1b") else "the reason"
            context.abort(grpc.StatusCode[request.version], reason)
        return self._answer(request)

    def Unload(self, request: pb.UnloadRequest, context: grpc.ServicerContext) -> pb.ModelStatus:
        return self._answer(request)

    def Rollback(self, request: pb.RollbackRequest, context: grpc.ServicerContext) -> pb.ModelStatus:
        return self._answer(request)

    def SetTraffic(self, request: pb.SetTrafficRequest, context: grpc.ServicerContext) -> pb.ModelStatus:
        return self._answer(request)

    def _answer(self, request: object) -> pb.ModelStatus:
        self.requests.append(request)
        return self.status


class Server:
    def __init__(self, address: str, admin: ScriptedAdmin, key_file: Path) -> None:
        self.address, self.admin, self.key_file = address, admin, key_file

    def run(self, *arguments: str) -> int:
        return main(["--address", self.address, "--api-key-file", str(self.key_file), *arguments])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "key").write_text("the key\n")
    server, admin = grpc.server(ThreadPoolExecutor(1)), ScriptedAdmin()
    add_ModelAdminServicer_to_server(admin, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield Server(f"127.0.0.1:{port}", admin, tmp_path / "key")
    server.stop(None).wait()


def test_each_action_asks_for_what_it_says_and_shows_what_came_of_it(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    for arguments in (
        ("load", "en-de", "3"),
        ("load", "en-de"),
        ("unload", "en-de", "2"),
        ("rollback", "en-de"),
        ("traffic", "en-de", "3=10", "2=90"),
    ):
        assert server.run(*arguments) == 0
        assert capsys.readouterr().out == SHOWN

    assert server.admin.requests == [
        pb.LoadRequest(model="en-de", version="3"),
        pb.LoadRequest(model="en-de"),
        pb.UnloadRequest(model="en-de", version="2"),
        pb.RollbackRequest(model="en-de"),
        pb.SetTrafficRequest(
            model="en-de", traffic=[pb.TrafficShare(version="3", percent=10), pb.TrafficShare(version="2", percent=90)]
        ),
    ]
    assert server.admin.keys == ["Bearer the key"] * 2


def test_all_models_are_listed(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert server.run("list") == 0
    assert capsys.readouterr().out == f"{SHOWN}de-en\n"


def test_a_list_that_nobody_reads_ends_quietly(server: Server) -> None:
    flags = ["--address", server.address, "--api-key-file", str(server.key_file)]

    assert without_reader([sys.executable, "-m", "babelserve.admin", *flags, "list"]) == (141, b"")


def test_a_stream_that_is_closed_gets_nothing_and_neither_does_another_in_its_place(server: Server) -> None:
    command = [sys.executable, "-m", "babelserve.admin", "--address", server.address, "--api-key-file"]

    assert with_closed(">&-", [*command, str(server.key_file), "load", "en-de"]) == (
        2,
        b"",
        b"babelserve-models: stdout is closed\n",
    )
    assert server.admin.requests == []
    assert with_closed("2>&-", [*command, "nothing", "list"]) == (2, b"", b"")


def test_names_faults_and_errors_are_shown_without_control_characters(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    server.admin.status = pb.ModelStatus(
        model="a\x1b]0;t\x07\nb",
        versions=[pb.VersionStatus(version="\x9b2J", state=pb.VersionStatus.LOADED, fault="\r\u202e")],
    )
    assert server.run("unload", "a") == 0
    assert server.run("load", "en-de\x1b", "NOT_FOUND") == 2

    shown, told = capsys.readouterr()
    assert shown.splitlines()[1:] == [r"  \x9b2J  loaded  0 %  refused: \r\u202e"]
    assert shown.startswith(r"a\x1b]0;t\x07\nb (pinned")
    assert told.endswith(r"no \x1b[2J\n" + "\n")


def test_a_state_that_a_newer_server_has_is_unknown(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    version = pb.VersionStatus.FromString(pb.VersionStatus(version="1").SerializeToString() + bytes([2 << 3, 99]))
    server.admin.status = pb.ModelStatus(model="m", versions=[version])

    assert server.run("unload", "m") == 0
    assert "  1  unknown  0 %" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("code", "exit_code"),
    [
        ("FAILED_PRECONDITION", 2),
        ("NOT_FOUND", 2),
        ("UNAUTHENTICATED", 2),
        ("INTERNAL", 3),
        ("DEADLINE_EXCEEDED", 3),
        ("RESOURCE_EXHAUSTED", 3),
    ],
)
def test_a_refusal_is_told_and_the_exit_code_says_whose_fault_it_is(
    server: Server, capsys: pytest.CaptureFixture[str], code: str, exit_code: int
) -> None:
    assert server.run("load", "en-de", code) == exit_code
    assert capsys.readouterr().err == f"babelserve-models: {server.address}: {code}: the reason\n"


def test_a_server_that_takes_no_changes_says_what_it_lacks(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert server.run("load", "en-de", "UNIMPLEMENTED") == 3
    assert capsys.readouterr().err.endswith(
        ": UNIMPLEMENTED: this is no admin port, or the server was started without --admin-keys\n"
    )


def test_a_server_that_is_not_there_is_exit_code_3(
    dead_address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "key").write_text("the key")

    assert main(["--address", dead_address, "--api-key-file", str(tmp_path / "key"), "list"]) == 3
    assert "UNAVAILABLE" in capsys.readouterr().err


@pytest.mark.parametrize("share", ["2", "2=", "=5", "2=-1", "2=101", "2=x"])
def test_a_share_that_is_none_is_wrong_usage(server: Server, capsys: pytest.CaptureFixture[str], share: str) -> None:
    with pytest.raises(SystemExit) as caught:
        server.run("traffic", "en-de", share)

    assert caught.value.code == 2
    assert f"must be VERSION=PERCENT, with a percent from 0 to 100, not {share}" in capsys.readouterr().err


def test_a_key_that_cannot_be_read_or_sent_is_wrong_usage(
    server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    server.key_file.write_text("no\nheader")
    assert server.run("list") == 2
    server.key_file = tmp_path / "none"
    assert server.run("list") == 2
    assert server.admin.requests == []
    assert "an API key must be printable ASCII" in capsys.readouterr().err


def test_two_dashes_are_no_value_of_a_flag(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        server.run("--deadline=--", "list")

    assert caught.value.code == 2
    assert "deadline" in capsys.readouterr().err.splitlines()[-1]
    assert server.admin.requests == []


@pytest.mark.parametrize("seconds", ["-1", "0", "nan", "inf"])
def test_a_deadline_that_is_none_is_wrong_usage(seconds: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--api-key-file", "x", "--deadline", seconds, "list"])

    assert caught.value.code == 2
    assert f"argument --deadline: must be over 0 and at most 1e+09 seconds, not {seconds}" in capsys.readouterr().err
