"""How soon the server serves, how much memory it holds, that it has no torch and reports to nobody.

    python -m tests.acceptance.start_up
    python -m tests.acceptance.start_up --python .venv/bin/python --torch-free

Time runs from the start of the process to health SERVING. Memory is read from /proc, once it serves and again after
200 sentences by 32 callers. `--torch-free` also demands that the interpreter has no torch installed. ONNX Runtime's
telemetry (on by default from 1.29) is taken as off when the server has none of its store open.
"""

import argparse
import os
import platform
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import grpc

from tests.acceptance.calls import DEFAULT_SENTENCES, Languages, open_stub, read_sentences, translate_concurrently
from tests.acceptance.report import EXIT_NOT_RUN, Check, print_checks
from tests.acceptance.server_process import ServerNotServing, ServerProcess, running_server

_CALLERS = 32
_TORCH_INSTALLED = "import importlib.util, sys; sys.exit(importlib.util.find_spec('torch') is None)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Memory of a process in MiB.

    Attributes:
        resident: What it holds now.
        peak: The most that it held.
    """

    resident: float
    peak: float

    def __str__(self) -> str:
        return f"{self.resident:.0f} MiB, peak {self.peak:.0f} MiB"


def read_memory(pid: int) -> Memory:
    """Reads resident memory from /proc.

    Args:
        pid: The process.

    Returns:
        VmRSS and VmHWM.
    """
    lines = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace").splitlines()
    fields = dict(line.split(":", 1) for line in lines)
    resident, peak = (int(fields[name].split()[0]) / 1024 for name in ("VmRSS", "VmHWM"))
    return Memory(resident=resident, peak=peak)


def torch_files(pid: int) -> list[str]:
    """Lists the files of torch that a process has mapped.

    Args:
        pid: The process.

    Returns:
        Paths from /proc; empty when it has not loaded torch, which cannot run without its libraries.
    """
    maps = Path(f"/proc/{pid}/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    paths = {line.split(maxsplit=5)[5] for line in maps if len(line.split(maxsplit=5)) == 6}
    return sorted(
        path for path in paths if "torch" in Path(path).parts or Path(path).name.startswith(("libtorch", "libc10"))
    )


def telemetry_files(pid: int) -> list[str]:
    """Lists the open files of a process that are ONNX Runtime's store of telemetry events.

    Args:
        pid: The process.

    Returns:
        Paths from /proc; empty when nothing is collected.
    """
    paths = {entry.readlink() for entry in Path(f"/proc/{pid}/fd").iterdir() if entry.is_symlink()}
    return sorted(str(path) for path in paths if ".onnxruntime" in path.parts)


def translate_sample(server: ServerProcess) -> int:
    """Translates the sample sentences, one per call, and returns how many were answered."""
    calls = [([sentence], 4) for sentence in read_sentences(DEFAULT_SENTENCES, 200)]
    with open_stub(server.address) as stub:
        replies = translate_concurrently(stub, calls, Languages(), callers=_CALLERS)
    return sum(not isinstance(reply, grpc.RpcError) for reply in replies)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.start_up", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--runs", type=int, default=5, help="how often it is started (%(default)s)")
    parser.add_argument("--limit-seconds", type=float, default=3.0, help="the bar for the median (%(default)s)")
    parser.add_argument("--python", default=sys.executable, help="interpreter that runs the server (this one)")
    parser.add_argument("--torch-free", action="store_true", help="fail if that interpreter has torch installed")
    parser.add_argument("--variant", help="variant to serve (the server's choice)")
    parser.add_argument("--bundle", type=Path, help="bundle to serve (the built-in one)")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Starts the server several times and returns the exit status."""
    options = parse_arguments(arguments)
    flags = ["--variant", options.variant] if options.variant else []
    flags += ["--bundle", str(options.bundle)] if options.bundle else []
    seconds, exit_codes, num_answered = [], [], 0
    try:
        for run in range(options.runs):
            with running_server(flags, python=options.python) as server:
                seconds.append(server.seconds_to_serving)
                at_start, loaded = read_memory(server.process.pid), torch_files(server.process.pid)
                if run == options.runs - 1:
                    num_answered = translate_sample(server)
                    after_calls, telemetry = read_memory(server.process.pid), telemetry_files(server.process.pid)
            exit_codes.append(server.process.returncode)
    except ServerNotServing as error:
        print(error, file=sys.stderr)
        return EXIT_NOT_RUN
    installed = subprocess.run([options.python, "-c", _TORCH_INSTALLED], check=False).returncode == 0
    median = statistics.median(seconds)
    spread = ", ".join(f"{each:.2f}" for each in seconds)
    limit = options.limit_seconds
    torch_installed = Check("torch installed beside it", "yes" if installed else "no")
    if options.torch_free:
        torch_installed = replace(torch_installed, bar="no", passed=not installed)
    checks = [
        Check("machine", f"{len(os.sched_getaffinity(0))} cores, {platform.machine()}, {platform.python_version()}"),
        Check(f"start to SERVING, median of {options.runs}", f"{median:.2f} s", f"< {limit:g} s", median < limit),
        Check("each start", f"{spread} s"),
        Check("resident memory when SERVING", str(at_start)),
        Check(f"after 200 sentences by {_CALLERS} callers", str(after_calls)),
        Check("sentences answered", str(num_answered), "200", num_answered == 200),
        Check("torch in the process", ", ".join(loaded) or "no", "no", not loaded),
        torch_installed,
        Check("telemetry store open", telemetry[0] if telemetry else "no", "no", not telemetry),
        Check("exit code after SIGTERM", ", ".join(map(str, exit_codes)), "0", not any(exit_codes)),
    ]
    return print_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
