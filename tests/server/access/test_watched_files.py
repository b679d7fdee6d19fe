"""Files of a folder that is swapped as Kubernetes does it: `..data` is a link, and the files are links through it."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from server.access.watched_files import MAX_FILE_BYTES, WatchedFiles
from server.errors import SettingsError
from server.telemetry.access_metrics import AccessMetrics

FILES = ("one", "two")


def read(contents: Mapping[str, bytes]) -> list[str]:
    if b"bad" in contents.values():
        raise SettingsError(["--one: is bad", "--two: too"])
    return [content.decode() for content in contents.values()]


@pytest.fixture
def registry() -> CollectorRegistry:
    return CollectorRegistry()


@pytest.fixture
def mount(tmp_path: Path) -> Path:
    """Holds "1" and "1"."""
    write(tmp_path, "1", "1")
    for name in FILES:
        (tmp_path / name).symlink_to(f"..data/{name}")
    return tmp_path


@pytest.fixture
def watched(mount: Path, registry: CollectorRegistry) -> WatchedFiles[list[str]]:
    return WatchedFiles("keys", {f"--{name}": mount / name for name in FILES}, read, AccessMetrics(registry))


def write(mount: Path, *contents: str) -> None:
    """Swaps the folder."""
    folder = mount / f"..{len(list(mount.iterdir()))}"
    folder.mkdir()
    for name, content in zip(FILES, contents, strict=True):
        (folder / name).write_text(content)
    link = mount / "..new"
    link.symlink_to(folder.name)
    link.replace(mount / "..data")


def reloads(registry: CollectorRegistry) -> tuple[float | None, ...]:
    """How many went well and badly, and whether the last went well."""
    ok, failed = (
        registry.get_sample_value("babelserve_reloads_total", {"files": "keys", "outcome": outcome})
        for outcome in ("ok", "failed")
    )
    return ok, failed, registry.get_sample_value("babelserve_last_reload_successful", {"files": "keys"})


def test_what_is_there_at_first_is_the_value(watched: WatchedFiles[list[str]], registry: CollectorRegistry) -> None:
    watched.poll()

    assert watched.value == ["1", "1"]
    assert reloads(registry) == (0, 0, 1)


def test_a_swapped_folder_is_taken_at_the_second_poll(
    watched: WatchedFiles[list[str]], mount: Path, registry: CollectorRegistry
) -> None:
    write(mount, "2", "2")

    watched.poll()
    assert watched.value == ["1", "1"]
    watched.poll()
    assert watched.value == ["2", "2"]
    watched.poll()
    assert reloads(registry) == (1, 0, 1)


def test_files_that_are_written_one_after_the_other_are_taken_together(
    watched: WatchedFiles[list[str]], mount: Path, registry: CollectorRegistry
) -> None:
    values = []
    for name in FILES:
        (mount / name).write_text("bad" if name == "one" else "2")
        watched.poll()
        values.append(watched.value)
    (mount / "one").write_text("2")
    watched.poll()
    watched.poll()

    assert [*values, watched.value] == [["1", "1"], ["1", "1"], ["2", "2"]]
    assert reloads(registry) == (1, 0, 1)


def test_what_is_bad_leaves_the_old_value_and_is_told_once(
    watched: WatchedFiles[list[str]], mount: Path, registry: CollectorRegistry, caplog: pytest.LogCaptureFixture
) -> None:
    write(mount, "bad", "2")

    for _ in range(10):
        watched.poll()

    assert watched.value == ["1", "1"]
    assert reloads(registry) == (0, 1, 0)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "new keys not taken, the old stay in force: --one: is bad; --two: too"


def test_once_it_is_good_again_it_is_taken(
    watched: WatchedFiles[list[str]], mount: Path, registry: CollectorRegistry
) -> None:
    for contents in (("bad", "2"), ("1", "1")):
        write(mount, *contents)
        watched.poll()
        watched.poll()

    assert watched.value == ["1", "1"]
    assert reloads(registry) == (1, 1, 1)


def test_asked_for_it_is_taken_at_once_and_told_again(
    watched: WatchedFiles[list[str]], mount: Path, registry: CollectorRegistry
) -> None:
    write(mount, "2", "2")
    watched.poll(at_once=True)
    assert watched.value == ["2", "2"]

    write(mount, "bad", "2")
    watched.poll(at_once=True)
    watched.poll(at_once=True)

    assert reloads(registry) == (1, 2, 0)


def test_files_that_are_missing_or_too_long_leave_the_old_value(
    watched: WatchedFiles[list[str]], mount: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (mount / "one").unlink()
    (mount / "two").write_text("2" * (MAX_FILE_BYTES + 1))

    watched.poll(at_once=True)

    assert watched.value == ["1", "1"]
    (record,) = caplog.records
    assert f"--one: {mount / 'one'} cannot be read: No such file or directory; --two: " in record.getMessage()
    assert record.getMessage().endswith("is longer than 1048576 bytes")


def test_without_anything_good_there_is_no_value(tmp_path: Path, registry: CollectorRegistry) -> None:
    with pytest.raises(SettingsError, match=r"--one: .* cannot be read"):
        WatchedFiles("keys", {"--one": tmp_path / "one"}, read, AccessMetrics(registry))


def test_a_fifo_is_refused_without_waiting_for_its_writer(
    watched: WatchedFiles[list[str]], mount: Path, registry: CollectorRegistry
) -> None:
    (mount / "one").unlink()
    os.mkfifo(mount / "one")

    watched.poll(at_once=True)

    assert watched.value == ["1", "1"]
    assert reloads(registry)[2] == 0.0
