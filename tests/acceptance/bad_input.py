"""Every bad input gets its own clear error, never UNKNOWN, and the server keeps serving.

    python -m tests.acceptance.bad_input

Sends each request of `bad_requests`, and after each a good one that must be translated. Then starts a server on each
bundle of `bad_bundles`: it must end with exit code 2 and name the fault.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import grpc
from tabulate import tabulate

from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance.bad_bundles import BadBundle, bad_bundles
from tests.acceptance.bad_requests import SECRET, BadRequest, bad_requests
from tests.acceptance.calls import Languages, translate
from tests.acceptance.report import EXIT_FAILED, EXIT_NOT_RUN, EXIT_PASSED
from tests.acceptance.server_process import (
    BUILTIN_BUNDLE,
    ServerNotServing,
    ServerProcess,
    launch_server,
    running_server,
)

BAD_BUNDLE_EXIT_CODE = 2
_EXIT_TIMEOUT_SECONDS = 60.0
_SHOWN_CHARACTERS = 110
_GOOD_TEXT = "A dog runs through the grass."
_TOO_LONG_TEXT = "A dog runs. " * 262_144  # 3 MiB; a text may have 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one case.

    Attributes:
        name: The case.
        expected: What had to come.
        got: What came.
        message: The error's words.
        faults: What is wrong with it; empty when it passed.
    """

    name: str
    expected: str
    got: str
    message: str
    faults: tuple[str, ...]


def try_request(channel: grpc.Channel, case: BadRequest) -> Outcome:
    """Sends a bad request and then a good one.

    Args:
        channel: The server.
        case: What to send.

    Returns:
        What came back.
    """
    try:
        case.send(channel)
        got, message = grpc.StatusCode.OK, ""
    except grpc.RpcError as error:
        got, message = error.code(), error.details() or ""
    faults = [] if got == case.code else ["wrong status"]
    faults += [f"message lacks {word!r}" for word in case.mentions if word not in message]
    faults += ["message is empty"] if not message else []
    faults += ["message repeats the text"] if SECRET in message else []
    faults += still_translates(channel)
    return Outcome(name=case.name, expected=case.code.name, got=got.name, message=message, faults=tuple(faults))


def still_translates(channel: grpc.Channel) -> list[str]:
    """Returns what is wrong with a good request's answer: nothing, or one line."""
    try:
        [answer] = translate(TranslationServiceStub(channel), [_GOOD_TEXT], Languages(), beam_size=4)
    except grpc.RpcError as error:
        return [f"a good request then gets {error.code().name}"]
    return [] if answer.text and not answer.status.code else ["a good request then gets no translation"]


def try_one_bad_text(channel: grpc.Channel) -> Outcome:
    """Sends a text that is too long between two good ones: it alone must fail."""
    invalid: int = grpc.StatusCode.INVALID_ARGUMENT.value[0]
    expected = f"OK, codes [0, {invalid}, 0]"
    try:
        contents = [_GOOD_TEXT, _TOO_LONG_TEXT, _GOOD_TEXT]
        answers = translate(TranslationServiceStub(channel), contents, Languages(), beam_size=4)
    except grpc.RpcError as error:
        got, message, faults = error.code().name, error.details() or "", ["wrong status"]
    else:
        got = f"OK, codes {[answer.status.code for answer in answers]}"
        message = "; ".join(answer.status.message for answer in answers if answer.status.code)
        faults = [] if got == expected else ["wrong codes"]
        faults += [] if answers[0].text and answers[0].text == answers[-1].text else ["the good texts are not answered"]
    faults += still_translates(channel)
    return Outcome(name="one bad text of three", expected=expected, got=got, message=message, faults=tuple(faults))


def try_bundle(bundle: Path, variant: str, case: BadBundle) -> Outcome:
    """Starts a server on a spoilt copy of a bundle.

    Args:
        bundle: The good one, left as it is.
        variant: What to serve.
        case: The fault.

    Returns:
        What the server wrote, and how it ended.
    """
    with tempfile.TemporaryDirectory(prefix="babelserve-") as directory:
        copy = Path(directory) / "bundle"
        shutil.copytree(bundle, copy)
        case.spoil(copy)
        server = launch_server(Path(directory) / "stderr.log", ["--bundle", str(copy), "--variant", variant])
        code = _exit_code(server)
        stderr = server.stderr().replace(str(copy), "BUNDLE")
    faults = [] if code == BAD_BUNDLE_EXIT_CODE else ["wrong exit code"]
    faults += [f"lacks {word!r}" for word in case.mentions if word.lower() not in stderr.lower()]
    faults += ["shows a traceback"] if "Traceback" in stderr else []
    return Outcome(
        name=case.name,
        expected=f"exit {BAD_BUNDLE_EXIT_CODE}",
        got=f"exit {code}" if code is not None else "kept running",
        message=stderr.strip(),
        faults=tuple(faults),
    )


def _exit_code(server: ServerProcess) -> int | None:
    """Waits for the server to end by itself; None when it does not."""
    try:
        return server.process.wait(_EXIT_TIMEOUT_SECONDS)
    except subprocess.TimeoutExpired:
        server.stop()
        return None


def print_outcomes(outcomes: Sequence[Outcome]) -> int:
    """Prints the table and returns the exit status."""
    rows = []
    for each in outcomes:
        message = " ".join(each.message.split())
        shown = message if len(message) <= _SHOWN_CHARACTERS else message[: _SHOWN_CHARACTERS - 3] + "..."
        verdict = "FAILED: " + ", ".join(each.faults) if each.faults else "ok"
        rows.append((each.name, each.expected, each.got, verdict, shown))
    print(tabulate(rows, ("case", "expected", "got", "", "message"), disable_numparse=True))
    num_failed = sum(bool(each.faults) for each in outcomes)
    print(
        f"\n{'FAILED' if num_failed else 'PASSED'}: {len(outcomes) - num_failed} of {len(outcomes)} cases as designed"
    )
    return EXIT_FAILED if num_failed else EXIT_PASSED


def main(arguments: Sequence[str] | None = None) -> int:
    """Works through all cases and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.bad_input", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--bundle", type=Path, default=BUILTIN_BUNDLE, help="a good bundle (the built-in one)")
    parser.add_argument("--variant", default="cpu-fp32", help="variant to serve and to spoil (%(default)s)")
    options = parser.parse_args(arguments)
    try:
        flags = ["--bundle", str(options.bundle), "--variant", options.variant]
        with running_server(flags) as server, grpc.insecure_channel(server.address) as channel:
            outcomes = [try_request(channel, case) for case in bad_requests()]
            outcomes.append(try_one_bad_text(channel))
    except ServerNotServing as error:
        print(error, file=sys.stderr)
        return EXIT_NOT_RUN
    outcomes += [try_bundle(options.bundle, options.variant, case) for case in bad_bundles(options.variant)]
    return print_outcomes(outcomes)


if __name__ == "__main__":
    sys.exit(main())
