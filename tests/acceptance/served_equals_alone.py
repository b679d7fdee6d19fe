"""Many sentences under mixed load give what each gives alone.

    python -m tests.acceptance.served_equals_alone --source test_2016_flickr.en.gz

Concurrent callers send calls of one, three and eight sentences, greedy and with a beam of 4 in turn; then each sentence
goes alone, one at a time, with the options that it had. An answer is equal when text, finish reason and number of
tokens are. One that differs is a near-tie when in each of its sentences the scores (log-probability / length) differ by
at most 1e-4; all are listed.
"""

import argparse
import itertools
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import grpc
from tabulate import tabulate

from babelserve.v1.translation_pb2 import Translation
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from tests.acceptance.calls import (
    DEFAULT_SENTENCES,
    Languages,
    open_stub,
    read_sentences,
    translate,
    translate_concurrently,
)
from tests.acceptance.report import EXIT_NOT_RUN, Check, print_checks
from tests.acceptance.server_process import ServerNotServing, running_server

SENTENCES_PER_CALL = (1, 3, 8)
BEAM_SIZES = (1, 4)
NEAR_TIE_SCORE = 1e-4
ALLOWED_PER_THOUSAND = 2
_SHOWN_LOG_LINES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """One sentence, served and alone.

    Attributes:
        index: Line of the source, from 0.
        beam_size: The beam that both had.
        served: The answer under load.
        alone: The answer alone.
    """

    index: int
    beam_size: int
    served: Translation
    alone: Translation

    @property
    def is_equal(self) -> bool:
        """Whether nothing but rounding of the score differs."""
        return _visible(self.served) == _visible(self.alone)

    @property
    def score_difference(self) -> float:
        """The largest difference of the scores of a sentence; infinite when they were split differently."""
        pairs = list(zip(self.served.sentences, self.alone.sentences, strict=False))
        if len(self.served.sentences) != len(self.alone.sentences):
            return float("inf")
        return max((abs(one.score - other.score) for one, other in pairs), default=0.0)

    @property
    def is_near_tie(self) -> bool:
        """Whether it differs, and by no more than rounding explains."""
        return not self.is_equal and self.score_difference <= NEAR_TIE_SCORE


def _visible(translation: Translation) -> tuple[str, int, int, int]:
    return translation.text, translation.finish_reason, translation.target_tokens, translation.status.code


def plan_calls(sentences: Sequence[str]) -> list[tuple[Sequence[str], int]]:
    """Cuts the sentences into calls.

    Args:
        sentences: All of them.

    Returns:
        Texts and beam size of each call; sizes and beams alternate with different periods, so that all pairs occur.
    """
    calls: list[tuple[Sequence[str], int]] = []
    start = 0
    for size, beam_size in zip(itertools.cycle(SENTENCES_PER_CALL), itertools.cycle(BEAM_SIZES), strict=False):
        if start >= len(sentences):
            return calls
        calls.append((sentences[start : start + size], beam_size))
        start += size
    return calls


def describe(error: grpc.RpcError) -> str:
    """Returns status and message in one line."""
    return f"{error.code().name}: {error.details()}"


def compare(
    stub: TranslationServiceStub, sentences: Sequence[str], languages: Languages, callers: int
) -> tuple[list[Comparison], list[str]]:
    """Translates all sentences twice.

    Args:
        stub: The server.
        sentences: The texts.
        languages: From and to.
        callers: How many calls run at once in the first pass.

    Returns:
        A comparison for each answered sentence, and a line for each call that was not answered as it should be.
    """
    calls = plan_calls(sentences)
    started = time.monotonic()
    replies = translate_concurrently(stub, calls, languages, callers=callers)
    print(f"{len(calls)} calls by {callers} callers: {time.monotonic() - started:.1f} s", flush=True)
    comparisons, faults = [], []
    index = 0
    started = time.monotonic()
    for (contents, beam_size), reply in zip(calls, replies, strict=True):
        if isinstance(reply, grpc.RpcError) or len(reply) != len(contents):
            fault = describe(reply) if isinstance(reply, grpc.RpcError) else f"{len(reply)} answers"
            faults.append(f"lines {index} to {index + len(contents) - 1}: {fault}")
        else:
            for line, (text, served) in enumerate(zip(contents, reply, strict=True), start=index):
                try:
                    [alone] = translate(stub, [text], languages, beam_size=beam_size)
                except grpc.RpcError as error:
                    faults.append(f"line {line}, alone: {describe(error)}")
                else:
                    comparisons.append(Comparison(index=line, beam_size=beam_size, served=served, alone=alone))
        index += len(contents)
    print(f"{len(comparisons)} sentences alone: {time.monotonic() - started:.1f} s\n", flush=True)
    return comparisons, faults


