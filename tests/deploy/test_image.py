"""The image serves in locked containers, and stops without losing a call.

These tests run the image of `make image` with podman, and are skipped where one of the two is missing.
"""

import random
import shutil
import socket
import subprocess
import threading
import time
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
import yaml

from babelserve import Client, Unavailable
from tests.deploy.test_kubernetes import by_name, kustomized, needs

ROOT = Path(__file__).parents[2]
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
IMAGE = f"localhost/babelserve:{VERSION}"
BUNDLES = "/opt/babelserve/lib/python3.11/site-packages/server/builtin/."
DRAIN_DELAY_SECONDS = 5.0
LOCKS = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--memory=1g", "--pids-limit=128"]


def podman(*arguments: str, given: str | None = None) -> str:
    done = subprocess.run(["podman", *arguments], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def has_image() -> bool:
    return shutil.which("podman") is not None and (
        subprocess.run(["podman", "image", "exists", IMAGE], capture_output=True, check=False).returncode == 0
    )


pytestmark = [
    pytest.mark.skipif(not has_image(), reason=f"needs podman and {IMAGE} (`make image`)"),
]


@contextmanager
def client_of(port: int) -> Iterator[Client]:
    """A client that tries each call once, when the server has started."""
    with Client(f"127.0.0.1:{port}", max_attempts=1, watch_health=False) as client:
        until = time.monotonic() + 60
        while True:
            try:
                client.list_models()
                break
            except Unavailable:
                assert time.monotonic() < until, "the container does not serve"
                time.sleep(0.1)
        yield client


def translation(client: Client, text: str) -> str:
    return client.translate([text], target="de").translations[0].text


def free_port() -> int:
    """Of all addresses, and below the range from which the kernel takes ports for whoever calls out."""
    while True:
        with closing(socket.socket()) as held, suppress(OSError):
            held.bind(("", random.randrange(20_000, 32_000)))
            port: int = held.getsockname()[1]
            return port


@pytest.fixture
def port() -> int:
    return free_port()


@pytest.fixture(params=["10001:10001", "1000710000:0"])
def container(request: pytest.FixtureRequest, port: int) -> Iterator[str]:
    """A container of the image, as a pod that Kubernetes restricts, and of a user that the image knows or not."""
    flags = [*LOCKS, "--tmpfs=/tmp:size=16m", f"--user={request.param}", f"--publish=127.0.0.1:{port}:50051"]
    name = podman("run", "--detach", *flags, IMAGE)
    yield name
    podman("rm", "--force", "--time=0", name)


def test_it_has_no_rights_and_answers_all_calls_before_it_ends(container: str, port: int) -> None:
    has_ended = threading.Event()

    with client_of(port) as client, ThreadPoolExecutor() as callers:

        def call(number: int) -> list[str]:
            answers = []
            while not has_ended.is_set():
                answers.append(translation(client, f"There are {number} dogs in the garden."))
            return answers

        process = Path("/proc", podman("inspect", "--format={{.State.Pid}}", container))
        rights = dict(line.split(":\t", 1) for line in (process / "status").read_text(encoding="utf-8").splitlines())
        calls = {number: callers.submit(call, number) for number in range(2, 6)}
        time.sleep(1)
        podman("kill", "--signal=TERM", container)
        time.sleep(DRAIN_DELAY_SECONDS - 1)
        has_ended.set()
        answers = {number: set(called.result()) for number, called in calls.items()}

    assert (rights["CapEff"].strip("0"), rights["NoNewPrivs"], rights["Seccomp"]) == ("", "1", "2")
    assert podman("wait", container) == "0"
    for number, texts in answers.items():
        (text,) = texts
        assert f"{number} Hunde" in text


def test_it_has_an_sbom_labels_and_no_torch() -> None:
    show = "import json, pathlib, sys; print(pathlib.Path(sys.prefix, 'sbom.cdx.json').read_text())"
    sbom = yaml.safe_load(podman("run", "--rm", *LOCKS, "--entrypoint=python", IMAGE, "-c", show))
    versions = {part["name"]: part["version"] for part in sbom["components"]}
    labels = podman("inspect", "--format={{index .Labels `org.opencontainers.image.version`}} {{.User}}", IMAGE)

    assert versions["babelserve"] == VERSION
    assert {"onnxruntime", "starlette", "grpcio"} <= versions.keys()
    assert {"torch", "pip", "onnxruntime-gpu"} & versions.keys() == set()
    assert labels == f"{VERSION} 10001:10001"


@contextmanager
def pod(*components: str) -> Iterator[Client]:
    """A client of one pod of the Deployment, which mounts a glossary as Kubernetes would."""
    deployment = by_name(kustomized(components))["Deployment", "babelserve"]
    deployment["spec"]["replicas"] = 1
    (server,) = deployment["spec"]["template"]["spec"]["containers"]
    server["image"] = IMAGE
    port = free_port()
    server["ports"] = [{"containerPort": 50051, "hostPort": port}]  # podman would publish all, by their own numbers
    glossaries = {"kind": "ConfigMap", "metadata": {"name": "babelserve-glossaries"}}
    terms = {"apiVersion": "v1", "data": {"it.en-de.tsv": "user\tAnwender\n"}}
    text = yaml.safe_dump_all([glossaries | terms, deployment])

    try:
        podman("play", "kube", "--network=podman", "-", given=text)
        with client_of(port) as client:
            yield client
    finally:
        podman("play", "kube", "--down", "-", given=text)
        podman("volume", "rm", "--force", "babelserve-glossaries")


@needs("kubectl")
def test_the_deployment_runs_as_a_pod_with_glossaries() -> None:
    with pod() as client:
        result = client.translate(["The user is here."], target="de", glossaries=["it.en-de"])

    assert "Anwender" in result.translations[0].text


@needs("kubectl")
def test_a_pod_serves_the_models_of_its_volume_and_refuses_one_with_a_flipped_bit() -> None:
    spoil = f"""
import pathlib, shutil
shutil.copytree("{BUNDLES}", "/models", dirs_exist_ok=True)
weights = next(pathlib.Path("/models/de-en/cpu-int8").glob("*.bin"))
content = bytearray(weights.read_bytes())
content[1000] ^= 1
weights.write_bytes(content)
"""
    volume = "--volume=babelserve-models:/models"
    podman("run", "--rm", "--user=0", volume, "--entrypoint=python", IMAGE, "-c", spoil)
    try:
        with pod("models") as client:
            assert translation(client, "A dog runs.") == "Ein Hund läuft."
            with pytest.raises(Unavailable, match="model de-en cannot be loaded"):
                client.translate(["Ein Hund läuft."], target="en")
    finally:
        podman("volume", "rm", "--force", "babelserve-models")
