"""`babelserve-evaluate`: sacreBLEU and chrF of a live server, of a checkpoint, or of a file of translations.

With `--heads` it measures the heads of attention of a checkpoint instead (`export.heads`).

    babelserve-evaluate --source test.en.gz --reference test.de.gz --server localhost:50051
    babelserve-evaluate --tsv held-out.tsv --checkpoint final.pt
    babelserve-evaluate --heads everyday.tsv news.tsv --checkpoint final.pt

A source sentence with several references (repeated in a TSV file) is translated for each of them.
"""

import argparse
import errno
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Unpack

import sacrebleu
import sentencepiece
import shtab

from babelserve.client import Client
from babelserve.connection import add_connection_flags, connect, non_negative_float
from babelserve.errors import TranslationError
from babelserve.job import patiently, translate_lines
from babelserve.lines import Line
from babelserve.messages import TranslateOptions
from babelserve.models import only_target
from babelserve.terminal import check_streams
from export.heads import measure_heads, report
from export.texts import read_lines
from model.checkpoint import Checkpoint, load_checkpoint
from model.command import Parser, parse, printable
from model.data import read_corpus
from model.families import FAMILIES
from model.files import replacing
from model.recipe import CorpusConfig
from server.bundle.graphs import MAX_BEAM_SIZE

BATCH_SENTENCES = 64
_NO_DRAFT = (errno.EACCES, errno.EBUSY, errno.EPERM, errno.EROFS)  # a write-protected folder, or a mounted file


def translate_by_server(
    client: Client,
    sources: list[str],
    *,
    target: str,
    patience_seconds: float,
    **options: Unpack[TranslateOptions],
) -> list[str]:
    """Translates through the gRPC API, one text for each sentence, as fast as the server has room for them.

    Args:
        client: of the server.
        sources: sentences.
        target: code of the target language.
        patience_seconds: in which the server may be busy or away, without any answer.
        options: see `TranslateOptions`.

    Raises:
        TranslationError: the server did not answer, or a text has no translation.
    """
    lines = (Line(text=source, num_bytes=len(source)) for source in sources)
    batches = translate_lines(
        client,
        lines,
        target=target,
        batch_lines=BATCH_SENTENCES,
        in_flight=2,
        patience_seconds=patience_seconds,
        tell=_tell,
        **options,
    )
    texts: list[str] = []
    for translation in (line.translation for batch in batches for line in batch):
        if translation.error is not None:
            message = f"sentence {len(texts) + 1}: {translation.error.message}"
            raise TranslationError(message, code=translation.error.code)
        texts.append(translation.text)
    return texts


def translate_by_checkpoint(path: Path, sources: list[str], beam_size: int) -> list[str]:
    """Translates with the torch oracle, sentence by sentence as they stand: servers split them, and mask their parts.

    Raises:
        OSError: the file cannot be read.
        ValueError: it is not a checkpoint.
    """
    checkpoint = load_checkpoint(path)
    model, eos_id = checkpoint.build_network(), checkpoint.config.eos_id
    family = FAMILIES[checkpoint.config.family]
    tokenizer = sentencepiece.SentencePieceProcessor(model_proto=checkpoint.tokenizer)
    limit = checkpoint.config.max_positions
    encoded = [[*ids[: limit - 1], eos_id] for ids in tokenizer.encode(sources)]
    order = sorted(range(len(encoded)), key=lambda i: len(encoded[i]))
    texts = [""] * len(encoded)
    for start in range(0, len(order), BATCH_SENTENCES):
        chosen = order[start : start + BATCH_SENTENCES]
        for i, ids in zip(chosen, family.translate(model, [encoded[i] for i in chosen], beam_size), strict=True):
            texts[i] = tokenizer.decode(ids)
    return texts


def scores(hypotheses: list[str], references: list[str]) -> dict[str, str | float]:
    """Returns corpus sacreBLEU (13a, cased) and chrF with the signatures that make them comparable."""
    bleu, chrf = sacrebleu.metrics.BLEU(), sacrebleu.metrics.CHRF()
    return {
        "sentences": len(hypotheses),
        "bleu": round(bleu.corpus_score(hypotheses, [references]).score, 2),
        "bleu_signature": str(bleu.get_signature()),
        "chrf": round(chrf.corpus_score(hypotheses, [references]).score, 2),
        "chrf_signature": str(chrf.get_signature()),
    }


