"""The contract is one file: whoever has it, and what docs/guides/other-languages.md says, has a client."""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import grpc
import pytest
from google.rpc import status_pb2

from babelserve.channel import service_config
from babelserve.v1 import translation_pb2
from tests.babelserve.scripted_server import ScriptedServer

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs" / "guides" / "other-languages.md").read_text(encoding="utf-8")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A directory with nothing of ours but the one file."""
    shutil.copy(ROOT / "protos" / "babelserve" / "v1" / "translation.proto", tmp_path)
    return tmp_path


def block(language: str) -> str:
    """The guide's only block of code in a language."""
    (code,) = re.findall(rf"^```{language}\n(.*?)^```$", GUIDE, re.DOTALL | re.MULTILINE)
    return str(code)


def run(*command: str, cwd: Path) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_python_client_needs_one_file_and_one_command(project: Path, server: ScriptedServer) -> None:
    (generate,) = re.findall(r"^\$ python (-m grpc_tools.protoc .*)$", GUIDE, re.MULTILINE)
    (project / "example.py").write_text(block("python").replace("localhost:50051", server.address))

    run(sys.executable, *generate.split(), cwd=project)

    assert run(sys.executable, "example.py", cwd=project) == "TWO DOGS ARE RUNNING.\n"


def test_a_node_client_needs_one_file(project: Path, server: ScriptedServer) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("there is no node")
    packages = "require('@grpc/grpc-js'); require('@grpc/proto-loader')"
    if subprocess.run([node, "-e", packages], cwd=project, capture_output=True, check=False).returncode:
        pytest.skip("node has no @grpc/grpc-js and @grpc/proto-loader: npm install them, and set NODE_PATH")
    (project / "example.js").write_text(block("javascript").replace("localhost:50051", server.address))

    assert run(node, "example.js", cwd=project) == "TWO DOGS ARE RUNNING.\n"


def test_the_guides_retries_are_those_of_our_client() -> None:
    assert json.loads(block("json"))["methodConfig"] == service_config(4)["methodConfig"]


def test_a_texts_status_is_what_google_rpc_status_was_on_the_wire() -> None:
    theirs = status_pb2.Status(code=grpc.StatusCode.INVALID_ARGUMENT.value[0], message="contents[0]: too long")
    ours = translation_pb2.Status(code=theirs.code, message=theirs.message)

    assert ours.SerializeToString() == theirs.SerializeToString()
    theirs.details.add().type_url = "of a server that has some"
    read = translation_pb2.Status.FromString(theirs.SerializeToString())
    assert (read.code, read.message) == (ours.code, ours.message)
