"""A request's cost grows as its text does: `python -m tests.fuzz.linear_time`.

For each of the odd texts, at two lengths, measures the processor time of the whole request, all but the network, and
without the garbage collector, whose work comes in lumps (32 KiB of "(x) " take 1.4 times as long with it). Twice the
length may take at most 2.5 times as long. Prints the ten worst, and the ten that cost most a byte.
"""

import argparse
import contextlib
import sys
import time
import timeit
from dataclasses import dataclass

from babelserve.v1 import translation_pb2 as pb
from server.errors import InvalidRequest
from tests.acceptance.report import Check, print_checks
from tests.fuzz.odd_texts import odd_texts
from tests.fuzz.parts import answer

MAX_GROWTH = 2.5
_NUM_SHOWN = 10
XLIFF = "application/xliff+xml"
_MARKUP = {  # what stands over and over in a document
    "text/html": [
        "<b>",
        "<b><img>",
        "<b>x</b> ",
        "<b></b>",
        "</b>",
        "<img>",
        "<",
        "<p>x",
        "<code>x</code> ",
        "<title>x",
    ],
    "text/markdown": [
        "*",
        "*a ",
        "*_",
        "[",
        "[](",
        "[a](b) ",
        "`a``",
        "> - ",
        "- x\n",
        "|",
        "\\",
        "<b ",
        "<!-- ",
        "a  \n",
        "&a;",
    ],
    "application/xml": ["<x/>", "<g>x</g> ", "<g><h/></g>", "<g>", "&a;", "<![CDATA[x]]>", "<!-- -->", "<a "],
    XLIFF: ["<x/>", "<g>x</g> ", "<ph>a</ph>", '<bx id="1"/>', "&a;", "<mrk translate='no'>x</mrk> ", "<!-- -->"],
}
_MORE_TIMES = 4  # a machine that does other things is slow now and then


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Processor seconds of a request with a text, and of one with twice as much of it."""

    name: str
    num_bytes: int
    seconds: float
    twice_seconds: float

    @property
    def growth(self) -> float:
        return self.twice_seconds / self.seconds

    @property
    def microseconds_per_byte(self) -> float:
        return self.seconds / self.num_bytes * 1e6


def measure(name: str, text: bytes, twice: bytes, num_repeats: int) -> Cost:
    """Returns the cost of two requests: the least of some repeats, and of more if it seems to grow too fast."""
    pairs: list[tuple[float, float]] = []
    for limit in (num_repeats, _MORE_TIMES * num_repeats):
        while len(pairs) < limit:
            pairs.append((_seconds(text), _seconds(twice)))
        cost = Cost(name=name, num_bytes=len(text), seconds=min(pairs)[0], twice_seconds=min(two for _, two in pairs))
        if cost.growth < MAX_GROWTH:
            break
    return cost


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.linear_time", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--characters", type=int, default=16384, help="of the shorter text; default %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="of which the quickest counts; default %(default)s")
    arguments = parser.parse_args()
    texts, twice = odd_texts(arguments.characters), odd_texts(2 * arguments.characters)
    costs = [
        measure(
            f"{mime_type}: {unit!a}",
            _document(unit, mime_type, arguments.characters),
            _document(unit, mime_type, 2 * arguments.characters),
            arguments.repeats,
        )
        for mime_type, units in _MARKUP.items()
        for unit in units
    ]
    costs += [measure(name, _request(text), _request(twice[name]), arguments.repeats) for name, text in texts.items()]
    worst = sorted(costs, key=lambda cost: -cost.growth)[:_NUM_SHOWN]
    dearest = sorted(costs, key=lambda cost: -cost.microseconds_per_byte)[:_NUM_SHOWN]
    return print_checks(
        [
            *(
                Check(f"t(2n)/t(n) of {each.name}", f"{each.growth:.2f}", f"< {MAX_GROWTH}", each.growth < MAX_GROWTH)
                for each in worst
            ),
            *(Check(f"cost of {each.name}", f"{each.microseconds_per_byte:.2f} us a byte") for each in dearest),
        ]
    )


def _document(unit: str, mime_type: str, num_characters: int) -> bytes:
    """Returns the request of a sentence with a unit over and over in it, of about so many characters."""
    text = f"A dog {unit * (num_characters // len(unit))} runs."
    return _request(
        f"<xliff><trans-unit><source>{text}</source></trans-unit></xliff>" if mime_type == XLIFF else text, mime_type
    )


def _request(text: str, mime_type: str = "") -> bytes:
    request = pb.TranslateRequest(contents=[text], target_language_code="de", mime_type=mime_type)
    return request.SerializeToString()


def _seconds(request: bytes) -> float:
    """Returns the cost of a request, which may be refused, as XML is that is not well-formed."""

    def ask() -> None:
        with contextlib.suppress(InvalidRequest):
            answer("Translate", request)

    return timeit.timeit(ask, timer=time.process_time, number=1)


if __name__ == "__main__":
    sys.exit(main())