def main() -> None:
    """Entry point; prints JSON. Exit code 2 for wrong arguments or unreadable files, 1 when translating fails."""
    arguments = _parse_arguments()
    try:
        check_streams("stdout")
        if arguments.output:
            _check_output(arguments.output)
        found = (_print_heads if arguments.heads else _print_scores)(arguments)
        if arguments.output:
            _write(arguments.output, found)
    except (OSError, ValueError) as error:
        for line in str(error).split("\n"):
            _tell(line)
        sys.exit(2)
    except TranslationError as error:
        _tell(f"{arguments.server}: {error}")
        sys.exit(1)


def _check_output(path: Path) -> None:
    """Says before the work what forbids writing. Raises OSError."""
    if path.is_dir() or (path.exists() and not os.access(path, os.W_OK)):
        raise OSError(f"--output {path} is a directory, or write-protected")
    if not path.exists():
        with tempfile.TemporaryFile(dir=path.resolve().parent):
            pass


def _write(path: Path, text: str) -> None:
    """Writes a file whole or not at all if a draft can take its place, and else into the file. Raises OSError."""
    if path.is_file() or not path.exists():
        try:
            with replacing(path.resolve()) as draft:
                draft.write_text(text, encoding="utf-8")
            return
        except OSError as error:
            if getattr(error.__cause__, "errno", None) not in _NO_DRAFT:
                raise
    path.write_text(text, encoding="utf-8")


def _print_scores(arguments: argparse.Namespace) -> str:
    """Translates, prints the scores, and returns the translations, one a line.

    Raises:
        OSError, ValueError: a file cannot be read, or does not fit.
        TranslationError: the server has not translated.
    """
    source, reference = arguments.source or "", arguments.reference or ""
    limit = arguments.limit or 0
    corpus = read_corpus(CorpusConfig(source=source, target=reference, tsv=arguments.tsv or "", limit=limit), Path())
    pairs = corpus.pairs
    sources = [source for source, _ in pairs]
    if arguments.server:
        hypotheses = _translate_by_named_server(arguments, sources)
    elif arguments.checkpoint:
        hypotheses = translate_by_checkpoint(arguments.checkpoint, sources, arguments.beam_size)
    else:
        lines = enumerate(read_lines("--hypotheses", arguments.hypotheses), 1)
        broken = set(corpus.broken)
        hypotheses = [line for number, line in lines if number not in broken][: arguments.limit]
    if len(hypotheses) != len(pairs):
        raise ValueError(f"{len(hypotheses)} translations for {len(pairs)} sentences")
    print(json.dumps(scores(hypotheses, [reference for _, reference in pairs]), indent=2))
    return _by_line(hypotheses, corpus.broken)


def _by_line(translations: list[str], broken: list[int]) -> str:
    """Returns translations as lines by the numbers of their sources: that of a broken line is empty.

    A model may make a line break of its own. A space takes its place, so that the lines that follow keep their numbers.
    """
    left, empty = iter(translations), set(broken)
    numbers = range(1, len(translations) + len(broken) + 1)
    lines = ("" if number in empty else next(left).replace("\n", " ") for number in numbers)
    return "".join(f"{line}\n" for line in lines)


def _print_heads(arguments: argparse.Namespace) -> str:
    """Prints a table of the heads, and returns it as JSON. Raises OSError and ValueError."""
    limit = arguments.limit or 0
    texts = {path: read_corpus(CorpusConfig(tsv=path, limit=limit), Path()).pairs for path in arguments.heads}
    found = measure_heads(_read_checkpoint(arguments.checkpoint), texts)
    print(report(found))
    return f"{json.dumps(found, indent=1)}\n"


