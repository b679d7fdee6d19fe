"""R14: bundles with faults. Each is refused before anything is served, with words that name the fault."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.acceptance.bad_bundles import BadBundle, bad_bundles
from tests.acceptance.bad_input import try_bundle
from tests.acceptance.report import Check
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.chaos.case import Case, Options, none, told

_VARIANT = "cpu-fp32"
_WEIGHTS = f"{_VARIANT}/weights.bin"


def _cut(percent: float) -> Callable[[Path], None]:
    def spoil(bundle: Path) -> None:
        os.truncate(bundle / _WEIGHTS, int((bundle / _WEIGHTS).stat().st_size * percent / 100))

    return spoil


def _link_out(bundle: Path) -> None:
    """Puts the weights outside, where the hash would fit."""
    outside = bundle.parent / "weights.bin"
    shutil.move(bundle / _WEIGHTS, outside)
    (bundle / _WEIGHTS).symlink_to(outside)


def _fifo(bundle: Path) -> None:
    (bundle / _WEIGHTS).unlink()
    os.mkfifo(bundle / _WEIGHTS)


def _no_graph(bundle: Path) -> None:
    (bundle / _VARIANT / "encoder.onnx").write_bytes(b"no graph")


def spoilt(options: Options) -> Iterator[Check]:
    """Starts a server on each."""
    more = [BadBundle(name=f"weights cut to {p:g} %", spoil=_cut(p), mentions=(_WEIGHTS,)) for p in (0.0, 1.0, 99.0)]
    more += [
        BadBundle(name="weights that lead out of the bundle", spoil=_link_out, mentions=(_WEIGHTS,)),
        BadBundle(name="weights that are a pipe", spoil=_fifo, mentions=(_WEIGHTS,)),
        BadBundle(name="encoder.onnx is no graph", spoil=_no_graph, mentions=("encoder.onnx",)),
    ]
    cases = [*bad_bundles(_VARIANT), *more]
    chosen = cases[:: options.count(1, 4)]
    num_passed = 0
    for case in chosen:
        outcome = try_bundle(BUILTIN_BUNDLE, _VARIANT, case)
        num_passed += not outcome.faults
        yield none(case.name, outcome.faults, outcome.got)
    yield Check("bundles refused", f"{num_passed} of {len(chosen)}", str(len(chosen)), num_passed == len(chosen))
    yield told("R13, and broken models to swap to", "see tests/e2e/test_models.py and tests/acceptance/model_swaps.py")


CASES = (Case("R14", "bundles with faults", spoilt),)
