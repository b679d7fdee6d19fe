"""The device memory that the CUDA variant takes, counted without a GPU.

    python -m tests.acceptance.cuda_memory [BUNDLE] [--max-rows 128]

The server's own runner and decoder run on the real CUDA provider, with CUDA libraries that do nothing
(`tests.acceptance.stub_cuda`): memory is asked for, graphs are captured and replayed, and numbers mean nothing. What is
counted has to be what `server.models.device_memory` says before a model is loaded, and runs while it serves must take
no more. CUDA's context and code, and kernels of other GPUs than the stub's, are not counted. It needs onnxruntime-gpu,
a C compiler and readelf.
"""

import argparse
import ctypes
import os
import random
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnxruntime

from server.bundle.bundle import Bundle, open_bundle
from server.errors import SettingsError
from server.models.device_memory import plan_device_memory
from server.network import StepInputs, StepKind
from server.runtime.cuda_device import CudaDevice
from server.runtime.runner import DeviceRunner, open_runner
from server.settings.settings import BUILTIN_BUNDLE, Settings
from tests.acceptance.report import EXIT_NOT_RUN, EXIT_TOOL_MISSING, Check, print_checks
from tests.acceptance.stub_cuda import TOOLS, load_stub_cuda

_PROVIDER_LIBRARY = Path(onnxruntime.__file__).parent / "capi" / "libonnxruntime_providers_cuda.so"
_VARIANT = "cuda-fp16"
_MAX_ENCODE_TOKENS = 4096  # the default on CUDA
_NUM_BATCHES = 50
_SPARE = 1.05  # times what was said that may be taken: allocations are rounded up, and constants are small
_LATER = 100 << 10  # bytes: row numbers of copies


def main(arguments: Sequence[str] | None = None) -> int:
    """Counts, prints the table and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.cuda_memory", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("bundle", type=Path, nargs="?", default=BUILTIN_BUNDLE, help="with a cuda-fp16 (the built-in)")
    parser.add_argument("--max-rows", type=int, default=128, help="as of the server (128)")
    options = parser.parse_args(arguments)
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if missing:
        print(f"SKIPPED: {', '.join(missing)} not found", file=sys.stderr)
        return EXIT_TOOL_MISSING
    if not _PROVIDER_LIBRARY.is_file():
        print(f"not found: {_PROVIDER_LIBRARY}", file=sys.stderr)
        return EXIT_NOT_RUN
    with tempfile.TemporaryDirectory() as folder:
        runtime = load_stub_cuda(_PROVIDER_LIBRARY, Path(folder))
        onnxruntime.preload_dlls = lambda: None  # or it would load real ones over them
        bundle = open_bundle(options.bundle, _VARIANT)
        status = print_checks(
            _checks(bundle, options.max_rows, lambda name: ctypes.c_size_t.in_dll(runtime, name).value)
        )
    sys.stdout.flush()
    os._exit(status)  # an orderly end would give the stubs' objects to functions that free real ones


def _checks(bundle: Bundle, max_rows: int, count: Callable[[str], int]) -> list[Check]:
    device = CudaDevice(name="stub", uuid=uuid.UUID(int=0), capability=(9, 0), cuda=(13, 0), total_bytes=1 << 34)
    plan = plan_device_memory(bundle.manifest, _VARIANT, Settings(max_rows=max_rows), device, 1)
    before = count("taken")
    runner = open_runner(bundle, _VARIANT, "cuda", max_encode_tokens=_MAX_ENCODE_TOKENS)
    assert isinstance(runner, DeviceRunner)
    weights = count("taken") - before
    decoder = runner.open_decoder(StepKind.PLAIN, max_rows)
    at_start = count("taken") - before
    rng = random.Random(0)
    for _ in range(_NUM_BATCHES):
        rows = rng.randint(1, max_rows)
        length = rng.randint(1, min(bundle.manifest.limits.max_source_tokens, max(1, _MAX_ENCODE_TOKENS // rows)))
        lengths = np.full(rows, length, np.int32)
        decoder.admit(0, runner.encode(np.zeros((rows, length), np.int64), lengths), [()] * rows)
        decoder.step(StepInputs(np.zeros(rows, np.int64), np.ones(rows, np.int32), lengths, top_k=rng.randint(1, 8)))
    later = count("taken") - before - at_start
    runs = at_start - weights - decoder.cache_bytes
    return [
        Check(
            "weights, as said",
            _mib(weights),
            f"at most {_mib(plan.weights * _SPARE)}",
            weights <= plan.weights * _SPARE,
        ),
        Check("caches, as said", _mib(decoder.cache_bytes), _mib(plan.caches), decoder.cache_bytes == plan.caches),
        Check("largest runs and graphs", _mib(runs)),
        Check("in all, at the start", _mib(at_start)),
        Check(f"taken by {_NUM_BATCHES} batches later", _mib(later), f"at most {_mib(_LATER)}", later <= _LATER),
        Check("steps captured", str(count("captures"))),
        Check("taken amid a capture", f"{count('taken_amid')} bytes", "0 bytes", not count("taken_amid")),
        _refusal(bundle, plan.weights // 4),
    ]


def _refusal(bundle: Bundle, arena_bytes: int) -> Check:
    """A bound that the weights do not fit into has to be refused as what it is."""
    said = "loaded"
    try:
        open_runner(bundle, _VARIANT, "cuda", arena_bytes=arena_bytes)
    except SettingsError as error:
        said = error.faults[0]
    bar = "device cuda: its memory does not suffice"
    return Check(f"a bound of {_mib(arena_bytes)}", said[: len(bar)], bar, said.startswith(bar))


def _mib(num_bytes: float) -> str:
    return f"{num_bytes / (1 << 20):.1f} MiB"


if __name__ == "__main__":
    sys.exit(main())
