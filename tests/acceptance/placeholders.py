"""Whether placeholders and tags come through translations, and the words beside them are translated.

    python -m tests.acceptance.placeholders
    python -m tests.acceptance.placeholders --reverse --output runs/placeholders.tsv
    python -m tests.acceptance.placeholders --codes

Sentences of `tests/data` are translated with placeholders and without them (`placeholder_lines.py`). Each placeholder
must stand in the translation exactly once, and one that the model lost must be told: `Translation.kept` names it as
PLACEMENT_BY_POSITION. The rest must be as good as the translation without placeholders, and no word beside one may stay
as it is, unless it does so by itself, too. `--codes` hides the model's reserved symbols, so that it is shown codes such
as "%1", as imported models are.
"""

import argparse
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from server.bundle.manifest import MANIFEST_FILE, seal_manifest
from tests.acceptance.lines import Answer, Asker, Judged, add_flags, read_pairs, run_judge
from tests.acceptance.placeholder_lines import (
    PlaceholderLine,
    num_lost,
    placeholder_lines,
    untranslated,
    without_placeholders,
)
from tests.acceptance.report import Check
from tests.acceptance.server_process import BUILTIN_BUNDLE
from tests.acceptance.translation_quality import at_least, chrf

_SEED = 43
_LEAST_ONCE = 99.9  # per cent of lines
_MOST_LOST = 1.0  # of chrF to the references
_MOST_STAYED = 0.5  # per cent of lines: the model itself leaves a rare word as it is now and then

Ask = Callable[[Sequence[str]], list[Answer]]


def judge(lines: Sequence[PlaceholderLine], references: Sequence[str], ask: Ask) -> Judged:
    """Returns the table, and a row for each line that fails: fault, place, source, translation, plain translation."""
    plain = [answer.text for answer in ask([line.sentence for line in lines])]
    answers = ask([line.source for line in lines])
    texts = [answer.text for answer in answers]
    lost = [num_lost(line, text) for line, text in zip(lines, texts, strict=True)]
    stayed = [untranslated(line, text, other) for line, text, other in zip(lines, texts, plain, strict=True)]
    words = sorted({word for own in stayed for word in own})
    alone = dict(zip(words, ask(words) if words else [], strict=True))
    # A word that the model leaves as it is even by itself is a loan word, or unknown to it: nothing beside it did that.
    stayed = [[word for word in own if alone[word].text.lower() != word.lower()] for own in stayed]
    rests = [without_placeholders(line, text) for line, text in zip(lines, texts, strict=True)]
    once = 100 * lost.count(0) / max(1, len(lines))
    checks = [at_least(f"lines with each placeholder once, % of {len(lines)}", once, _LEAST_ONCE)]
    for place, count in Counter(line.place for line in lines).items():
        own = [index for index, line in enumerate(lines) if line.place == place]
        of_place = [rests[index] for index in own], [plain[index] for index in own]
        checks.append(Check(f"- {place}, {count}: chrF to the plain translation", f"{chrf(*of_place):.2f}"))
    told = [bool(answer.placed) for answer, gone in zip(answers, lost, strict=True) if gone]
    share = 100 * sum(map(bool, stayed)) / max(1, len(lines))
    checks += [
        Check("- other lines that are told", f"{sum(told)} of {len(told)}", "all", all(told)),
        Check("lines with one that was put by position", str(sum(bool(answer.placed) for answer in answers))),
        Check(
            "lines with an untranslated word beside one, %",
            f"{share:.2f}",
            f"<= {_MOST_STAYED:g}",
            share <= _MOST_STAYED,
        ),
    ]
    scores = chrf(plain, references), chrf(rests, references)
    checks += [
        Check("chrF to the references, without placeholders", f"{scores[0]:.2f}"),
        Check(
            "- lost by the rest",
            f"{scores[0] - scores[1]:.2f}",
            f"<= {_MOST_LOST:g}",
            scores[0] - scores[1] <= _MOST_LOST,
        ),
    ]
    rows = [
        ["lost" if gone else "untranslated " + " ".join(words), line.place, line.source, text, other]
        for gone, words, line, text, other in zip(lost, stayed, lines, texts, plain, strict=True)
        if gone or words
    ]
    return checks, rows


@contextmanager
def without_symbols(bundle: Path) -> Iterator[Path]:
    """Lends a copy of a bundle whose manifest has no reserved symbols, only codes."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / bundle.name
        shutil.copytree(bundle, copy)
        manifest = json.loads((copy / MANIFEST_FILE).read_text(encoding="utf-8"))
        manifest["masking"]["num_placeholders"] = 0
        (copy / MANIFEST_FILE).write_text(json.dumps(manifest), encoding="utf-8")
        seal_manifest(copy)
        yield copy


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison and returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.placeholders", description=__doc__)
    add_flags(parser, 1000)
    parser.add_argument("--codes", action="store_true", help="show the model codes, as imported models are")
    options = parser.parse_args(arguments)

    def judge_server(ask: Asker) -> Judged:
        pairs = sorted(set(read_pairs(ask.source, ask.target)))
        random.Random(_SEED).shuffle(pairs)
        references = dict(pairs)
        lines = list(placeholder_lines([source for source, _ in pairs]))[: options.sentences]
        return judge(lines, [references[line.sentence] for line in lines], ask)

    if not options.codes:
        return run_judge(options, judge_server)
    pair = "de-en" if options.reverse else f"{options.source}-{options.target}"
    with without_symbols(options.bundle or BUILTIN_BUNDLE.with_name(pair)) as options.bundle:
        return run_judge(options, judge_server)


if __name__ == "__main__":
    sys.exit(main())
