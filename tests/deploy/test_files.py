"""What the files of deploy/ say to programs, these take."""

import dataclasses
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from docs.generate.commands import command_parsers
from docs.generate.metrics import metrics_page
from server import app
from server.documents.parsing import BOUNDS
from server.listening import LAST_GRACE_SECONDS
from server.settings.settings import Settings
from tests.docs.reader import blocks

DEPLOY = Path(__file__).parents[2] / "deploy"
README = (DEPLOY / "README.md").read_text(encoding="utf-8")
GATEWAYS = [path.relative_to(DEPLOY).as_posix() for path in sorted(DEPLOY.rglob("gateway.yaml"))]


def test_every_variable_is_a_setting() -> None:
    files = [path for path in DEPLOY.rglob("*") if path.suffix in {".yaml", ".env"} or path.name == "Dockerfile"]
    named = {name for path in files for name in re.findall(r"\bBABELSERVE_([A-Z_]+)", path.read_text(encoding="utf-8"))}

    assert {"HOST", "TLS_CLIENT_CA", "MODELS", "KEYS", "HTTP_PORT"} <= named
    assert named - {field.name.upper() for field in dataclasses.fields(Settings)} == set()


def test_replicas_are_counted_by_metrics_that_there_are() -> None:
    text = (DEPLOY / "kubernetes/components/keda/scaledobject.yaml").read_text(encoding="utf-8")
    queries = [trigger["metadata"]["query"] for trigger in yaml.safe_load(text)["spec"]["triggers"]]
    named = {name.removesuffix("_sum") for query in queries for name in re.findall(r"babelserve_\w+", query)}

    assert len(queries) == 2
    assert {name for name in named if f"| `{name}` |" not in metrics_page()} == set()


def test_a_job_of_the_guide_may_run_where_the_servers_may() -> None:
    (job,) = (made for _, text in blocks(README) for made in [yaml.safe_load(text)] if made["kind"] == "Job")
    pod = job["spec"]["template"]["spec"]

    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in pod["containers"]:
        assert container["securityContext"] == {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}


def test_a_server_asks_for_the_memory_with_which_it_plans() -> None:
    for name in ("base", "components/gpu", "components/models"):
        text = (DEPLOY / "kubernetes" / name / "deployment.yaml").read_text(encoding="utf-8")
        (container,) = yaml.safe_load(text)["spec"]["template"]["spec"]["containers"]

        assert container["resources"]["requests"]["memory"] == container["resources"]["limits"]["memory"]


def test_images_have_every_extra_of_a_server() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"\[\$1,([\w,]+)\]", (DEPLOY / "install.sh").read_text(encoding="utf-8"))
    elsewhere = {"cpu", "gpu", "bulk", "ray", "train", "export"}  # the image's target, and no server's

    assert set(extras.split(",")) == project["optional-dependencies"].keys() - elsewhere


def test_compose_publishes_the_same_ports_with_envoy_as_without() -> None:
    one, two = (
        # "!reset" is compose's own: what compose.yaml has there is taken away.
        yaml.safe_load((DEPLOY / name).read_text(encoding="utf-8").replace("!reset", ""))["services"]
        for name in ("compose.yaml", "compose.envoy.yaml")
    )
    published = {port.rpartition(":")[0].rpartition(":")[2] for port in one["babelserve"]["ports"]}

    assert {port.rpartition(":")[0].rpartition(":")[2] for port in two["envoy"]["ports"]} == published
    assert [port for port in published if not re.search(rf"^\| {port} \| .*or Envoy \|$", README, re.MULTILINE)] == []


def test_compose_leaves_room_for_documents_beside_the_server() -> None:
    server = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]["babelserve"]
    settings = dict(re.findall(r"^(\w+)=(.*)$", (DEPLOY / "config/babelserve.env").read_text("utf-8"), re.MULTILINE))
    (files,) = (int(size) << 20 for size in re.findall(r"^/tmp:size=(\d+)m,", server["tmpfs"][0]))
    readers = int(server["cpus"]) * (BOUNDS.memory or 0)

    assert (int(settings["BABELSERVE_MEMORY_MIB"]) << 20) + files + readers <= int(server["mem_limit"][:-1]) << 30


@pytest.mark.parametrize("file", GATEWAYS)
def test_the_gateway_takes_its_flags(file: str) -> None:
    (parser,) = (parser for parser in command_parsers() if parser.prog == "babelserve-gateway")
    deployment = next(yaml.safe_load_all((DEPLOY / file).read_text(encoding="utf-8")))
    (container,) = deployment["spec"]["template"]["spec"]["containers"]

    taken = parser.parse_args(container["args"])

    assert (taken.host, taken.server) == ("0.0.0.0", "dns:///babelserve:50051")


@pytest.mark.parametrize(
    ("file", "key"),
    [
        ("compose.yaml", "stop_grace_period"),
        ("kubernetes/base/deployment.yaml", "terminationGracePeriodSeconds"),
        ("kubernetes/components/gateway/gateway.yaml", "terminationGracePeriodSeconds"),
    ],
)
def test_a_program_may_take_its_time_to_stop(file: str, key: str) -> None:
    (grace_seconds,) = re.findall(rf"{key}: (\d+)", (DEPLOY / file).read_text(encoding="utf-8"))

    drain_seconds = Settings().drain_delay + Settings().drain_timeout
    last_seconds = app._ENGINE_STOP_SECONDS + app._LAST_CALLS_SECONDS + LAST_GRACE_SECONDS
    assert int(grace_seconds) > drain_seconds + last_seconds


@pytest.mark.parametrize(
    "command", [["hadolint", "Dockerfile"], ["amtool", "check-config", "observe/alertmanager.yml"]], ids=" ".join
)
def test_the_checker_of_a_file_has_no_complaint(command: list[str]) -> None:
    if shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}")

    done = subprocess.run(command, cwd=DEPLOY, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
