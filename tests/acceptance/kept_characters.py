"""Whether odd characters turn sentences into noise, through a live server.

    python -m tests.acceptance.kept_characters
    python -m tests.acceptance.kept_characters --reverse --output runs/odd.tsv
    python -m tests.acceptance.kept_characters --bundle bundle --source en --target pt

Sentences of `tests/data` are translated as they are and with a run of `tests/data/odd_characters.txt`, in turn at the
start, at the end and between two words. `odd_runs.py` says what is right: the run is there once and in a sensible
place, the rest is as good as without it, and nothing is invented. Quality is chrF of the translation without the run,
to the references where there are some, else only to the translation of the sentence without it.

`--untrained` is for models whose translations mean nothing, such as those of tests/imports/models: it judges neither
places nor quality.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Sequence

from tests.acceptance.lines import DATA, Answer, Asker, Judged, add_flags, read_pairs, run_judge
from tests.acceptance.odd_runs import PLACES, OddLine, fault_of_rest, fault_of_run, odd_lines, read_runs, without_run
from tests.acceptance.report import Check
from tests.acceptance.translation_quality import chrf

_SEED = 43
_LEAST_KEPT = 99.5  # per cent of lines
_MOST_LOST = 1.0  # of chrF

Ask = Callable[[Sequence[str]], list[Answer]]


def judge(lines: Sequence[OddLine], ask: Ask, *, untrained: bool = False) -> Judged:
    """Returns the table, and a row for each line that fails: faults, place, group, run, source, translation, plain."""
    plain = [answer.text for answer in ask([line.sentence for line in lines])]
    odd = [answer.text for answer in ask([line.source for line in lines])]
    faults, noise = [], []
    for line, text, without in zip(lines, odd, plain, strict=True):
        fault = fault_of_run(line, text)
        faults.append("" if untrained and fault == "moved" else fault)
        noise.append(fault_of_rest(line, text, without))
    checks = [_kept("runs kept, % of {} lines", faults, _LEAST_KEPT)]
    checks += [
        _kept(f"- {place}, of {{}}", [fault for fault, line in zip(faults, lines, strict=True) if line.place == place])
        for place in PLACES
    ]
    for group in dict.fromkeys(line.run.group for line in lines):
        of_group = [fault for fault, line in zip(faults, lines, strict=True) if line.run.group == group]
        if any(of_group):
            checks.append(_kept(f"- {group}, of {{}}", of_group))
    checks.append(_kept("lines without noise, % of {}", noise, 100))
    if not untrained:
        checks += _quality(lines, odd, plain)
    rows = [
        [f"{fault} {other}".strip(), line.place, line.run.group, line.run.text, line.source, text, without]
        for fault, other, line, text, without in zip(faults, noise, lines, odd, plain, strict=True)
        if fault or other
    ]
    return checks, rows


def _kept(name: str, faults: Sequence[str], bar: float | None = None) -> Check:
    share = 100 * faults.count("") / max(1, len(faults))
    counted = ", ".join(f"{count} {fault}" for fault, count in Counter(filter(None, faults)).most_common())
    measured = f"{share:.2f}" + (f" ({counted})" if counted else "")
    return Check(name.format(len(faults)), measured, *((f">= {bar:g}", share >= bar) if bar is not None else ()))


def _quality(lines: Sequence[OddLine], odd: Sequence[str], plain: Sequence[str]) -> list[Check]:
    rests = [without_run(line, text) for line, text in zip(lines, odd, strict=True)]
    checks = [Check("chrF of the rest to the translation without run", f"{chrf(rests, plain):.2f}")]
    references = [line.reference for line in lines]
    if not all(references):
        return checks
    scores = chrf(plain, references), chrf(rests, references)
    lost = scores[0] - scores[1]
    return [
        *checks,
        Check("chrF to the reference, without run", f"{scores[0]:.2f}"),
        Check("- of the rest", f"{scores[1]:.2f}"),
        Check("- lost", f"{lost:.2f}", f"<= {_MOST_LOST:g}", lost <= _MOST_LOST),
    ]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.kept_characters", description=__doc__)
    add_flags(parser, 2000)
    parser.add_argument("--untrained", action="store_true", help="judge neither places nor quality")
    options = parser.parse_args(arguments)

    def judge_server(ask: Asker) -> Judged:
        pairs = read_pairs(ask.source, ask.target)
        random.Random(_SEED).shuffle(pairs)
        lines = list(odd_lines(pairs, read_runs(DATA / "odd_characters.txt")))[: options.sentences]
        return judge(lines, ask, untrained=options.untrained)

    return run_judge(options, judge_server)


if __name__ == "__main__":
    sys.exit(main())
