"""How well a built-in model, English to German or back, translates what anybody may type, through a live server.

    python -m tests.acceptance.translation_quality
    python -m tests.acceptance.translation_quality --address localhost:50051 --general data/general --output runs/judged

It translates, by beam search, one line a text:

- `tests/data/everyday.tsv`: chrF to two references;
- `tests/data/copying.tsv`: the share of lines whose URLs, numbers, placeholders ... are copied (`copied.py` says what
  that means), for each kind too;
- `tests/data/capitals.tsv`: what is lost when a line comes in ALL CAPS, as caseless chrF;
- `tests/data/tatoeba_held_out.tsv`: chrF;
- the `*.dev.tsv.gz` of `--general`: chrF of each corpus, of all that may be trained on together, and of those that a
  free model never sees.

`--reverse` judges German to English, with the sides of all exchanged, everyday lines' first reference as source;
`copying.tsv`, which is English alone, is left out. `--output` keeps all translations: numbers do not show what
misleads.
"""

import argparse
import itertools
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

import sacrebleu

from babelserve import Client
from babelserve.errors import TranslationError
from export.evaluate import translate_by_server
from model.data import read_corpus
from model.recipe import CorpusConfig
from tests.acceptance.copied import KINDS, is_copied
from tests.acceptance.report import EXIT_NOT_RUN, Check, print_checks
from tests.acceptance.server_process import REPOSITORY, ServerNotServing, running_server

DATA = REPOSITORY / "tests" / "data"
UNSEEN = ("wmt_refs_2019_2024",)  # for research only, which a free model is not trained on

Translate = Callable[[list[str]], list[str]]
Keep = Callable[[str, Sequence[Sequence[str]]], None]


def read_rows(path: Path) -> list[list[str]]:
    """Returns the lines of a TSV file, cut into their columns."""
    return [line.split("\t") for line in path.read_text(encoding="utf-8").removesuffix("\n").split("\n")]


def chrf(translations: Sequence[str], *references: Sequence[str]) -> float:
    """Returns corpus chrF2, from 0 to 100, each translation against the reference that it is nearest to."""
    return float(sacrebleu.metrics.CHRF().corpus_score(translations, references).score)


def judge_everyday(rows: Sequence[Sequence[str]], translate: Translate, keep: Keep) -> list[Check]:
    """Scores lines of a source and its references."""
    sources, *references = (list(column) for column in zip(*rows, strict=True))
    translations = translate(sources)
    keep("everyday", list(zip(sources, translations, strict=True)))
    return [
        at_least(
            f"everyday, {len(rows)} lines, {len(references)} references: chrF", chrf(translations, *references), 52
        )
    ]


def judge_copying(rows: Sequence[Sequence[str]], translate: Translate, keep: Keep) -> list[Check]:
    """Counts the lines, of a kind, a source and its parts, that are copied."""
    translations = translate([row[1] for row in rows])
    copied = [is_copied(kind, parts, text) for (kind, _, *parts), text in zip(rows, translations, strict=True)]
    kept = [
        (row[0], "copied" if each else "NOT COPIED", row[1], text)
        for row, each, text in zip(rows, copied, translations, strict=True)
    ]
    keep("copying", kept)
    checks = [at_least(f"copied, % of {len(rows)} lines", 100 * sum(copied) / len(rows), 97)]
    for kind in KINDS:
        of_kind = [each for row, each in zip(rows, copied, strict=True) if row[0] == kind]
        checks.append(Check(f"- {kind}", f"{sum(of_kind)} of {len(of_kind)}"))
    return checks


def judge_capitals(rows: Sequence[Sequence[str]], translate: Translate, keep: Keep) -> list[Check]:
    """Compares lines, of a source and a reference, with the same in ALL CAPS."""
    sources, references = ([row[column] for row in rows] for column in range(2))
    mixed, capitals = translate(sources), translate([source.upper() for source in sources])
    keep("capitals", list(zip(sources, mixed, capitals, strict=True)))
    # Not lower(): the capitals of "Straße" are "STRASSE", and nobody can tell what they were.
    caseless = [line.casefold() for line in references]
    scores = [chrf([line.casefold() for line in lines], caseless) for lines in (mixed, capitals)]
    lost = scores[0] - scores[1]
    return [
        Check(f"{len(rows)} lines, mixed case: caseless chrF", f"{scores[0]:.2f}"),
        Check("- in ALL CAPS", f"{scores[1]:.2f}"),
        Check("- lost", f"{lost:.2f}", "<= 3", lost <= 3),
    ]


def judge_held_out(translate: Translate, keep: Keep, *, reverse: bool) -> list[Check]:
    """Scores the Tatoeba sentences that are kept out of every training."""
    sources, references = _read_pairs(DATA / "tatoeba_held_out.tsv", None, reverse=reverse)
    translations = translate(sources)
    keep("tatoeba_held_out", list(zip(sources, translations, strict=True)))
    return [at_least(f"Tatoeba held out, {len(sources)} lines: chrF", chrf(translations, references), 62)]


