import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from server.models.machine import (
    memory_limit_bytes,
    process_age_seconds,
    resident_bytes,
    usable_cores,
)

MACHINE_BYTES = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


@pytest.mark.parametrize(
    ("quota", "expected"), [("max 100000", 10_000), ("100000 100000", 1), ("20000 100000", 1), ("", 10_000)]
)
def test_a_containers_quota_bounds_the_cores(tmp_path: Path, quota: str, expected: int) -> None:
    path = tmp_path / "cpu.max"
    path.write_text(quota)

    assert usable_cores(path, tmp_path) == min(expected, len(os.sched_getaffinity(0)))


def test_an_old_cgroups_quota_counts_too(tmp_path: Path) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text("50000\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")

    assert usable_cores(tmp_path / "none", tmp_path) == 1


def test_no_quota_in_an_old_cgroup_is_minus_one(tmp_path: Path) -> None:
    (tmp_path / "cpu.cfs_quota_us").write_text("-1\n")
    (tmp_path / "cpu.cfs_period_us").write_text("100000\n")

    assert usable_cores(tmp_path / "none", tmp_path) == len(os.sched_getaffinity(0))


@pytest.mark.skipif(not hasattr(ctypes.CDLL(None), "malloc_trim"), reason="needs glibc")
def limits(tmp_path: Path, own: str, **files: str) -> int:
    """The limit that a process in the cgroups `own` finds, among files named by their path with "__" for "/"."""
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        path = tmp_path / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(path.name.replace("_max", ".max").replace("_limit", ".limit")).write_text(text)
    return memory_limit_bytes(tmp_path, tmp_path / "own")


def test_a_containers_memory_is_its_limit(tmp_path: Path) -> None:
    assert limits(tmp_path, "0::/", memory_max="1073741824\n") == 1 << 30


def test_the_least_limit_of_the_cgroups_above_counts(tmp_path: Path) -> None:
    own = "0::/a.slice/b.service\n"

    assert (
        limits(
            tmp_path, own, a__memory_max="1", **{"a.slice__memory_max": "4096", "a.slice__b.service__memory_max": "max"}
        )
        == 4096
    )


def test_an_old_cgroups_memory_counts_too_even_where_its_path_is_the_hosts(tmp_path: Path) -> None:
    own = "5:cpu:/docker/abc\n4:memory:/docker/abc\n0::/\n"

    assert limits(tmp_path, own, memory__memory_limit_in_bytes="536870912") == 1 << 29


def test_without_a_limit_memory_is_the_machines(tmp_path: Path) -> None:
    assert limits(tmp_path, "0::/\n", memory_max="max") == MACHINE_BYTES
    assert memory_limit_bytes(tmp_path, tmp_path / "none") == MACHINE_BYTES


def test_cores_and_memory_are_read_once(tmp_path: Path) -> None:
    (tmp_path / "cpu.max").write_text("100000 100000")
    (tmp_path / "own").write_text("0::/\n")
    (tmp_path / "memory.max").write_text("4096")
    for _ in range(2):
        assert usable_cores(tmp_path / "cpu.max", tmp_path) == 1
        assert memory_limit_bytes(tmp_path, tmp_path / "own") == 4096
        for name in ("cpu.max", "own", "memory.max"):
            (tmp_path / name).unlink(missing_ok=True)


def test_a_process_has_some_memory() -> None:
    assert 1 << 20 < resident_bytes() < MACHINE_BYTES


def test_as_many_files_may_be_open_as_the_hard_limit_allows() -> None:
    script = (
        "import resource as r; from server.models.machine import raise_file_limit;"
        "r.setrlimit(r.RLIMIT_NOFILE, (100, 200)); print(raise_file_limit(), r.getrlimit(r.RLIMIT_NOFILE))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)

    assert done.stdout == "200 (200, 200)\n"


def test_a_process_gets_older() -> None:
    before = process_age_seconds()

    assert 0.0 < before < process_age_seconds()
