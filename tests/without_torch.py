"""Stands in for `tests/conftest.py` on a Python without PyTorch (`make test-without-torch`): skips what needs it.

Of a test with many cases it keeps the first. Another Python may lack a module or a syntax, which any case meets.
"""

import re
from pathlib import Path

import pytest


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Leaves out the files that import PyTorch, or our rooms that do."""
    needs_torch = re.compile(r"^(from|import) (torch|onnx|model|export|tests\.chaos\.hostile_bundles)\b", re.MULTILINE)
    return True if collection_path.is_file() and needs_torch.search(collection_path.read_text("utf-8")) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keeps the first case of each test."""
    tests = {item.nodeid.partition("[")[0]: item for item in reversed(items)}
    items[:] = reversed(tests.values())


@pytest.fixture(scope="session")
def tiny_bundle() -> None:
    pytest.skip("needs torch, which exports the bundle")


@pytest.fixture(scope="session")
def one_pass_bundle() -> None:
    pytest.skip("needs torch, which exports the bundle")
