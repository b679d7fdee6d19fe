"""`babelserve-import SOURCE OUT`: somebody else's model in, a proven bundle out."""

import argparse
import sys
from pathlib import Path

import shtab

from export.agreement import MIN_CHRF
from export.bundle import export_bundle
from export.description import described_quality, described_sizes
from export.drafts import check_new
from export.endings import endings
from export.files import EXACT, FOR_CPUS
from export.imports.detect import opened, read_model
from export.imports.foreign import ForeignModel
from export.imports.formats.tensors import FormatError
from export.imports.languages import GivenLanguages
from export.imports.reference import compare, refusal
from export.imports.report import ImportFault, Report, shown
from export.imports.samples import read_sentences, sample_set
from export.imports.subject import build_subject
from model.command import NAMES, Parser, is_name, name, number, parse
from server.bundle.bundle import Bundle
from server.bundle.variants import VARIANTS


def main() -> None:
    """Entry point; exit code 1 when a check fails or the import is interrupted, 2 for a model that cannot be read."""
    arguments = _parse_arguments()
    report = Report(allowed=frozenset(arguments.allow))
    with endings("babelserve-import", arguments.out, FormatError, subject=str(arguments.source)):
        if not arguments.dry_run:
            check_new(arguments.out)
        text = None if arguments.text is None else read_sentences(arguments.text)
        with opened(arguments.source) as directory:
            try:
                _import(directory, arguments, text, report)
            except ImportFault as faults:
                raise FormatError(f"cannot be imported:\n{faults}") from faults


def _import(directory: Path, arguments: argparse.Namespace, text: list[str] | None, report: Report) -> None:
    given = GivenLanguages(source=tuple(arguments.source_language), target=tuple(arguments.target_language))
    model = read_model(directory, given, report, name=arguments.name or "")
    if model is not None:
        model.check(report)
        if not is_name(model.name):
            report.fault("the model's name", found=model.name, expected=NAMES, remedy="give it another with --name")
    report.check()
    assert model is not None  # or there were faults
    print(_describe(model))
    for note in report.notes:
        print(note)
    if arguments.dry_run:
        return
    if arguments.check and (said := refusal(model.reference)):
        raise FormatError(said)
    dev = sample_set(model.directions, text)
    num_printed = len(report.notes)
    subject = build_subject(model, report)
    for note in report.notes[num_printed:]:
        print(note)
    bundle = export_bundle(
        subject,
        arguments.out,
        dev,
        version=arguments.version,
        variants=tuple(arguments.variants),
        min_chrf=arguments.min_chrf,
    )
    print(_conclude(bundle))
    if arguments.check:
        found = compare(model, directory, bundle, dev)
        print(f"  {found}")
        if found.differences:
            sys.exit(1)


def _describe(model: ForeignModel) -> str:
    config = model.config
    sources = [pair.source for pair in model.language_pairs] or list(model.languages.source if model.languages else ())
    targets = [pair.target for pair in model.language_pairs] or list(model.languages.target if model.languages else ())
    vocabulary = f"{config.vocab_size} tokens"
    if config.source_vocab_size is not None:
        vocabulary = f"{config.source_vocab_size} and {vocabulary}"
    layers = f"{config.encoder_layers}+{config.decoder_layers}"
    millions = model.num_parameters / 1e6
    return "\n".join(
        [
            shown(f"{model.family}: {model.name}"),
            f"  {millions:.1f} M parameters: {layers} layers, width {config.d_model}, {vocabulary}",
            f"  {_listed(sources)} into {_listed(targets)}",
            f"  a bundle of about {4 * millions:.0f} MB in float32 and {millions:.0f} MB in int8",
            f"  licence: {model.origin['licence']}",
        ]
    )


def _conclude(bundle: Bundle) -> str:
    manifest, parity = bundle.manifest, bundle.manifest.parity
    checked = parity["beam_4_ids"]
    lines = [
        f"{bundle.directory}: proven ({described_sizes(manifest)})",
        f"  {checked['equal']} of {checked['sentences']} sentences identical to the model itself in float32, beam 4",
    ]
    lines += [f"  {name}: {described_quality(found)}" for name, found in manifest.quality.items() if name != EXACT]
    return "\n".join(lines)


def _listed(codes: list[str], most: int = 12) -> str:
    codes = list(dict.fromkeys(codes))
    return ", ".join(codes) if len(codes) <= most else f"{len(codes)} languages ({', '.join(codes[:most])} ...)"


def build_parser() -> argparse.ArgumentParser:
    """All flags, with defaults and units in their help."""
    parser = Parser(
        prog="babelserve-import", description="Make a bundle of somebody else's translation model, and prove it."
    )
    parser.add_argument(
        "source",
        type=Path,
        help="the model's directory, one of its checkpoints (.npz, .pt, model*.bin), or an .argosmodel file",
    )
    parser.add_argument("out", type=Path, nargs="?", help="directory to make; must not exist")
    parser.add_argument(
        "--check",
        action="store_true",
        help="compare the bundle with transformers, or CTranslate2 for its own; with exit code 1 if a sentence differs",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what it is and what is missing, from headers only")
    parser.add_argument(
        "--text",
        type=Path,
        metavar="FILE",
        help="sentences in the source language, one a line, at least 32, to calibrate and prove with (default: ours)",
    )
    for side in ("source", "target"):
        parser.add_argument(
            f"--{side}",
            dest=f"{side}_language",
            type=_codes,
            action="extend",
            default=[],
            metavar="CODE[,CODE ...]",
            help=f"{side} languages",
        )
    parser.add_argument("--name", type=name, help="the model's name (default: its directory's)")
    parser.add_argument("--version", type=name, default="1", help="the model's version in the manifest (default 1)")
    parser.add_argument(
        "--variants",
        nargs="+",
        choices=list(VARIANTS),
        default=list(FOR_CPUS),
        help=f"what to write (default: {' '.join(FOR_CPUS)})",
    )
    parser.add_argument(
        "--min-chrf",
        type=number(0, 100),
        default=MIN_CHRF,
        help=f"chrF that other variants must reach to float32's translations (default {MIN_CHRF})",
    )
    parser.add_argument(
        "--allow",
        action="append",
        default=[],
        metavar="NAME",
        help="a setting or tensor that is unknown here and that you know to change no translation; "
        "may be given several times",
    )
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    return parser


def _codes(text: str) -> list[str]:
    """Returns codes with commas between: with spaces between, a flag would take the paths behind it for codes too."""
    return text.split(",")


def _parse_arguments() -> argparse.Namespace:
    parser = build_parser()
    arguments = parse(parser)
    if arguments.out is None and not arguments.dry_run:
        parser.error("say where the bundle is to be made, or --dry-run")
    if arguments.check and EXACT not in arguments.variants:
        parser.error(f"--check compares {EXACT}, which --variants leaves out")
    if arguments.check and arguments.dry_run:
        parser.error("--check compares a bundle, which --dry-run does not write")
    return arguments


if __name__ == "__main__":
    main()
