"""Two models of one server: what callers of a small one notice while a large one has more than it can do."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from tests.acceptance.report import Check
from tests.acceptance.server_process import BUILTIN_BUNDLE, running_server
from tests.bench.models import prepare
from tests.bench.text import DEFAULT_TEXT, ROOT
from tests.chaos.bench import CLIENT_CORE, SERVER_CORE
from tests.chaos.callers import Outcomes, callers, percentile, pinned
from tests.chaos.case import Case, Options, Skipped, none, told
from tests.chaos.journal import OVERLOAD_CODES
from tests.chaos.load import Command
from tests.chaos.requests import golden_requests

_FLAGS = ("--variant", "cpu-int8", "--lanes", "1")  # what a processor serves by default
_SMALL, _LARGE = "small", "base"
_CALLERS = 64
_SHARE = 0.2  # of what the small model can do alone
_MOST_SLOWER = 2.0
_SATURATION_SECONDS = 10.0


def shared(options: Options) -> Iterator[Check]:
    """One core for both: each model has a lane and the same share of it, and a small load is less than that."""
    if options.is_quick:
        raise Skipped("makes a model of base size, which takes minutes: not in the quick part")
    seconds = float(options.count(60, 6))
    large = prepare(_LARGE, DEFAULT_TEXT, ROOT / "build" / "bench", with_ctranslate2=False)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        shutil.copytree(BUILTIN_BUNDLE, directory / _SMALL)
        shutil.copytree(large.bundle.directory, directory / _LARGE)
        with pinned(SERVER_CORE):
            server = stack.enter_context(running_server([*_FLAGS, "--models", str(directory), "--default", _SMALL]))
        processes = {name: stack.enter_context(callers(CLIENT_CORE)) for name in (_SMALL, _LARGE)}
        loads: dict[str, Command] = {}
        for name in processes:
            requests = golden_requests(server.address, 64, beam_size=4, model=name)
            contents, expected = requests.contents, requests.expected
            loads[name] = Command(
                address=server.address, contents=contents, expected=expected, seconds=seconds, model=name, beam_size=4
            )
        crowds = {name: replace(load, callers=_CALLERS, seconds=_SATURATION_SECONDS) for name, load in loads.items()}
        alone = {name: processes[name].run(crowd) for name, crowd in crowds.items()}
        few = replace(loads[_SMALL], rate=_SHARE * alone[_SMALL].goodput)
        calm = processes[_SMALL].run(few)
        processes[_LARGE].start(replace(crowds[_LARGE], seconds=seconds))
        beside = processes[_SMALL].run(few)
        crowd = processes[_LARGE].finish()
    for name, outcomes in (("alone", calm), ("beside", beside), ("the large model's", crowd)):
        yield none(f"{name}: journal", outcomes.journal.faults(OVERLOAD_CODES))
    yield told("small alone, saturated", f"{alone[_SMALL].goodput:.0f} sentences/s")
    large_told = f"{alone[_LARGE].goodput:.1f} sentences/s alone, {crowd.goodput:.1f} beside the small one"
    yield told("large, saturated", large_told)
    yield told("small, a fifth of it: p50", f"{_ms(calm, 50):.0f} ms alone, {_ms(beside, 50):.0f} ms beside")
    yield Check(
        "small, a fifth of it: p95",
        f"{_ms(calm, 95):.0f} ms alone, {_ms(beside, 95):.0f} ms beside: {_ms(beside, 95) / _ms(calm, 95):.2f}",
        f"<= {_MOST_SLOWER:g}",
        _ms(beside, 95) <= _MOST_SLOWER * _ms(calm, 95),
    )


def _ms(outcomes: Outcomes, percent: float) -> float:
    return 1000 * percentile(outcomes.latencies(), percent)


CASES = (Case("models", "a small model beside a saturated one", shared),)