def report(num_sentences: int, comparisons: Sequence[Comparison], faults: Sequence[str]) -> int:
    """Prints every difference and the table.

    Args:
        num_sentences: How many were sent.
        comparisons: What came back.
        faults: Calls that failed.

    Returns:
        The exit status.
    """
    different = [each for each in comparisons if not each.is_equal]
    for line in faults:
        print(line)
    if different:
        rows = [
            (str(each.index), str(each.beam_size), f"{each.served.score:.6f}", f"{each.alone.score:.6f}",
             f"{each.score_difference:.2e}", "near-tie" if each.is_near_tie else "DIFFERENT")
            for each in different
        ]  # fmt: skip
        header = ("line", "beam", "score served", "score alone", "difference", "")
        print(tabulate(rows, header, disable_numparse=True) + "\n")
    num_near_ties = sum(each.is_near_tie for each in different)
    allowed = num_sentences * ALLOWED_PER_THOUSAND // 1000
    failed = [each for each in comparisons if each.served.status.code]
    largest = max((each.score_difference for each in comparisons if each.is_equal), default=0.0)
    checks = [
        Check("sentences sent", str(num_sentences)),
        Check("answered, in order", str(len(comparisons)), str(num_sentences), len(comparisons) == num_sentences),
        Check("texts with an error status", str(len(failed)), "0", not failed),
        Check("greedy / beam 4", " / ".join(str(sum(c.beam_size == w for c in comparisons)) for w in BEAM_SIZES)),
        Check("equal to alone", str(len(comparisons) - len(different))),
        Check("largest score difference of equals", f"{largest:.1e}"),
        Check("near-ties", str(num_near_ties), f"<= {allowed}", num_near_ties <= allowed),
        Check("different", str(len(different) - num_near_ties), "0", len(different) == num_near_ties),
    ]
    return print_checks(checks)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.served_equals_alone", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--source", type=Path, default=DEFAULT_SENTENCES, help="text file, may be .gz (%(default)s)")
    parser.add_argument("--count", type=int, default=1000, help="most sentences to take (%(default)s)")
    parser.add_argument("--callers", type=int, default=32, help="concurrent callers (%(default)s)")
    parser.add_argument("--variant", default="cpu-fp32", help="variant of the server to start (%(default)s)")
    parser.add_argument("--bundle", type=Path, help="bundle of the server to start (its default)")
    parser.add_argument("--address", help="a running server, host:port; none is started then")
    parser.add_argument("--source-language", default="en")
    parser.add_argument("--target-language", default="de")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison and returns the exit status."""
    options = parse_arguments(arguments)
    languages = Languages(source=options.source_language, target=options.target_language)
    sentences = read_sentences(options.source, options.count)
    with ExitStack() as stack:
        server = None
        if options.address is None:
            flags = ["--variant", options.variant, *(["--bundle", str(options.bundle)] if options.bundle else [])]
            try:
                server = stack.enter_context(running_server(flags))
            except ServerNotServing as error:
                print(error, file=sys.stderr)
                return EXIT_NOT_RUN
        stub = stack.enter_context(open_stub(server.address if server else options.address))
        comparisons, faults = compare(stub, sentences, languages, options.callers)
        if faults and server:
            print("The server's last lines:", *server.stderr().splitlines()[-_SHOWN_LOG_LINES:], sep="\n")
    return report(len(sentences), comparisons, faults)


if __name__ == "__main__":
    sys.exit(main())
