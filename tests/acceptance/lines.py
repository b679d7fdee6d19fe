"""What the commands share that judge a server line by line: its answers, sentences to ask for, and flags."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import grpc

from babelserve.v1.translation_pb2 import (
    PLACEMENT_BY_POSITION,
    PLACEMENT_MISSING,
    DecodingOptions,
    OutputOptions,
    Sentence,
    TranslateRequest,
)
from babelserve.v1.translation_pb2_grpc import TranslationServiceStub
from model.data import read_corpus
from model.recipe import CorpusConfig
from tests.acceptance.calls import open_stub
from tests.acceptance.report import EXIT_NOT_RUN, Check, print_checks
from tests.acceptance.server_process import BUILTIN_BUNDLE, REPOSITORY, ServerNotServing, running_server

DATA = REPOSITORY / "tests" / "data"
_PAIRS = ("general_dev", "multi30k_val", "everyday.tsv", "tatoeba_held_out.tsv")
_TEXTS_A_CALL = 200
_TIMEOUT_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A translation.

    Attributes:
        missing: numbers of its source that the server says it may lack.
        placed: parts of its source that the server says it has put by position.
        sentences: if they were asked for, or something of them.
    """

    text: str
    missing: tuple[str, ...] = ()
    placed: tuple[str, ...] = ()
    sentences: tuple[Sentence, ...] = ()


@dataclass(frozen=True, slots=True)
class Asker:
    """Translates by a live server.

    Attributes:
        stub: of the server.
        source: code of the language.
        target: likewise.
        beam_size: 0 for the server's own.
        output: what answers carry.
    """

    stub: TranslationServiceStub
    source: str
    target: str
    beam_size: int = 0
    output: OutputOptions = field(default_factory=OutputOptions)

    def __call__(self, texts: Sequence[str], prefixes: Sequence[str] = ()) -> list[Answer]:
        """Returns the answers, in order.

        Args:
            texts: to translate.
            prefixes: what the translation of each text must begin with; none leaves this to the server.

        Raises:
            grpc.RpcError: the server refused a call.
            ValueError: it failed with one of the texts.
        """
        answers: list[Answer] = []
        for start in range(0, len(texts), _TEXTS_A_CALL):
            batch = texts[start : start + _TEXTS_A_CALL]
            request = TranslateRequest(
                contents=batch,
                target_prefixes=prefixes[start : start + _TEXTS_A_CALL],
                source_language_code=self.source,
                target_language_code=self.target,
                decoding=DecodingOptions(beam_size=self.beam_size) if self.beam_size else None,
                output=self.output,
            )
            for text, translation in zip(
                batch, self.stub.Translate(request, timeout=_TIMEOUT_SECONDS).translations, strict=True
            ):
                if translation.HasField("status"):
                    raise ValueError(f"{text!r}: {translation.status.message}")
                missing, placed = (
                    tuple(part.text for part in translation.kept if part.placement == placement)
                    for placement in (PLACEMENT_MISSING, PLACEMENT_BY_POSITION)
                )
                answers.append(Answer(translation.text, missing, placed, tuple(translation.sentences)))
        return answers


def read_pairs(source: str, target: str) -> list[tuple[str, str]]:
    """Returns sentences of `tests/data` and their references, which are empty where there are none in the target.

    Args:
        source: "en" or "de".
        target: any language.

    Raises:
        ValueError: there is nothing in the source language.
    """
    if source not in ("en", "de"):
        raise ValueError(f'there are sentences in "en" and "de", not in "{source}"')
    pairs: list[tuple[str, str]] = []
    for name in _PAIRS:
        if name.endswith(".tsv"):
            corpus = CorpusConfig(tsv=name, reverse=source == "de")
        else:
            other = "de" if source == "en" else "en"
            corpus = CorpusConfig(source=f"{name}.{source}.gz", target=f"{name}.{other}.gz")
        pairs += read_corpus(corpus, DATA).pairs
    return [(text, reference if target in ("en", "de") else "") for text, reference in pairs]


def add_flags(parser: argparse.ArgumentParser, count: int) -> None:
    """Adds the flags that these commands have in common; `count` is the default of --sentences."""
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--address", help="a running server, host:port (default: one is started)")
    parser.add_argument("--bundle", type=Path, help="bundle of the server to start (the built-in one of the languages)")
    parser.add_argument("--variant", default="cpu-int8", help="variant of the server to start (%(default)s)")
    parser.add_argument("--source", default="en", help="language to translate from, en or de (%(default)s)")
    parser.add_argument("--target", default="de", help="language to translate into (%(default)s)")
    parser.add_argument("--reverse", action="store_true", help="German to English")
    parser.add_argument("--beam-size", type=int, default=0, help="1 is greedy search (default: as the server does)")
    parser.add_argument("--sentences", type=int, default=count, help="how many (%(default)s)")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write all lines that fail there, as TSV")


@contextmanager
def open_asker(options: argparse.Namespace) -> Iterator[Asker]:
    """Connects to the server that the flags name, or to one that runs as long as the block.

    Raises:
        ServerNotServing: it did not serve in time.
    """
    source, target = ("de", "en") if options.reverse else (options.source, options.target)
    if options.address:
        with open_stub(options.address) as stub:
            yield Asker(stub, source, target, options.beam_size)
        return
    bundle = options.bundle or BUILTIN_BUNDLE.with_name(f"{source}-{target}")
    flags = ["--variant", options.variant, "--bundle", str(bundle)]
    with running_server(flags) as server, open_stub(server.address) as stub:
        yield Asker(stub, source, target, options.beam_size)


Judged = tuple[list[Check], list[list[str]]]  # the table, and rows to keep


def run_judge(options: argparse.Namespace, judge: Callable[[Asker], Judged]) -> int:
    """Has a server judged, prints the table, keeps the rows that --output is for, and returns the exit status."""
    try:
        with open_asker(options) as ask:
            checks, rows = judge(ask)
        _write_rows(options.output, rows)
    except (OSError, ValueError, ServerNotServing, grpc.RpcError) as error:
        print(error, file=sys.stderr)
        return EXIT_NOT_RUN
    return print_checks(checks)


def _write_rows(path: Path | None, rows: Sequence[Sequence[str]]) -> None:
    """Writes a TSV file, with blanks for tabs and line breaks in its cells; no path means none."""
    if path is not None:
        lines = ("\t".join(" ".join(cell.split()) for cell in row) + "\n" for row in rows)
        path.write_text("".join(lines), encoding="utf-8")
