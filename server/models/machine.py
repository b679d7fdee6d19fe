"""What the operating system says of this machine: cores, memory, open files."""

import functools
import math
import os
import re
import resource
import time
from pathlib import Path

_CGROUP_2_QUOTA = Path("/sys/fs/cgroup/cpu.max")
_CGROUP_1 = Path("/sys/fs/cgroup/cpu")
_CGROUPS = Path("/sys/fs/cgroup")
_OWN_CGROUPS = Path("/proc/self/cgroup")
_OWN_STATUS = Path("/proc/self/status")
_OWN_STAT = Path("/proc/self/stat")


@functools.cache  # for each model that is offered it is asked whenever any model comes or goes
def usable_cores(cgroup_2_quota: Path = _CGROUP_2_QUOTA, cgroup_1: Path = _CGROUP_1) -> int:
    """Returns the cores that this process may keep busy: its affinity, bounded by a container's quota; at least 1."""
    cores = len(os.sched_getaffinity(0))
    quota, _, period = _read(cgroup_2_quota).partition(" ")
    if not quota:
        quota, period = _read(cgroup_1 / "cpu.cfs_quota_us"), _read(cgroup_1 / "cpu.cfs_period_us")
    try:
        limit = float(quota) / float(period)
    except (ValueError, ZeroDivisionError):  # "max", or no cgroup
        return cores
    return max(1, min(cores, math.ceil(limit))) if limit > 0 else cores


@functools.cache
def memory_limit_bytes(cgroups: Path = _CGROUPS, own_cgroups: Path = _OWN_CGROUPS) -> int:
    """Returns the memory that this process may take: the least limit of its cgroups (version 1 or 2), or all."""
    found = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")]
    for line in _read(own_cgroups).splitlines():
        _, controllers, path = line.split(":", 2)
        if controllers in ("", "memory"):
            mount, file = (cgroups / "memory", "memory.limit_in_bytes") if controllers else (cgroups, "memory.max")
            own = mount / path.strip("/")
            # A container sees its own cgroup as the root, but may read the path that the host has for it.
            folders = [own, *own.parents[: len(own.relative_to(mount).parts)], mount]
            found += [int(text) for text in (_read(folder / file) for folder in folders) if text.isdigit()]
    return min(found)


def resident_bytes(own_status: Path = _OWN_STATUS) -> int:
    """Returns the memory that this process has."""
    return int(re.findall(r"^VmRSS:\s+(\d+) kB", _read(own_status), re.MULTILINE)[0]) << 10


def process_age_seconds() -> float:
    """Returns the seconds since this process began, including the time to load the interpreter and its modules."""
    start_ticks = int(_read(_OWN_STAT).rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - start_ticks / os.sysconf("SC_CLK_TCK")


def raise_file_limit() -> int:
    """Allows this process to open as many files as its hard limit says. Returns that number."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""
