"""`babelserve-translate [TEXT ...]`: translates arguments, a file or standard input by a babelserve server.

Each argument, or each line of the input, is one text, and gets one line of output in the same order. A text that failed
leaves an empty line, and its reason on standard error.

Exit codes: 0 all translated; 1 some texts failed; 2 wrong usage, or the server refused the request (unknown language,
beam too wide, no good API key ...); 3 the server could not be reached, or failed; 130 interrupted; 141 the output's
reader went away.
"""

import argparse
import contextlib
import dataclasses
import itertools
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import BinaryIO

from tqdm import tqdm

from client.arguments import build_parser
from client.channel import TlsOptions
from client.client import Client
from client.errors import InvalidRequest, ModelNotFound, PermissionDenied, TranslationError, Unauthenticated
from client.lines import Line, TranslatedLine, read_line, translate_lines
from client.messages import TranslateOptions

EXIT_OK, EXIT_SOME_FAILED, EXIT_USAGE, EXIT_SERVER, EXIT_INTERRUPTED, EXIT_BROKEN_PIPE = 0, 1, 2, 3, 130, 141


class UsageError(Exception):
    """The command line asks for what can't be done; the message says what."""


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    arguments = build_parser().parse_args(argv)
    try:
        return _run(arguments)
    except UsageError as error:
        return _fail(str(error), EXIT_USAGE)
    except (InvalidRequest, ModelNotFound, PermissionDenied, Unauthenticated) as error:
        return _fail(f"refused by the server: {error}", EXIT_USAGE)
    except TranslationError as error:
        request = f" (request {error.request_id})" if error.request_id else ""
        return _fail(f"{arguments.address}: {error.code.name}: {error}{request}", EXIT_SERVER)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        # Python flushes standard output once more at exit, and would complain about the same pipe again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return EXIT_BROKEN_PIPE
    except OSError as error:
        return _fail(str(error), EXIT_USAGE)


def _run(arguments: argparse.Namespace) -> int:
    with contextlib.ExitStack() as stack:
        lines, progress = _open_input(arguments, stack)
        client = stack.enter_context(_connect(arguments))
        options = TranslateOptions(
            source=arguments.source,
            model=arguments.model,
            beam_size=arguments.beam_size,
            num_hypotheses=arguments.num_hypotheses,
            length_penalty=arguments.length_penalty,
        )
        # A person at the keyboard waits for each line's answer.
        interactive = not arguments.texts and arguments.input is None and sys.stdin.isatty()
        results = translate_lines(
            client,
            lines,
            target=arguments.target or _only_target(client, arguments.model),
            batch_lines=1 if interactive else arguments.batch_lines,
            in_flight=1 if interactive else arguments.in_flight,
            **options,
        )
        stack.enter_context(contextlib.closing(results))
        first = next(results, [])
        output = _open_output(arguments, stack)  # not before there is something to write: it may hold an older result
        return _write(
            itertools.chain([first], results), output, progress, as_json=arguments.json, one_line=not arguments.texts
        )


def _write(
    results: Iterator[list[TranslatedLine]],
    output: BinaryIO,
    progress: tqdm,
    *,
    as_json: bool,
    one_line: bool,
) -> int:
    exit_code = EXIT_OK
    number = 0
    for batch in results:
        for line in batch:
            number += 1
            if line.translation.error is not None:
                exit_code = EXIT_SOME_FAILED
                reason = f"{line.translation.error.code.name}: {line.translation.error.message}"
                _complain(f"{'line' if one_line else 'text'} {number}: {reason}")
            output.write((_json(line) if as_json else _plain(line, one_line)).encode() + b"\n")
            progress.update(line.num_bytes)
        output.flush()
    return exit_code


def _plain(line: TranslatedLine, one_line: bool) -> str:
    # A model may make a line break of its own; it must not shift the lines that follow.
    return line.translation.text.replace("\n", " ") if one_line else line.translation.text


def _json(line: TranslatedLine) -> str:
    translation = line.translation
    fields: dict[str, object] = {
        "text": translation.text,
        "score": translation.score,
        "finish_reason": translation.finish_reason.value,
        "source_tokens": translation.source_tokens,
        "target_tokens": translation.target_tokens,
        "hypotheses": [dataclasses.asdict(hypothesis) for hypothesis in translation.hypotheses],
        "model": line.model,
        "model_version": line.model_version,
    }
    if translation.detected is not None:
        fields["detected"] = dataclasses.asdict(translation.detected)
    if translation.route:
        fields["route"] = [dataclasses.asdict(leg) for leg in translation.route]
    if translation.error is not None:
        fields["error"] = {"code": translation.error.code.name, "message": translation.error.message}
    return json.dumps(fields, ensure_ascii=False)


def _open_input(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> tuple[Iterator[Line], tqdm]:
    """The texts, and a progress bar over the input file's bytes that shows only on a terminal."""
    if arguments.texts and arguments.input:
        raise UsageError("give texts or --input, not both")
    if (
        arguments.input
        and arguments.output
        and arguments.output.exists()
        and arguments.output.samefile(arguments.input)
    ):
        raise UsageError(f"{arguments.output} is the input; write to another file")
    size = 0
    lines: Iterator[Line]
    if arguments.texts:
        lines = (Line(text=text, num_bytes=len(text)) for text in arguments.texts)
    elif arguments.input:
        file = stack.enter_context(arguments.input.open("rb"))
        size = os.fstat(file.fileno()).st_size
        lines = map(read_line, file)
    else:
        lines = map(read_line, sys.stdin.buffer)
    # Where output and bar would share the terminal, the output is progress enough.
    shown = bool(arguments.input) and sys.stderr.isatty() and (bool(arguments.output) or not sys.stdout.isatty())
    progress = tqdm(total=size or None, unit="B", unit_scale=True, disable=not shown)
    return lines, stack.enter_context(progress)


def _open_output(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> BinaryIO:
    if arguments.output is None:
        return sys.stdout.buffer
    output: BinaryIO = stack.enter_context(arguments.output.open("wb"))
    return output


def _connect(arguments: argparse.Namespace) -> Client:
    tls = TlsOptions(
        ca_file=arguments.tls_ca,
        certificate_file=arguments.tls_cert,
        key_file=arguments.tls_key,
        server_name=arguments.tls_server_name,
    )
    encrypted = arguments.tls or tls != TlsOptions()
    try:
        api_key = arguments.api_key_file.read_text(encoding="utf-8").strip() if arguments.api_key_file else None
        return Client(
            arguments.address,
            tls=tls if encrypted else None,
            api_key=api_key,
            deadline_seconds=arguments.deadline,
            watch_health=not arguments.no_health,
        )
    except ValueError as error:
        raise UsageError(str(error)) from error


def _only_target(client: Client, model: str | None) -> str:
    models = [info for info in client.list_models() if model in (None, info.name)]
    targets = sorted({target for info in models for target in info.target_languages})
    if len(targets) != 1:
        raise UsageError(f"--target is needed; the server has: {', '.join(targets) or 'no such model'}")
    return targets[0]


def _complain(message: str) -> None:
    tqdm.write(f"babelserve-translate: {message}", file=sys.stderr)


def _fail(message: str, exit_code: int) -> int:
    _complain(message)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