def judge_general(
    folder: Path, translate: Translate, keep: Keep, max_lines: int | None, *, reverse: bool
) -> list[Check]:
    """Scores each corpus's dev set, and two sets of them.

    Raises:
        ValueError: there is none in the folder.
    """
    paths = sorted(folder.glob("*.dev.tsv.gz"))
    if not paths:
        raise ValueError(f"there is no *.dev.tsv.gz in {folder}")
    checks: list[Check] = []
    scored: dict[str, tuple[list[str], list[str]]] = {}
    for path in paths:
        name = path.name.removesuffix(".dev.tsv.gz")
        sources, references = _read_pairs(path, max_lines, reverse=reverse)
        translations = translate(sources)
        keep(name, list(zip(sources, translations, strict=True)))
        scored[name] = translations, references
        checks.append(Check(f"- {name}, {len(sources)} lines: chrF", f"{chrf(translations, references):.2f}"))
    for title, is_unseen, bar in (("may be trained on", False, 45), ("never trained on", True, 38)):
        chosen = [pair for name, pair in scored.items() if (name in UNSEEN) == is_unseen]
        if chosen:
            translations, references = (list(itertools.chain(*side)) for side in zip(*chosen, strict=True))
            checks.append(at_least(f"general, {title}: chrF", chrf(translations, references), bar))
    return checks


def at_least(name: str, value: float, bar: float) -> Check:
    """Returns a check that a figure reaches its bar."""
    return Check(name, f"{value:.2f}", f">= {bar:g}", value >= bar)


def parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Reads the command line."""
    parser = argparse.ArgumentParser(prog="python -m tests.acceptance.translation_quality", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--address", help="a running server, host:port (default: one is started)")
    wait_help = "seconds that the server may be busy or away, without any answer (%(default)g)"
    parser.add_argument("--wait", type=float, default=60.0, metavar="SECONDS", help=wait_help)
    parser.add_argument("--variant", default="cpu-int8", help="variant of the server to start (%(default)s)")
    parser.add_argument("--bundle", type=Path, help="bundle of the server to start (the built-in one)")
    parser.add_argument("--general", type=Path, metavar="FOLDER", help="where *.dev.tsv.gz are (default: left out)")
    parser.add_argument("--max-lines", type=int, default=500, help="of each file of FOLDER (%(default)s)")
    parser.add_argument("--beam-size", type=int, default=4, help="1 is greedy search (%(default)s)")
    parser.add_argument("--reverse", action="store_true", help="German to English")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="write the translations there, as TSV")
    return parser.parse_args(arguments)


def judge(address: str, options: argparse.Namespace) -> list[Check]:
    """Asks a server for everything and scores it."""
    source, target = ("de", "en") if options.reverse else ("en", "de")

    def translate(sources: list[str]) -> list[str]:
        with Client(address, max_attempts=1) as client:
            return translate_by_server(
                client,
                sources,
                target=target,
                patience_seconds=options.wait,
                source=source,
                beam_size=options.beam_size,
            )

    def keep(name: str, rows: Sequence[Sequence[str]]) -> None:
        if options.output:
            lines = ("\t".join(row).replace("\n", " ") + "\n" for row in rows)
            (options.output / f"{name}.tsv").write_text("".join(lines), encoding="utf-8")

    everyday, capitals = (read_rows(DATA / name) for name in ("everyday.tsv", "capitals.tsv"))
    if options.reverse:
        everyday, capitals = ([[row[1], row[0]] for row in rows] for rows in (everyday, capitals))
    checks = judge_everyday(everyday, translate, keep)
    if not options.reverse:
        checks += judge_copying(read_rows(DATA / "copying.tsv"), translate, keep)
    checks += judge_capitals(capitals, translate, keep)
    checks += judge_held_out(translate, keep, reverse=options.reverse)
    if options.general:
        checks += judge_general(options.general, translate, keep, options.max_lines, reverse=options.reverse)
    return checks


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison and returns the exit status."""
    options = parse_arguments(arguments)
    flags = ["--variant", options.variant, *(["--bundle", str(options.bundle)] if options.bundle else [])]
    try:
        if options.output:
            options.output.mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            address = options.address or stack.enter_context(running_server(flags)).address
            checks = judge(address, options)
    except (OSError, ValueError, ServerNotServing, TranslationError) as error:
        print(error, file=sys.stderr)
        return EXIT_NOT_RUN
    return print_checks(checks)


def _read_pairs(path: Path, max_lines: int | None, *, reverse: bool) -> tuple[list[str], list[str]]:
    pairs = read_corpus(CorpusConfig(tsv=str(path), reverse=reverse), Path()).pairs[:max_lines]
    return [source for source, _ in pairs], [reference for _, reference in pairs]


if __name__ == "__main__":
    sys.exit(main())
