"""`babelserve-export CHECKPOINT OUT --dev SOURCE TARGET`: writes and proves a bundle."""

import argparse
import shlex
from pathlib import Path

import shtab

from export.bundle import MAX_BLEU_LOSS, export_bundle
from export.description import described_quality, described_sizes
from export.drafts import check_new
from export.endings import endings
from export.files import FOR_CPUS
from export.restore import read_checkpoint
from export.shortlist import learn_shortlist
from export.subject import DevSet, subject_of
from export.window import with_window
from model.augment import Pair
from model.command import Parser, name, number, parse
from model.data import read_corpus
from model.recipe import CorpusConfig
from server.bundle.bundle import Bundle
from server.bundle.variants import VARIANTS


def main() -> None:
    """Entry point; exit code 1 when a check fails or the export is interrupted, 2 for wrong arguments."""
    arguments = _parse_arguments()
    with endings("babelserve-export", arguments.out):
        check_new(arguments.out)
        pairs = _read_pairs(arguments.dev)
        dev = DevSet(sources=[source for source, _ in pairs], references=[target for _, target in pairs])
        training = [pair for files in arguments.shortlist for pair in _read_pairs(files)]
        checkpoint = read_checkpoint(arguments.checkpoint)
        if arguments.decoder_window is not None:
            checkpoint = with_window(checkpoint, arguments.decoder_window)
        shortlist = learn_shortlist(training, checkpoint) if arguments.shortlist else None
        bundle = export_bundle(
            subject_of(checkpoint, shortlist),
            arguments.out,
            dev,
            version=arguments.version,
            variants=tuple(arguments.variants),
            max_bleu_loss=arguments.max_bleu_loss,
        )
        print(_conclude(bundle))


def _conclude(bundle: Bundle) -> str:
    manifest = bundle.manifest
    lines = [f"{bundle.directory}: proven ({described_sizes(manifest)})"]
    lines += [f"  {name}: {described_quality(found)}" for name, found in manifest.quality.items()]
    return "\n".join([*lines, f"next: {shlex.join(['babelserve', '--bundle', str(bundle.directory)])}"])


def build_parser() -> argparse.ArgumentParser:
    """All flags, with defaults and units in their help."""
    parser = Parser(prog="babelserve-export", description="Export a checkpoint to a bundle, and prove it.")
    parser.add_argument(
        "checkpoint",
        type=Path,
        help="file written by babelserve-train, such as final.pt, or a bundle exported from one",
    )
    parser.add_argument("out", type=Path, help="directory to make; must not exist")
    parser.add_argument(
        "--dev",
        nargs=2,
        metavar=("SOURCE", "TARGET"),
        required=True,
        help="line-aligned real sentences, at least 200, to calibrate and prove with; not those of a test set",
    )
    parser.add_argument("--version", type=name, default="1", help="the model's version in the manifest (default 1)")
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=list(VARIANTS),
        default=list(FOR_CPUS),
        help=f"what to write (default: {' '.join(FOR_CPUS)})",
    )
    parser.add_argument(
        "--max-bleu-loss",
        type=number(0, 100),
        default=MAX_BLEU_LOSS,
        help=f"what a variant or its shortlist may lose to cpu-fp32 on the dev set (default {MAX_BLEU_LOSS})",
    )
    parser.add_argument(
        "--decoder-window",
        type=int,
        metavar="TOKENS",
        help="last target tokens that the decoder attends to, 0 for all, so that the steps of a long sentence take no "
        "more time and memory than those of a short one (default: as the model was trained)",
    )
    parser.add_argument(
        "--shortlist",
        nargs="+",
        action="append",
        default=[],
        metavar=("SOURCE", "TARGET"),
        help="line-aligned training text, or one file of SOURCE TAB TARGET lines, to learn a lexical shortlist from; "
        "may be given several times (default: the bundle has none)",
    )
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    return parser


def _parse_arguments() -> argparse.Namespace:
    parser = build_parser()
    arguments = parse(parser)
    if any(len(files) not in (1, 2) for files in arguments.shortlist):
        parser.error("argument --shortlist: expected 1 or 2 arguments; give it once for each corpus")
    return arguments


def _read_pairs(files: list[str]) -> list[Pair]:
    corpus = CorpusConfig(source=files[0], target=files[1]) if len(files) > 1 else CorpusConfig(tsv=files[0])
    return read_corpus(corpus, Path()).pairs


if __name__ == "__main__":
    main()
