"""The flags of `babelserve-translate`."""

import argparse
from pathlib import Path

import shtab

from babelserve.connection import Parser, add_connection_flags, add_version_flag, non_negative_float
from babelserve.formats.readers import READERS
from babelserve.rules import FORMALITIES

DEFAULT_WAIT_SECONDS = 300.0  # of a job of lines: longer than a host takes to start anew


def build_parser() -> argparse.ArgumentParser:
    """All flags, with defaults and units in their help."""
    parser = Parser(
        prog="babelserve-translate",
        description="Translate texts by a babelserve server: arguments, a file, or standard input line by line.",
        epilog="Exit codes: 0 all translated, 1 some texts failed, 2 usage or refused by the server, "
        "3 server unreachable or failed, 130 interrupted by Ctrl-C, 141 the reader of the output went away.",
    )
    add = parser.add_argument
    add("texts", nargs="*", default=[], metavar="TEXT", help="texts to translate; none: the input's lines")
    _add_file_flags(parser)
    _add_translation_flags(parser)
    _add_word_flags(parser)
    add_list = parser.add_mutually_exclusive_group().add_argument
    add_list("--list-models", action="store_true", help="show the server's models and their languages, and end")
    add_list("--list-glossaries", action="store_true", help="show the server's glossaries, and end")
    add("--address", default="localhost:50051", metavar="HOST:PORT", help="the server (default: %(default)s)")
    add_connection_flags(parser)
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    add_version_flag(parser)
    return parser


def _add_file_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--input", type=Path, metavar="FILE", help="read lines of UTF-8, plain or gzipped (default: standard input)")
    add(
        "--output",
        type=Path,
        metavar="FILE",
        help="write to FILE, which is FILE.part until all is translated, and gzipped if it ends in .gz "
        "(default: standard output)",
    )
    add(
        "--format",
        choices=list(READERS),
        help="translate a file of this format, of which all but its texts stays (default: each line is a text)",
    )
    add(
        "--resume",
        action="store_true",
        help="go on after what a stopped run has left in FILE.part, with the same input and options",
    )
    add(
        "--json",
        action="store_true",
        help="one JSON object per text, or with --list-models or --list-glossaries per entry",
    )
    add(
        "--explain",
        type=Path,
        metavar="FILE",
        help="also write a page of HTML that shows why each of up to 100 texts was translated so",
    )
    add(
        "--wait",
        type=non_negative_float,
        metavar="SECONDS",
        help="how long a server may be busy or away, without any answer, before a job is given up "
        f"(default: {DEFAULT_WAIT_SECONDS:g}; for texts given as arguments 0: after some attempts)",
    )
    add(
        "--batch-lines",
        type=_batch_lines,
        default=32,
        metavar="N",
        help="most texts per request; fewer while the server has no room for them (default: %(default)s)",
    )
    add(
        "--in-flight",
        type=_positive_int,
        default=4,
        metavar="N",
        help="most requests at a time; fewer likewise (default: %(default)s)",
    )


def _add_translation_flags(parser: argparse.ArgumentParser) -> None:
    """Adds the target and the `TranslateOptions`, each by its name; what is not given is None."""
    add = parser.add_argument
    add("--source", metavar="CODE", help="source language, such as en; auto: detected (default: the server's)")
    add("--target", metavar="CODE", help="target language, such as de (default: the server's, if it has only one)")
    add("--model", metavar="NAME", help="model, see --list-models (default: the server's)")
    add("--mime-type", metavar="TYPE", help="of the texts, such as text/html, whose tags stay (default: text/plain)")
    add("--beam-size", type=int, metavar="N", help="width of the beam; 1 is greedy and fastest (default: the server's)")
    add(
        "--num-hypotheses",
        type=int,
        metavar="N",
        help="translations per text, 1 to beam size; shown by --json (default: 1)",
    )
    add("--length-penalty", type=float, metavar="A", help="0 to 10; over 1 for longer texts (default: the model's)")
    add("--max-output-tokens", type=int, metavar="N", help="most target tokens of a sentence (default: by its length)")
    add(
        "--use-shortlist",
        action="store_true",
        default=None,
        help="search only the model's lexical shortlist: faster, for models that have one",
    )
    _add_decoding_flags(parser)
    add(
        "--refuse-unknown-scripts",
        action="store_true",
        default=None,
        help="have a text fail that has a sentence in a script that the model does not know (default: it is copied)",
    )
    add(
        "--translate-attributes",
        action="store_true",
        default=None,
        help="translate attributes that people read, such as alt, too, with --mime-type text/html (default: they stay)",
    )
    _add_tag_flags(parser)
    add(
        "--adapt-quantities",
        action="store_true",
        default=None,
        help="write numbers, currencies, units and dates as the target language does, English or German",
    )
    add("--formality", choices=FORMALITIES, help="speak as to a friend (less) or to a stranger (more), in German")
    add(
        "--no-scores",
        dest="with_scores",
        action="store_false",
        default=None,
        help="spare greedy search (--beam-size 1) the scores: faster",
    )
    add(
        "--priority",
        choices=["high", "normal", "low"],
        help="among your own requests, while the server is busy (default: normal)",
    )
    add(
        "--traffic-key",
        metavar="KEY",
        help="where versions of a model share its requests, those with the same key go to the same one",
    )


