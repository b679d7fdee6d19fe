"""A request's cost grows as its text does: `python -m tests.fuzz.linear_time`.

For each of the odd texts, at two lengths, measures the processor time of the whole request, all but the network. Twice
the length may take at most 2.5 times as long. Prints the ten worst, and the ten that cost most a character.
"""

import argparse
import sys
import time
from dataclasses import dataclass

from protos import translation_pb2 as pb
from tests.acceptance.report import Check, print_checks
from tests.fuzz.odd_texts import odd_texts
from tests.fuzz.parts import answer

MAX_GROWTH = 2.5
_NUM_SHOWN = 10


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


def measure(num_characters: int, num_repeats: int) -> list[Cost]:
    """Returns the cost of every odd text; the least of some repeats."""
    texts, doubled = odd_texts(num_characters), odd_texts(2 * num_characters)
    return [
        Cost(
            name=name,
            num_bytes=len(text.encode()),
            seconds=_seconds(text, num_repeats),
            twice_seconds=_seconds(doubled[name], num_repeats),
        )
        for name, text in texts.items()
    ]


def main() -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.linear_time", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--characters", type=int, default=16384, help="of the shorter text; default %(default)s")
    parser.add_argument("--repeats", type=int, default=3, help="of which the quickest counts; default %(default)s")
    arguments = parser.parse_args()
    costs = measure(arguments.characters, arguments.repeats)
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


def _seconds(text: str, num_repeats: int) -> float:
    request = pb.TranslateRequest(contents=[text], target_language_code="de").SerializeToString()
    return min(_seconds_once(request) for _ in range(num_repeats))


def _seconds_once(request: bytes) -> float:
    started = time.process_time()
    answer("Translate", request)
    return time.process_time() - started


if __name__ == "__main__":
    sys.exit(main())
