"""The flags of `babelserve-bulk`."""

import argparse
import re
from collections.abc import Sequence
from pathlib import PurePosixPath

import shtab
from google.protobuf import json_format

from babelserve.v1.translation_pb2 import DecodingOptions, TranslateRequest
from server.bulk.cell import encoded
from server.bulk.job import FORMATS, Job
from server.bundle.graphs import MAX_BEAM_SIZE
from server.errors import SettingsError
from server.settings.command_line import Parser, read_settings, refuse_dashes
from server.settings.settings import Settings

_COLUMN = re.compile(r"[1-9][0-9]{0,8}")
_LAST_SLASHES = re.compile(r"(?<=[^/:])/+$")  # of a folder; a root and memory:// keep theirs


def build_parser() -> argparse.ArgumentParser:
    """Returns the parser. Faults are SettingsError."""
    parser = Parser(
        prog="babelserve-bulk",
        description="Translates files of rows into files of rows, with models in its own process or on Ray.",
        epilog="After -- stand flags of babelserve that say which models and how, such as --bundle and --lanes. Exit"
        " codes: 0 every row is translated, 1 every row is written and some have errors, 2 it cannot start, 3 it could"
        " not go on, and goes on when it is started again.",
    )
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    add = parser.add_argument
    add("inputs", nargs="+", metavar="INPUT", help="file, or URL that fsspec knows, such as s3://bucket/*.jsonl")
    add(
        "--out",
        required=True,
        metavar="FOLDER",
        help="folder, or URL of one, that takes the output and is the job's own",
    )
    add(
        "--source", default="", metavar="CODE", help="language of the texts; the models' only one, or detected, without"
    )
    add("--target", required=True, metavar="CODE", help="language to translate to")
    add("--beam-size", type=int, metavar="N", help="beams of each sentence; the model's own without")
    add("--options", default="{}", metavar="JSON", help="a TranslateRequest in JSON, for all other options")
    add("--format", choices=sorted({*FORMATS.values()}), help="of inputs and outputs; by the inputs' suffix without")
    add("--column", default="text", metavar="NAME", help="column of the texts; for TSV a number, the first is 1 (text)")
    add("--into", default="translation", metavar="NAME", help="column of the translations (translation)")
    add("--shard-kib", type=int, default=1024, metavar="KIB", help="of an input of lines that make one output (1024)")
    add("--ray-workers", type=int, default=0, metavar="N", help="run on Ray, with N workers; needs babelserve[ray]")
    return parser


def read_model_settings(words: Sequence[str]) -> Settings:
    """Returns what the flags behind `--` say of the models. Without a flag for it, bulk texts take all rows of a lane.

    Nobody else calls this process, so no row has to wait for a caller. Raises SettingsError with all faults.
    """
    return read_settings(["--bulk-share=1", *words], {}, "").settings


def read_job(options: argparse.Namespace, settings: Settings) -> Job:
    """Returns the job of a command line. Raises SettingsError with all faults."""
    refuse_dashes(options)
    suffixes = {PurePosixPath(each).suffix.removeprefix(".") for each in options.inputs}
    forms = {FORMATS.get(each, "") for each in suffixes} if options.format is None else {options.format}
    faults = [f"--format: must be given for inputs that end with {', '.join(sorted(suffixes))}"] * (
        len(forms) > 1 or "" in forms
    )
    if options.shard_kib < 1:
        faults.append(f"--shard-kib: must be at least 1, not {options.shard_kib}")
    if options.ray_workers < 0:
        faults.append(f"--ray-workers: must be at least 0, not {options.ray_workers}")
    form = min(forms)
    if form == "tsv" and not _COLUMN.fullmatch(options.column):
        faults.append(f"--column: must be a number from 1 for TSV, not {options.column!r:.40}")
    if options.beam_size is not None and not 1 <= options.beam_size <= MAX_BEAM_SIZE:
        faults.append(f"--beam-size: must be in 1..{MAX_BEAM_SIZE}, not {options.beam_size}")
    for name in ("source", "target", "column", "into"):
        if encoded(value := getattr(options, name)).error:
            faults.append(f"--{name}: must be valid Unicode, not {value!r:.40}")
    request = _read_request(options.options, faults)
    if faults:
        raise SettingsError(faults)
    request.source_language_code, request.target_language_code = options.source, options.target
    if options.beam_size is not None:
        request.decoding.beam_size = options.beam_size
    return Job(
        inputs=options.inputs,
        output=_LAST_SLASHES.sub("", options.out),  # an object store takes a//b for another name than a/b
        form=form,
        column=options.column,
        into=options.into,
        shard_bytes=options.shard_kib << 10,
        request=request.SerializeToString(deterministic=True),
        settings=settings,
    )


def _read_request(text: str, faults: list[str]) -> TranslateRequest:
    """Returns the request that `--options` holds; what is wrong with it is appended to the faults."""
    request = TranslateRequest(decoding=DecodingOptions(with_scores=False))  # rows have none, and they cost steps time
    try:
        json_format.Parse(text, request)
    except (json_format.ParseError, RecursionError) as error:
        faults.append(f"--options: {error}")
    if request.contents:
        faults.append(f"--options: contents must be empty, not {len(request.contents)} texts")
    return request
