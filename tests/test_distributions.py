"""The two distributions of this repository: `babelserve`, and `babelserve-client`, which needs nothing of the other."""

import re
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from collections.abc import Iterable, Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from hatchling.builders.wheel import WheelBuilder
from packaging.requirements import Requirement

from tests.acceptance.server_process import running_server

ROOT = Path(__file__).parents[1]
SERVER, CLIENT = (
    tomllib.loads((ROOT / name).read_text())["project"] for name in ("pyproject.toml", "babelserve/pyproject.toml")
)


@pytest.fixture(scope="module")
def client_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=ROOT / "babelserve", capture_output=True, check=True)
    (wheel,) = directory.iterdir()
    return wheel


@pytest.fixture(scope="module")
def python(client_wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that has the client's wheel, what it says it depends on, and nothing else."""
    directory = tmp_path_factory.mktemp("environment")
    venv.create(directory, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", "venv", {"base": str(directory)}))
    with zipfile.ZipFile(client_wheel) as wheel:
        wheel.extractall(packages)
    for each in required(CLIENT["dependencies"], {}).values():
        for file in each.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                (packages / file).parent.mkdir(parents=True, exist_ok=True)
                (packages / file).symlink_to(str(each.locate_file(file)))
    return directory / "bin" / "python"


def required(requirements: Iterable[str], found: dict[str, Distribution]) -> dict[str, Distribution]:
    """What pip would install for them: all that they need, and so on, as it is installed here."""
    for requirement in map(Requirement, requirements):
        if requirement.name not in found and (requirement.marker is None or requirement.marker.evaluate({"extra": ""})):
            found[requirement.name] = distribution(requirement.name)
            required(found[requirement.name].requires or (), found)
    return found


def said_versions() -> Iterator[tuple[str, str]]:
    """Versions of ours in what operators copy: tags of images and names of wheels."""
    pattern = re.compile(r"\bbabelserve(?:_client)?[:-](\d+\.\d+\.\d+)|^(?:appV|v)ersion: (.*)$", re.MULTILINE)
    for folder in ("deploy", "docs/guides"):
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in {".md", ".yaml"} or path.name == "Dockerfile":
                for image, chart in pattern.findall(path.read_text(encoding="utf-8")):
                    yield path.name, image or chart


def test_the_version_is_the_same_everywhere() -> None:
    version = SERVER["version"]

    said = set(said_versions())

    assert CLIENT["version"] == version
    assert f"babelserve-client=={version}" in SERVER["dependencies"]
    assert {name for name, _ in said} >= {"Dockerfile", "Chart.yaml", "compose.yaml", "deployment.yaml", "serve.md"}
    assert {other for _, other in said} == {version}
    assert f"\n## [{version}] - " in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("script", ["babelserve", "babelserve-translate", "babelserve-models"])
def test_a_command_tells_its_version(script: str) -> None:
    command = [f"{sysconfig.get_path('scripts')}/{script}", "--version"]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    assert done.stdout == f"{script} {SERVER['version']}\n"


def test_the_clients_wheel_has_one_name_and_is_small(client_wheel: Path) -> None:
    with zipfile.ZipFile(client_wheel) as wheel:
        names = {file.filename for file in wheel.infolist()}
        num_bytes = sum(file.file_size for file in wheel.infolist())

    assert {name.partition("/")[0] for name in names} == {
        "babelserve",
        f"babelserve_client-{CLIENT['version']}.dist-info",
    }
    sources = {path.relative_to(ROOT).as_posix() for path in (ROOT / "babelserve").rglob("*.py*")}
    assert {name for name in names if name.startswith("babelserve/")} == {
        name for name in sources if "__pycache__" not in name
    } | {"babelserve/py.typed", "babelserve/explanation/page.css", "babelserve/explanation/page.js"}
    assert num_bytes < 2e6


def test_the_servers_wheel_has_the_names_that_are_documented() -> None:
    names = {file.distribution_path for file in WheelBuilder(str(ROOT)).recurse_included_files()}

    assert {name.partition("/")[0] for name in names} == {"babelserve_commands.py", "export", "model", "server"}
    assert "server/builtin/en-de/manifest.json" in names
    assert [name for name in names if name.endswith((".pt", ".pyc"))] == []


def test_both_distributions_have_the_same_licence() -> None:
    assert (ROOT / "babelserve" / "LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def test_the_client_alone_translates(python: Path, tmp_path: Path) -> None:
    script = (
        "from importlib.util import find_spec; print(*filter(find_spec, ('babelserve', 'server', 'model', 'numpy')))"
    )
    there = subprocess.run([python, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)

    with running_server([]) as server:
        command = [
            str(python),
            "-m",
            "babelserve",
            "--address",
            server.address,
            "Two dogs are running through the snow.",
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    assert there.stdout == "babelserve\n"
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Zwei Hunde rennen durch den Schnee.\n"
