"""A command in parts: each prints its figures as they come, and a part that fails does not keep the next from running.

The time of a borrowed machine is short. So a part that would not end in time is left out, and what hangs is ended with
the stacks of all threads; the file of figures is written after every part.
"""

import argparse
import contextlib
import faulthandler
import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.bench.machine import describe_machine, versions
from tests.bench.record import commit_of
from tests.bench.text import ROOT
from tests.gpu.device import add, describe_device

DEVICES = ("cuda", "cpu")
_GRACE_SECONDS = 60.0  # beyond the budget, for a part that takes longer than it says


@dataclass(slots=True)
class Context:
    """What a part is given, and where it puts its figures.

    Attributes:
        device: "cuda" or "cpu".
        is_quick: few sentences, small models: no real figures.
        out: folder for files.
        work: folder for models, kept.
        options: further flags of the command.
        shared: what a part leaves to the ones behind it.
        stack: closed behind the last part.
    """

    device: str
    is_quick: bool
    out: Path
    work: Path
    options: argparse.Namespace
    shared: dict[str, Any] = field(default_factory=dict)
    stack: ExitStack = field(default_factory=ExitStack)
    figures: dict[str, Any] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)

    def figure(self, name: str, value: object) -> None:
        """Prints and keeps a number, or what JSON can hold."""
        self.figures[name] = value
        shown = f"{value:.6g}" if isinstance(value, float) else value
        print(f"  {name}: {shown}", flush=True)

    def check(self, name: str, value: float | str, is_met: bool, bar: str) -> None:
        """The same for one that has a bar; missing it makes the part a failed one, and does not end it."""
        self.figure(name, value)
        print(f"    {'ok' if is_met else 'FAILED'}: {bar}", flush=True)
        if not is_met:
            self.faults.append(f"{name}: {value}, not {bar}")


@dataclass(frozen=True, slots=True)
class Part:
    """One part: `seconds` is what it takes on a GPU at most, by which it is left out when too few are left."""

    name: str
    seconds: float
    run: Callable[[Context], None]


def _adds(context: Context) -> None:
    context.figure("device", describe_device(context.device))
    result = add(context.device)
    context.check("1 + 1", str(result), result == [2.0, 2.0], "[2.0, 2.0]")


_ADDS = Part("adds", 30.0, _adds)  # ahead of all others, which would mean nothing if it failed


def parser_of(name: str, description: str | None, parts: Sequence[Part]) -> argparse.ArgumentParser:
    """Returns the flags that every command has."""
    parser = argparse.ArgumentParser(prog=f"python -m tests.gpu.{name}", description=description)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--device", choices=DEVICES, default="cuda", help="cpu tries the command itself (%(default)s)")
    out = Path(os.environ.get("OUT", ROOT / "build" / "gpu"))
    parser.add_argument("--out", type=Path, default=out, help="folder for NAME.json (OUT, else build/gpu)")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "bench", help="keeps models (build/bench)")
    parser.add_argument("--quick", action="store_true", help="small sizes: no real figures")
    parser.add_argument("--parts", nargs="+", choices=[part.name for part in parts], help="only these (all)")
    parser.add_argument("--budget", type=float, default=470.0, help="seconds for all parts (%(default)s)")
    return parser


def run_parts(name: str, parts: Sequence[Part], options: argparse.Namespace) -> int:
    """Runs the parts and writes NAME.json; returns the exit status, 1 if any part failed."""
    started = time.monotonic()
    options.out.mkdir(parents=True, exist_ok=True)
    context = Context(options.device, options.quick, options.out, options.work, options)
    results: list[dict[str, Any]] = []
    facts = {
        "command": name,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": commit_of(ROOT),
        "is_quick": options.quick,
        "machine": describe_machine(),
        "versions": versions(),
    }
    print(json.dumps(facts, indent=1), flush=True)
    with _ended_when_it_hangs(options.budget + _GRACE_SECONDS), context.stack:
        for part in (_ADDS, *(part for part in parts if not options.parts or part.name in options.parts)):
            left = options.budget - (time.monotonic() - started)
            results.append(_run(part, context, left))
            document = {**facts, "parts": results}
            (options.out / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
            if part is _ADDS and results[-1]["status"] == "failed":
                print("the device is not used: no other part is run", flush=True)
                break
    print(f"\n{name}, {time.monotonic() - started:.0f} s:", flush=True)
    for result in results:
        print(f"  {result['status']:8} {result['part']}", *(f"\n    {fault}" for fault in result["faults"]), flush=True)
    return int(any(result["status"] == "failed" for result in results))


def _run(part: Part, context: Context, left: float) -> dict[str, Any]:
    context.figures, context.faults = {}, []
    print(f"\n## {part.name}, at most {part.seconds:.0f} s of {left:.0f}", flush=True)
    started = time.monotonic()
    if part.seconds > left:
        print("  left out: it would not end in time", flush=True)
        return {"part": part.name, "status": "left out", "seconds": 0.0, "figures": {}, "faults": []}
    try:
        part.run(context)
    except Exception as error:  # noqa: BLE001  # whatever it is, the next part may pass
        traceback.print_exc()
        sys.stderr.flush()
        context.faults.append(f"{type(error).__name__}: {error}"[:2000])
    status = "failed" if context.faults else "passed"
    seconds = round(time.monotonic() - started, 1)
    print(f"  {status}, {seconds} s", flush=True)
    return {
        "part": part.name,
        "status": status,
        "seconds": seconds,
        "figures": context.figures,
        "faults": context.faults,
    }


@contextlib.contextmanager
def _ended_when_it_hangs(seconds: float) -> Iterator[None]:
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
