"""Whether numbers, times, measures and prices are right in translations, through a live server.

    python -m tests.acceptance.kept_numbers
    python -m tests.acceptance.kept_numbers --reverse --output runs/numbers.tsv
    python -m tests.acceptance.kept_numbers --bundle bundle --source en --target pt

Sentences are made of templates and drawn values, the same in each run (`number_lines.py`). `right_numbers.py` says
which translations are right, and knows nothing of the server's own check. Of what is wrong, each line must be flagged:
`Translation.kept` names a number as PLACEMENT_MISSING. Lines that are flagged although they are right are counted, too.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from tests.acceptance.lines import Answer, Asker, Judged, add_flags, run_judge
from tests.acceptance.number_lines import NumberLine, number_lines
from tests.acceptance.report import Check
from tests.acceptance.right_numbers import wrong_numbers
from tests.acceptance.translation_quality import at_least

_SEED = 43
_LEAST_RIGHT = 99.5  # per cent of lines

Ask = Callable[[Sequence[str]], list[Answer]]


def judge(lines: Sequence[NumberLine], ask: Ask, language: str) -> Judged:
    """Returns the table, and a row for each line: verdict, what is wrong, what is flagged, source, translation."""
    answers = ask([line.source for line in lines])
    wrong = [wrong_numbers(line.numbers, each.text, language) for line, each in zip(lines, answers, strict=True)]
    num_wrong = sum(map(bool, wrong))
    flagged = sum(bool(each.missing) for each, faults in zip(answers, wrong, strict=True) if faults)
    needless = sum(bool(each.missing) for each, faults in zip(answers, wrong, strict=True) if not faults)
    checks = [
        at_least(f"lines with all numbers right, % of {len(lines)}", 100 - 100 * num_wrong / len(lines), _LEAST_RIGHT)
    ]
    kinds = Counter(kind for line in lines for kind in {kind for kind, _ in line.numbers})
    for kind, count in kinds.items():
        of_kind = sum(
            any((kind, value) in line.numbers for value in faults) for line, faults in zip(lines, wrong, strict=True)
        )
        if of_kind:
            checks.append(Check(f"- lines with a wrong {kind}, of {count}", str(of_kind)))
    checks += [
        Check("wrong lines that are flagged", f"{flagged} of {num_wrong}", "all", flagged == num_wrong),
        Check("right lines that are flagged", f"{needless} of {len(lines) - num_wrong}"),
    ]
    rows = [
        [_verdict(faults, each), " ".join(faults), " ".join(each.missing), line.source, each.text]
        for line, each, faults in zip(lines, answers, wrong, strict=True)
    ]
    return checks, rows


def _verdict(faults: Sequence[str], answer: Answer) -> str:
    if faults:
        return "wrong, flagged" if answer.missing else "WRONG"
    return "right, flagged" if answer.missing else "right"


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.kept_numbers", description=__doc__)
    add_flags(parser, 1000)
    parser.add_argument("--all", action="store_true", help="write the lines that are right, too")
    options = parser.parse_args(arguments)

    def judge_server(ask: Asker) -> Judged:
        checks, rows = judge(list(number_lines(ask.source, options.sentences, _SEED)), ask, ask.target)
        return checks, [row for row in rows if options.all or row[0] != "right"]

    return run_judge(options, judge_server)


if __name__ == "__main__":
    sys.exit(main())
