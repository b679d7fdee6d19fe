import ctypes
import os
from pathlib import Path

import numpy as np
import pytest

from server.models.machine import has_cuda_device, has_int8_dot_product, release_freed_memory, usable_cores


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("flags\t\t: fpu sse avx2 avx512f", False),
        ("flags\t\t: fpu avx2 avx_vnni", True),
        ("flags\t\t: avx512_vnni", True),
        ("Features\t: fp asimd asimddp", True),
        ("", False),
    ],
)
def test_int8_dot_products_are_read_off_the_processor(tmp_path: Path, flags: str, expected: bool) -> None:
    path = tmp_path / "cpuinfo"
    path.write_text(f"processor\t: 0\n{flags}\nbugs\t: none\n")

    assert has_int8_dot_product(path) is expected


def test_a_machine_that_says_nothing_has_none(tmp_path: Path) -> None:
    assert has_int8_dot_product(tmp_path / "none") is False
    assert isinstance(has_cuda_device(), bool)


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
def test_freed_memory_is_released() -> None:
    def resident_pages() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])

    arrays = [np.ones(256) for _ in range(20_000)]  # 2 KiB each, 40 MiB
    last = np.ones(256)  # keeps the end of the heap in use
    del arrays
    before = resident_pages()

    release_freed_memory()

    assert last.all()
    assert (before - resident_pages()) * os.sysconf("SC_PAGESIZE") > 20 << 20