def _add_tag_flags(parser: argparse.ArgumentParser) -> None:
    """Adds what says how lines and elements of texts are read."""
    add = parser.add_argument
    add(
        "--join-lines",
        action="store_true",
        default=None,
        help="take line breaks in plain text for blanks, and an empty line for the end of a paragraph (default: a line "
        "break ends a sentence)",
    )
    for kind, does in (
        ("ignored", "stay as they are, of XML or HTML"),
        ("splitting", "end a sentence, of XML"),
        ("non-splitting", "do not end a sentence, of XML"),
    ):
        add(f"--{kind}-tags", type=_names, metavar="NAMES", help=f"elements that {does}, parted by commas")
    add(
        "--only-named-split",
        action="store_true",
        default=None,
        help="let only --splitting-tags end a sentence of XML (default: also elements that nowhere stand beside text)",
    )
    add("--repair-xml", action="store_true", default=None, help="read XML that is not well-formed as HTML")


def _names(text: str) -> list[str]:
    return [name for name in text.split(",") if name]


def _add_decoding_flags(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--repetition-penalty", type=float, metavar="A", help="1 to 10; over 1 for fewer repeated tokens (default: 1)")
    add("--no-repeat-ngram-size", type=int, metavar="N", help="write no N tokens twice (default: 0, any)")
    add("--min-output-tokens", type=int, metavar="N", help="fewest target tokens of a sentence (default: 0)")
    add("--suppress", action="append", metavar="TEXT", help="never write TEXT; may be given up to 100 times")
    add("--patience", type=float, metavar="A", help="wait for A times as many hypotheses, 1 to 10 (default: 1)")
    add(
        "--target-prefix",
        nargs=1,
        dest="target_prefixes",
        metavar="TEXT",
        help="begin the translation of every text with TEXT, and go on from there",
    )
    add("--prefix-bias-beta", type=float, metavar="B", help="draw to --target-prefix instead, 0 to 0.999 (default: 0)")
    add(
        "--return-alternatives",
        action="store_true",
        default=None,
        help="have the --num-hypotheses translations begin with different tokens (default: the best ones)",
    )
    add(
        "--min-alternative-expansion-prob",
        type=float,
        metavar="P",
        help="leave out alternatives whose first token is less probable (default: 0)",
    )
    add("--min-length-ratio", type=float, metavar="R", help="fewest target tokens for a source token (default: 0)")
    add("--max-length-ratio", type=float, metavar="R", help="most target tokens for a source token (default: none)")
    length = parser.add_mutually_exclusive_group().add_argument
    length("--exact-tokens", type=int, metavar="N", help="write N target tokens for each sentence (default: any)")
    length("--ratio", type=float, metavar="R", help="write R target tokens for each source token (default: any)")
    add("--coverage-penalty", type=float, metavar="A", help="over 0 against words left out, 0 to 10 (default: 0)")
    add("--sampling-top-k", type=int, metavar="K", help="draw tokens, from the K most probable (default: 0, all)")
    add("--sampling-top-p", type=float, metavar="P", help="draw tokens, from those with probability P (default: 1)")
    add("--sampling-temperature", type=float, metavar="T", help="draw tokens; under 1 likelier ones (default: 1)")
    add("--sampling-seed", type=int, metavar="N", help="draw tokens, the same for the same seed (default: others)")
    add(
        "--no-end-loops",
        dest="end_loops",
        action="store_false",
        default=None,
        help="let translations go on that say the same again and again (default: they end)",
    )


def _add_word_flags(parser: argparse.ArgumentParser) -> None:
    """Adds what says how certain words are translated."""
    add = parser.add_argument
    add(
        "--keep",
        action="append",
        metavar="TEXT",
        help="keep TEXT, such as a name, as it is; may be given up to 100 times",
    )
    add(
        "--term",
        action="append",
        default=[],
        metavar="SOURCE=TARGET",
        help="translate SOURCE as TARGET, or by the form that fits: SOURCE=TARGET|FORM|FORM; may be given often",
    )
    add(
        "--glossary",
        type=Path,
        metavar="FILE",
        help="file of such terms, each a line of source, target and forms, parted by tabs, semicolons or commas; "
        "up to 1000 terms with those of --term",
    )
    add(
        "--server-glossary",
        action="append",
        dest="glossaries",
        metavar="NAME",
        help="use the terms of this glossary of the server, see --list-glossaries; may be given up to 16 times",
    )
    add(
        "--ignore-case",
        action="store_true",
        default=None,
        help="find the terms in whatever case (default: as they are written, or with a capital at a beginning)",
    )


def _positive_int(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, not {text}")
    return value


def _batch_lines(text: str) -> int:
    value = _positive_int(text)
    if value > 1024:
        raise argparse.ArgumentTypeError(f"must be at most 1024, not {text}")
    return value
