"""What keeps rooms apart, beside import-linter (`make check`; its contracts are in pyproject.toml), and files small."""

import ast
import importlib.metadata
import inspect
import statistics
import subprocess
import sys
from pathlib import Path

import grpc
import pytest

import babelserve.errors
import server.errors

ROOT = Path(__file__).parents[1]
ROOMS = ("model", "export", "server", "babelserve")
SOURCES = [path for room in ROOMS for path in (ROOT / room).rglob("*.py") if "_pb2" not in path.name]
SOURCES += [ROOT / "babelserve_commands.py", ROOT / "deploy" / "demo.py", *(ROOT / "docs").rglob("*.py")]
CLIENT = {f"babelserve.{path.stem}" for path in (ROOT / "babelserve").glob("[a-z]*.py")} - {"babelserve.quiet"}
WITHOUT_TESTS = ("__init__.py", "__main__.py")  # a docstring, and what tests/e2e starts


@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("server.app", {"torch", "onnx", "sacrebleu", "model", "export", *CLIENT}),
        ("server.__main__", {"torch", "onnx", "sacrebleu", "model", "export", *CLIENT}),
        (
            "babelserve.__main__",
            {"torch", "onnx", "onnxruntime", "numpy", "sentencepiece", "model", "export", "server"},
        ),
        ("babelserve.v1.translation_pb2_grpc", CLIENT),
    ],
)
def test_a_fresh_interpreter_loads_nothing_heavy_or_foreign(module: str, unwanted: set[str]) -> None:
    script = f"import sys, {module}; print(sorted({unwanted} & set(sys.modules)))"

    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False)

    assert (done.stdout, done.stderr) == ("[]\n", "")


def test_no_other_distribution_ships_our_top_level_names() -> None:
    owners = importlib.metadata.packages_distributions()

    # In an editable checkout nobody is named, in a wheel install we are.
    ours = {room: {"babelserve-client" if room == "babelserve" else "babelserve"} for room in ROOMS}
    assert {room: set(owners.get(room, ())) - ours[room] for room in ROOMS} == {room: set() for room in ROOMS}


def test_every_room_says_what_it_is_for() -> None:
    for room in ROOMS:
        first_line = (ROOT / room / "__init__.py").read_text().splitlines()[0]
        assert first_line.startswith(('"""', 'r"""')), room


def test_every_error_of_the_server_has_a_code_that_the_client_knows() -> None:
    errors = [
        error
        for _, error in inspect.getmembers(server.errors, inspect.isclass)
        if issubclass(error, server.errors.TranslationError) and error is not server.errors.TranslationError
    ]

    assert errors
    for error in errors:
        assert grpc.StatusCode[error.code.name] in babelserve.errors.CLASSES, error


def test_tests_of_the_server_mirror_its_files() -> None:
    files = {path.relative_to(ROOT / "server") for path in SOURCES if path.is_relative_to(ROOT / "server")}
    files -= {Path("network.py"), Path("fronts/backend.py")}  # protocols only
    tests = {path.relative_to(ROOT / "tests" / "server") for path in (ROOT / "tests" / "server").rglob("test_*.py")}

    mirrored = {path.with_name(f"test_{path.name}") for path in files if path.name not in WITHOUT_TESTS}
    parts = {test for test in tests if any(test.match(f"{file.with_suffix('')}_*.py") for file in mirrored)}
    assert sorted(mirrored - tests) == []  # what lacks its tests
    assert sorted(tests - mirrored - parts) == []  # what has lost its file


def test_every_folder_of_tests_is_a_package() -> None:
    folders = {path.parent for path in (ROOT / "tests").rglob("test_*.py")}

    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_files_are_short() -> None:
    num_lines = {
        path.relative_to(ROOT).as_posix(): len(path.read_text(encoding="utf-8").splitlines()) for path in SOURCES
    }

    assert {name: lines for name, lines in num_lines.items() if lines > 300} == {}
    assert statistics.median(num_lines.values()) <= 150


def test_functions_are_short() -> None:
    num_lines = {
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}": (node.end_lineno or node.lineno) - node.lineno + 1
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }

    assert {name: lines for name, lines in num_lines.items() if lines > 60} == {}
    assert statistics.quantiles(num_lines.values(), n=10)[-1] <= 30
