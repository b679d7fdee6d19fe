"""Proves a bundle in a process of its own, because nothing else bounds what a graph takes of time and memory.

A graph may run for ever, ask for all memory or crash ONNX Runtime, while it is loaded as well as while it runs, and a
thread cannot be ended from outside. The process has a bound on its memory, and is killed at its deadline. It loads and
runs every graph of the bundle, as `server.models.checking` says. Only then does the server load the bundle itself.
"""

import asyncio
import json
import logging
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from server.bundle.bundle import open_bundle
from server.bundle.manifest import Manifest
from server.bundle.variants import VARIANTS
from server.children import Bounds, Ended, run_child
from server.errors import BundleError, StartupError
from server.models.choosing import can_run

# Half refuses good bundles on a busy machine, or large ones. Twice lets bad ones run longer than anybody waits.
_SECONDS = 20.0
_BYTES_PER_SECOND = 16 << 20
# What a proof may have of memory of its own. The built-in model takes 0.3 GB. Half refuses bundles with large
# vocabularies, and twice is what a bad bundle may take beside the server.
_OWN_BYTES = 768 << 20
_WEIGHTS_COPIES = 6  # what was read, what ONNX Runtime packs for each session, and what it holds while it packs
_MOST_FAULTS, _MOST_CHARACTERS = 25, 1000  # that a proof says, which a pipe has room for


class Unproved(BundleError):
    """A proof has not come to its end, maybe by no fault of the bundle: it was late or killed, or no process began."""


def proof_bounds(manifest: Manifest, variant: str) -> Bounds:
    """Returns what the proof of a variant may take."""
    bounds = size_bounds(manifest.variants[variant].weights_bytes)
    # CUDA maps more memory than there is.
    return bounds._replace(memory=None) if VARIANTS[variant].is_on_device and can_run(variant) else bounds


def size_bounds(num_bytes: int) -> Bounds:
    """Returns what weights of so many bytes may take."""
    return Bounds(_SECONDS + num_bytes / _BYTES_PER_SECOND, _OWN_BYTES + _WEIGHTS_COPIES * num_bytes)


async def prove(
    directory: Path,
    variant: str,
    bounds: Bounds,
    tell: Callable[[str], None] = lambda _: None,
    stderr: int = asyncio.subprocess.DEVNULL,
) -> list[str]:
    """Proves a variant of a bundle. If it is cancelled, the process has ended before it raises.

    Args:
        directory: of the bundle.
        variant: one of the manifest's.
        bounds: what it may take.
        tell: is told what is good.
        stderr: where warnings go, a file descriptor.

    Returns:
        What is wrong with the bundle; nothing if it is proved.

    Raises:
        Unproved: nobody knows what is wrong.
    """
    call = [str(directory), variant, bounds.memory]
    try:
        ended = await run_child("server.models.proof:main", call, bounds, stderr=stderr)
    except OSError as error:
        raise Unproved([f"{directory}: no process can be started to prove it: {error.strerror}"]) from error
    faults = _read(ended.output, tell)
    if faults is None and ended.is_late:
        raise Unproved([f"{directory}: proving {variant} has not ended within {bounds.seconds:.0f} s"])
    if faults is None and ended.code == -signal.SIGKILL:  # as the kernel ends it if memory is short
        raise Unproved([f"{directory}: {_end(ended, bounds)}"])
    return faults if faults is not None else [f"{directory}: {_end(ended, bounds)}"]


async def prove_all(directory: Path, tell: Callable[[str], None]) -> list[str]:
    """Proves all variants of a bundle, and lets warnings out; returns the faults of the first bad one.

    Args:
        directory: of the bundle.
        tell: is told what is good.

    Raises:
        BundleError: as `open_bundle`, and `Unproved`.
    """
    manifest = open_bundle(directory).manifest
    told: set[str] = set()
    stderr = sys.stderr.fileno() if sys.stderr else 2  # Python has none if it was closed, but the descriptor is open
    for variant in manifest.variants:

        def tell_once(line: str) -> None:
            if line not in told:
                told.add(line)
                tell(line)

        if faults := await prove(directory, variant, proof_bounds(manifest, variant), tell_once, stderr):
            return faults
    return []


def _read(output: bytes, tell: Callable[[str], None]) -> list[str] | None:
    """Reads what a proof has said; returns its faults, or None if it has not come to its end."""
    for line in output.decode(errors="replace").splitlines():
        try:
            kind, said = json.loads(line)
        except ValueError:  # it was killed while it wrote
            return None
        if kind == "faults":
            return list(map(str, said))
        tell(str(said))
    return None


def _end(ended: Ended, bounds: Bounds) -> str:
    most = f", which may have {bounds.memory >> 20} MiB of memory" if bounds.memory is not None else ""
    return f"the process that proves it{most}, {ended.how}"


def main(directory: str, variant: str, memory: int | None) -> None:
    """Is the process: proves, writes a line for what is good, and at the end the faults; then it ends at once."""
    output = os.dup(1)
    os.dup2(2, 1)  # so that what native libraries print is not read as ours
    # Here, for the process alone.
    from prometheus_client import CollectorRegistry  # noqa: PLC0415

    from server.models.checking import check_bundle  # noqa: PLC0415
    from server.settings.settings import Settings  # noqa: PLC0415
    from server.telemetry.metrics import Metrics  # noqa: PLC0415
    from server.telemetry.stderr import OneLineHandler  # noqa: PLC0415

    logging.basicConfig(handlers=[OneLineHandler()], level=logging.WARNING)
    faults: list[str] = []
    try:
        for line in check_bundle(Path(directory), Settings(lanes=1), Metrics(CollectorRegistry()), variant):
            _say(output, "good", line)
    except StartupError as error:
        faults = error.faults
    except MemoryError:
        faults = [f"{directory}: proving it takes more than {(memory or 0) >> 20} MiB of memory"]
    except Exception as error:  # noqa: BLE001  # whatever it is, the bundle is at fault
        faults = [f"{directory}: cannot be loaded: {type(error).__name__}: {error}"]
    _say(output, "faults", [fault[:_MOST_CHARACTERS] for fault in faults[:_MOST_FAULTS]])
    os._exit(0)  # threads may hang in native code


def _say(output: int, kind: str, said: object) -> None:
    os.write(output, json.dumps([kind, said]).encode() + b"\n")
