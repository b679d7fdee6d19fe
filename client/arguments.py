"""The flags of `babelserve-translate`."""

import argparse
import importlib.metadata
from pathlib import Path

from client.client import DEFAULT_DEADLINE_SECONDS


def build_parser() -> argparse.ArgumentParser:
    """All flags, with defaults and units in their help."""
    parser = argparse.ArgumentParser(
        prog="babelserve-translate",
        description="Translate texts by a babelserve server: arguments, a file, or standard input line by line.",
        epilog="Exit codes: 0 all translated, 1 some texts failed, 2 usage or refused by the server, "
        "3 server unreachable or failed.",
    )
    add = parser.add_argument
    add("texts", nargs="*", metavar="TEXT", help="texts to translate; none: the input's lines")
    add("--input", type=Path, metavar="FILE", help="read lines of UTF-8 from FILE (default: standard input)")
    add("--output", type=Path, metavar="FILE", help="write to FILE (default: standard output)")
    add(
        "--json",
        action="store_true",
        help="one JSON object per text: translation, score, hypotheses, token counts, error",
    )
    add("--source", metavar="CODE", help="source language, such as en; auto: detected (default: the server's)")
    add("--target", metavar="CODE", help="target language, such as de (default: the server's, if it has only one)")
    add("--model", metavar="NAME", help="model (default: the server's)")
    add("--beam-size", type=int, metavar="N", help="width of the beam; 1 is greedy and fastest (default: the server's)")
    add(
        "--num-hypotheses",
        type=int,
        metavar="N",
        help="translations per text, 1 to beam size; shown by --json (default: 1)",
    )
    add("--length-penalty", type=float, metavar="A", help="0 to 10; over 1 favours longer translations (default: 1)")
    add("--address", default="localhost:50051", metavar="HOST:PORT", help="the server (default: %(default)s)")
    add(
        "--deadline",
        type=_positive_float,
        default=DEFAULT_DEADLINE_SECONDS,
        metavar="SECONDS",
        help="longest wait for one batch of texts, retries included (default: %(default)g)",
    )
    add(
        "--batch-lines",
        type=_batch_lines,
        default=32,
        metavar="N",
        help="most texts per request (default: %(default)s)",
    )
    add("--in-flight", type=_positive_int, default=4, metavar="N", help="requests at a time (default: %(default)s)")
    add(
        "--no-health",
        action="store_true",
        help="do not ask the server's health first, where a front does not pass it on",
    )
    add("--api-key-file", type=Path, metavar="FILE", help="file that holds the API key, where the server asks for one")
    tls = parser.add_argument_group("TLS")
    tls.add_argument("--tls", action="store_true", help="encrypt; implied by the other flags of this group")
    tls.add_argument("--tls-ca", type=Path, metavar="FILE", help="PEM certificates that may vouch for the server")
    tls.add_argument("--tls-cert", type=Path, metavar="FILE", help="PEM certificate of this client")
    tls.add_argument("--tls-key", type=Path, metavar="FILE", help="PEM private key of this client")
    tls.add_argument("--tls-server-name", metavar="NAME", help="name in the server's certificate, if not the address's")
    add("--version", action="version", version=f"%(prog)s {importlib.metadata.version('babelserve')}")
    return parser


def _positive_float(text: str) -> float:
    value = float(text)
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"must be over 0, not {text}")
    return value


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
