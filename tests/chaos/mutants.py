"""Does the suite catch what it is for? Known bugs are put back, one at a time; a named case must fail for each.

    python -m tests.chaos.mutants [m1 m2 ...]

Each is put into a copy of the checkout, whose own suite runs there. A mutant whose words are no longer in the code
counts as a failure: it has to follow the code.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.acceptance.report import Check, print_checks
from tests.acceptance.server_process import REPOSITORY
from tests.chaos.case import Case, Options, Skipped

_ROOMS = ("server", "babelserve", "tests", "export", "model")
_TIMEOUT_SECONDS = 300.0
_SHOWN_CHARACTERS = 100


@dataclass(frozen=True, slots=True)
class Edit:
    """Words of a file, and what stands in their place in the mutant."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """A bug.

    Attributes:
        name: as in the plan.
        bug: what is wrong.
        case: that has to fail.
        edits: make the bug.
    """

    name: str
    bug: str
    case: str
    edits: tuple[Edit, ...]


MUTANTS = (
    Mutant(
        "m1",
        "the engine cancels futures, and nobody tells that from a caller's leaving",
        "R7",
        (
            Edit("server/engine/failing.py", "sentence.future.set_exception(error)", "sentence.future.cancel()"),
            Edit("server/translation/calls.py", "if _is_cancelled_from_outside():", "if True:"),
        ),
    ),
    Mutant(
        "m2",
        "two rows of a batch are swapped",
        "R9",
        (
            Edit(
                "server/engine/batch.py",
                "finished, failed = self.plan.advance(",
                "running = self.plan.running\n"
                "        if len(running) > 1:\n"
                "            one, two = running[0].rows[0], running[1].rows[0]\n"
                "            ids[one], ids[two] = ids[two], ids[one]\n"
                "        finished, failed = self.plan.advance(",
            ),
        ),
    ),
    Mutant(
        "m3",
        "rows are not freed when the caller cancels",
        "R8",
        (Edit("server/engine/sentence.py", "return self.future.cancelled() or now", "return now"),),
    ),
    Mutant(
        "m4",
        "SIGTERM stops the server at once",
        "R3",
        (Edit("server/app.py", "await _drain(", "await servers.stop()\n            await _drain("),),
    ),
    Mutant(
        "m5",
        "an exception's words go to the client",
        "S8",
        (Edit("server/translation/calls.py", 'TranslationError("internal error")', "TranslationError(str(error))"),),
    ),
    Mutant(
        "m6",
        "the files' hashes are not checked",
        "R14",
        (Edit("server/bundle/files.py", "if expected is not None and found != expected.sha256:", "if False:"),),
    ),
    Mutant(
        "m7",
        "a label is what the client sent",
        "S8",
        (
            Edit(
                "server/telemetry/metrics.py",
                'method = method if method in METHODS else "other"\n'
                "        started, in_flight, durations, ended = self._of_method[method]",
                "started = self.requests_started_total.labels(method)\n"
                "        in_flight = self.requests_in_flight.labels(method)\n"
                "        durations = self.request_duration_seconds.labels(method)\n"
                "        ended = {code: self.requests_total.labels(method, code.name) for code in Code}",
            ),
            Edit(
                "server/rpc/interceptors.py",
                "count_other(Code.UNIMPLEMENTED)",
                "count_other(Code.UNIMPLEMENTED, method)",
            ),
            Edit(
                "server/translation/calls.py",
                "def count_other(self, code: Code)",
                "def count_other(self, code: Code, method='')",
            ),
            Edit("server/translation/calls.py", 'start_request("other")', "start_request(method)"),
        ),
    ),
    Mutant(
        "m8",
        "a slot keeps the keys and values of the sentence before",
        "R1",
        (
            Edit(
                "server/runtime/kv_cache.py",
                "tensor[slot, :, :length] = encoded[index, :, :length]",
                "tensor[slot, :, :length] = tensor[slot, :, :length] if tensor[slot].any() "
                "else encoded[index, :, :length]",
            ),
        ),
    ),
    Mutant(
        "m9",
        "padding is not masked",
        "R1",
        (
            Edit(
                "server/engine/batch.py",
                "self._runner.encode(source_ids, lengths)",
                "self._runner.encode(source_ids, np.full_like(lengths, source_ids.shape[1]))",
            ),
        ),
    ),
    Mutant(
        "m10",
        "gRPC's own limit on calls, which health checks share",
        "R2",
        (
            Edit(
                "server/rpc/servers.py",
                "grpc.aio.server(interceptors=[interceptor],",
                "grpc.aio.server(interceptors=[interceptor], maximum_concurrent_rpcs=16,",
            ),
        ),
    ),
)


def try_mutant(mutant: Mutant, known: frozenset[str]) -> tuple[bool, str]:
    """Runs a mutant's case.

    Args:
        mutant: which.
        known: checks of the case that fail without it: they prove nothing.

    Returns:
        Whether the case catches it, and by which check.
    """
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        copy = Path(directory) / "checkout"
        for room in _ROOMS:
            shutil.copytree(
                REPOSITORY / room, copy / room, copy_function=os.link, ignore=shutil.ignore_patterns("__pycache__")
            )
        shutil.copy(REPOSITORY / "pyproject.toml", copy)
        for edit in mutant.edits:
            file = copy / edit.path
            text = file.read_text(encoding="utf-8")
            if edit.old not in text:
                return False, f"does not apply: {edit.path} has no {edit.old!r}"
            file.unlink()  # a link: the original stays as it is
            file.write_text(text.replace(edit.old, edit.new), encoding="utf-8")
        failed = failed_checks(mutant.case, copy)
    caught = sorted(name for name in failed if name not in known)
    return bool(caught), "; ".join(f"{name}: {failed[name]}" for name in caught)[:_SHOWN_CHARACTERS] or "not caught"


def failed_checks(case: str, checkout: Path) -> dict[str, str]:
    """Runs the quick part of a case in a checkout; returns what its failed checks measured."""
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        lines = Path(directory) / "lines.json"
        command = [sys.executable, "-m", "tests.chaos", case, "--quick", "--json", str(lines)]
        try:
            done = subprocess.run(
                command, cwd=checkout, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return {"the case itself": f"runs for more than {_TIMEOUT_SECONDS:g} s"}
        if not lines.exists():
            return {"the case itself": done.stderr[-500:]}
        [record] = json.loads(lines.read_text(encoding="utf-8"))
    return {check["name"]: check["measured"] for check in record["checks"] if check["passed"] is False}


def try_mutants(names: Sequence[str] = ()) -> Iterator[Check]:
    """Tries mutants, all unless some are named; yields a line for each, and the count."""
    known: dict[str, frozenset[str]] = {}
    chosen = [mutant for mutant in MUTANTS if not names or mutant.name in names]
    num_killed = 0
    for mutant in chosen:
        if mutant.case not in known:
            known[mutant.case] = frozenset(failed_checks(mutant.case, REPOSITORY))
        is_killed, how = try_mutant(mutant, known[mutant.case])
        num_killed += is_killed
        yield Check(f"{mutant.name}: {mutant.bug}", f"{mutant.case}: {how}", "a failure", is_killed)
    yield Check("mutants killed", f"{num_killed} of {len(chosen)}", str(len(chosen)), num_killed == len(chosen))


def all_mutants(options: Options) -> Iterator[Check]:
    """Every mutant is killed."""
    if options.is_quick:
        raise Skipped("takes minutes: not in the quick part")
    yield from try_mutants()


CASES = (Case("mutants", "known bugs, put back", all_mutants),)


def main(arguments: Sequence[str] | None = None) -> int:
    """Tries the mutants; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("mutants", nargs="*", metavar="MUTANT", help="(all)")
    checks = []
    for check in try_mutants(parser.parse_args(arguments).mutants):
        checks.append(check)
        print(f"{check.name}: {check.measured} {check.verdict}", file=sys.stderr, flush=True)
    return print_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
