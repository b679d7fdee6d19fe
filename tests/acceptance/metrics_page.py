"""`promtool check metrics` has nothing to say about the metrics page of a server that has worked.

    python -m tests.acceptance.metrics_page

Also checks that calls are counted, and that names which clients choose make no new series. Without promtool (Debian:
package `prometheus`) the exit status is 77.
"""

import argparse
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import grpc
from prometheus_client.parser import text_string_to_metric_families

from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance.calls import DEFAULT_SENTENCES, Languages, open_stub, read_sentences, translate_concurrently
from tests.acceptance.report import EXIT_NOT_RUN, EXIT_TOOL_MISSING, Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE, ServerNotServing, ServerProcess, running_server

_NUM_SENTENCES = 100
_NUM_BAD_CALLS = 50
_CALLERS = 16


def fetch(url: str) -> str:
    """Returns the page in Prometheus' text format."""
    with urllib.request.urlopen(url, timeout=10) as response:
        page: bytes = response.read()
    return page.decode("utf-8")


def check_with_promtool(promtool: str, page: str) -> tuple[int, str]:
    """Lints a page.

    Args:
        promtool: The program.
        page: Metrics in Prometheus' text format.

    Returns:
        Its exit code, and what it wrote.
    """
    command = [promtool, "check", "metrics"]
    result = subprocess.run(command, input=page, capture_output=True, text=True, check=False, timeout=60)
    return result.returncode, (result.stdout + result.stderr).strip()


def series(page: str) -> dict[str, float]:
    """Returns the value of every series of a page by name and labels."""
    families = text_string_to_metric_families(page)
    samples = [sample for family in families for sample in family.samples]
    return {f"{sample.name}{sorted(sample.labels.items())}": sample.value for sample in samples}


def make_calls(stub: TranslationServiceStub) -> int:
    """Translates sentences, greedy and with a beam in turn.

    Args:
        stub: The server.

    Returns:
        How many were answered.
    """
    sentences = read_sentences(DEFAULT_SENTENCES, _NUM_SENTENCES)
    calls = [([sentence], 1 + 3 * (index % 2)) for index, sentence in enumerate(sentences)]
    replies = translate_concurrently(stub, calls, Languages(), callers=_CALLERS)
    return sum(not isinstance(reply, grpc.RpcError) for reply in replies)


def make_bad_calls(stub: TranslationServiceStub, first: int, count: int) -> None:
    """Makes calls for languages that do not exist, each for another one."""
    for number in range(first, first + count):
        translate_concurrently(stub, [(["Hello."], 1)], Languages(target=f"x-{number}"), callers=1)


def check_page(server: ServerProcess, promtool: str) -> list[Check]:
    """Works the server and looks at its page.

    Args:
        server: The server, fresh.
        promtool: The program.

    Returns:
        The lines of the table.
    """
    with open_stub(server.address) as stub:
        num_answered = make_calls(stub)
        make_bad_calls(stub, 0, 1)
        before = series(fetch(server.metrics_url))
        make_bad_calls(stub, 1, _NUM_BAD_CALLS)
        page = fetch(server.metrics_url)
    after = series(page)
    counted = sum(value for name, value in after.items() if name.startswith("babelserve_requests_total["))
    num_calls = _NUM_SENTENCES + 1 + _NUM_BAD_CALLS
    code, complaints = check_with_promtool(promtool, page)
    new = sorted(after.keys() - before.keys())
    return [
        Check("sentences answered", str(num_answered), str(_NUM_SENTENCES), num_answered == _NUM_SENTENCES),
        Check("calls counted", f"{counted:.0f}", str(num_calls), counted == num_calls),
        Check("series", str(len(after))),
        Check(f"new series by {_NUM_BAD_CALLS} made-up languages", ", ".join(new) or "none", "none", not new),
        Check(
            "promtool check metrics",
            complaints or f"no complaint, exit {code}",
            "no complaint",
            not (code or complaints),
        ),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Checks the page and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.metrics_page", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--promtool", default="promtool", help="the program (%(default)s)")
    parser.add_argument("--bundle", type=Path, default=BUILTIN_BUNDLE, help="bundle to serve (the built-in one)")
    options = parser.parse_args(arguments)
    promtool = shutil.which(options.promtool)
    if promtool is None:
        print(f"SKIPPED: {options.promtool} not found; Debian has it in the package `prometheus`", file=sys.stderr)
        return EXIT_TOOL_MISSING
    try:
        with running_server(["--bundle", str(options.bundle)]) as server:
            checks = check_page(server, promtool)
    except ServerNotServing as error:
        print(error, file=sys.stderr)
        return EXIT_NOT_RUN
    return print_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