def _read_checkpoint(path: Path) -> Checkpoint:
    """Reads a checkpoint's file, or the checkpoint of a bundle. Raises OSError and ValueError."""
    if not path.is_dir():
        return load_checkpoint(path)
    from export.restore import restore_checkpoint  # noqa: PLC0415  # needs onnx, which the extra `train` does not bring
    from export.verify import VerificationError  # noqa: PLC0415
    from server.errors import BundleError  # noqa: PLC0415

    try:
        return restore_checkpoint(path)
    except (BundleError, VerificationError) as error:
        raise ValueError(str(error)) from error


def build_parser() -> argparse.ArgumentParser:
    """All flags, with defaults and units in their help."""
    parser = Parser(prog="babelserve-evaluate", description="Score translations: sacreBLEU and chrF.")
    parser.add_argument("--source", metavar="FILE", help="source sentences, one a line, plain or gzipped")
    parser.add_argument("--reference", metavar="FILE", help="their translations, line by line")
    parser.add_argument("--tsv", metavar="FILE", help="instead of both: lines of source TAB reference")
    parser.add_argument(
        "--heads",
        nargs="+",
        metavar="FILE",
        help="instead of scores: how much the loss in each of these texts (like --tsv) rises without each head of "
        "attention of --checkpoint, which may be a bundle, and which heads are alike; --output gets it as JSON",
    )
    system = parser.add_mutually_exclusive_group(required=True)
    system.add_argument("--server", metavar="HOST:PORT", help="translate through a live server")
    system.add_argument("--checkpoint", type=Path, metavar="FILE", help="translate with PyTorch")
    system.add_argument("--hypotheses", type=Path, metavar="FILE", help="translations, line by line")
    parser.add_argument("--beam-size", type=int, default=4, help="1 is greedy search (default 4)")
    parser.add_argument("--limit", type=int, metavar="N", help="score the first N pairs only")
    parser.add_argument("--output", type=Path, metavar="FILE", help="write the translations there")
    _add_server_flags(parser)
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    return parser


def _parse_arguments() -> argparse.Namespace:
    parser = build_parser()
    arguments = parse(parser)
    if arguments.heads:
        if arguments.tsv or arguments.source or arguments.reference or not arguments.checkpoint:
            parser.error("give --heads with --checkpoint, and without --tsv, --source and --reference")
    elif bool(arguments.tsv) == bool(arguments.source and arguments.reference):
        parser.error("give either --tsv or both --source and --reference")
    if not 1 <= arguments.beam_size <= MAX_BEAM_SIZE:
        parser.error(f"argument --beam-size: must be in 1..{MAX_BEAM_SIZE}, not {arguments.beam_size}")
    if arguments.limit is not None and arguments.limit < 1:
        parser.error(f"argument --limit: must be at least 1, not {arguments.limit}")
    return arguments


def _add_server_flags(parser: argparse.ArgumentParser) -> None:
    server = parser.add_argument_group("with --server")
    server.add_argument("--source-language", metavar="CODE", help="default: the model's")
    server.add_argument("--target-language", metavar="CODE", help="default: the server's, if it has only one")
    server.add_argument("--model", metavar="NAME", help="default: the server's")
    server.add_argument(
        "--wait",
        type=non_negative_float,
        default=60.0,
        metavar="SECONDS",
        help="how long the server may be busy or away, without any answer (default: %(default)g)",
    )
    add_connection_flags(parser)


def _translate_by_named_server(arguments: argparse.Namespace, sources: list[str]) -> list[str]:
    """Translates as the flags say. Raises ValueError and OSError for what is wrong with them."""
    model, source, wait = arguments.model, arguments.source_language, arguments.wait
    with connect(arguments.server, arguments, max_attempts=1) as client:
        target = arguments.target_language
        if target is None:
            target = only_target(patiently(client.list_models, wait, _tell), model=model, source=source)
        return translate_by_server(
            client,
            sources,
            target=target,
            patience_seconds=wait,
            source=source,
            model=model,
            beam_size=arguments.beam_size,
        )


def _tell(message: str) -> None:
    print(f"babelserve-evaluate: {printable(message)}", file=sys.stderr)


if __name__ == "__main__":
    main()
