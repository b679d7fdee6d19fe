"""`babelserve-translate [TEXT ...]`: translates arguments, a file or standard input by a babelserve server.

Each argument, or each line of the input, is one text, and gets one line of output in the same order. A text that failed
leaves an empty line, and its reason on standard error. With `--format` the input is one file, whose texts are
translated; one that failed stays as it was.

Exit codes: 0 all translated; 1 some texts failed; 2 wrong usage, or the server refused the request (unknown language,
beam too wide, no good API key ...); 3 the server could not be reached, or failed; 130 interrupted; 141 the output's
reader went away.
"""

import argparse
import contextlib
import dataclasses
import itertools
import os
import sys
from collections.abc import Iterator, Sequence
from io import BufferedReader
from typing import cast

from tqdm import tqdm

from babelserve.arguments import DEFAULT_WAIT_SECONDS, build_parser
from babelserve.client import Client
from babelserve.connection import connect, parse
from babelserve.documents import read_document, translate_document
from babelserve.errors import (
    FailedPrecondition,
    InvalidRequest,
    ModelNotFound,
    PermissionDenied,
    TranslationError,
    Unauthenticated,
)
from babelserve.explanation.wishes import wishes
from babelserve.explanation.writing import explained, few
from babelserve.files import Done, Output, is_gzipped, read_lines
from babelserve.glossary import read_terms, tell_missed
from babelserve.job import patiently, translate_lines
from babelserve.journal import Journal
from babelserve.lines import Line, TranslatedLine
from babelserve.messages import TranslateOptions
from babelserve.models import glossary_table, only_target, table
from babelserve.outputs import UsageError, places, whole_of
from babelserve.results import ModelInfo
from babelserve.terminal import check_streams, drop_output, in_one_line
from babelserve.terms import GlossaryInfo
from babelserve.written import to_json, write_lines

EXIT_OK, EXIT_SOME_FAILED, EXIT_USAGE, EXIT_SERVER, EXIT_INTERRUPTED = 0, 1, 2, 3, 130
_ATTEMPTS = 4  # of a call that nobody wants to wait for


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; returns its exit code."""
    arguments = parse(build_parser(), argv)
    try:
        is_list = arguments.list_models or arguments.list_glossaries
        needs_input = not (is_list or arguments.texts or arguments.input)
        check_streams(*["stdin"] * needs_input, *["stdout"] * (is_list or not arguments.output))
        languages = (None if arguments.source == "auto" else arguments.source, arguments.target)
        ignores_case = bool(arguments.ignore_case)
        terms = read_terms(arguments.term, arguments.glossary, ignore_case=ignores_case, languages=languages)
        arguments.glossary = terms or None
        if is_list:
            return _list(arguments)
        return _run_file(arguments) if arguments.format else _run(arguments)
    except UsageError as error:
        return _fail(str(error), EXIT_USAGE)
    except (FailedPrecondition, InvalidRequest, ModelNotFound, PermissionDenied, Unauthenticated) as error:
        lacks_key = isinstance(error, Unauthenticated) and arguments.api_key_file is None
        return _fail(f"refused by the server: {error}{'; see --api-key-file' if lacks_key else ''}", EXIT_USAGE)
    except TranslationError as error:
        request = f" (request {error.request_id})" if error.request_id else ""
        return _fail(f"{arguments.address}: {error.code.name}: {error}{request}", EXIT_SERVER)
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except BrokenPipeError:
        return drop_output()
    except OSError as error:
        return _fail(str(error), EXIT_USAGE)


def _list(arguments: argparse.Namespace) -> int:
    """Prints the server's models, or its glossaries."""
    patience = _patience(arguments)
    infos: Sequence[ModelInfo] | Sequence[GlossaryInfo]
    with _connect(arguments) as client:
        if arguments.list_glossaries:
            infos = glossaries = patiently(client.list_glossaries, patience, _complain)
            shown = glossary_table(glossaries)
        else:
            infos = models = patiently(client.list_models, patience, _complain)
            shown = table(models, patiently(client.list_pivots, patience, _complain))
    for line in [to_json(dataclasses.asdict(info)) for info in infos] if arguments.json else [shown]:
        print(line, flush=True)  # so that a reader who went away is noticed here
    return EXIT_OK


def _run(arguments: argparse.Namespace) -> int:
    _check_files(arguments)
    output = Output(arguments.output) if arguments.output else None
    with contextlib.ExitStack() as stack:
        lines, progress = _open_input(arguments, stack)
        done = output.open(lines, resume=arguments.resume, as_json=arguments.json) if output else Done()
        try:
            progress.update(done.num_input_bytes)
            if output and done.num_lines:
                _complain(f"goes on after {done.num_lines} lines of {output.part}, which must have the same options")
            results = _translate(arguments, lines, done, stack)
            file = output.file if output else sys.stdout.buffer
            form = {"as_json": arguments.json, "one_line": not arguments.texts}
            is_whole = write_lines(results, file, progress, done, _complain, **form)
            if output:
                output.finish()
            return EXIT_OK if is_whole else EXIT_SOME_FAILED
        finally:
            if output and output.leave():
                _complain(f"what is done is in {output.part}; --resume goes on from there")


def _translate(
    arguments: argparse.Namespace, lines: Iterator[Line], done: Done, stack: contextlib.ExitStack
) -> Iterator[list[TranslatedLine]]:
    if done.num_lines:
        first = next(lines, None)
        if first is None:
            return iter(())  # whatever the server may say: all is done
        lines = itertools.chain([first], lines)
    client, target = _reach(arguments, stack)
    options = _options(arguments)
    if arguments.explain is None:
        return _results(arguments, client, target, lines, options, stack)
    models = patiently(client.list_models, _patience(arguments), _complain)
    options |= wishes(models, target, arguments.model)
    source = None if arguments.source == "auto" else arguments.source
    return explained(_results(arguments, client, target, few(lines), options, stack), arguments.explain, target, source)


def _results(
    arguments: argparse.Namespace,
    client: Client,
    target: str,
    lines: Iterator[Line],
    options: TranslateOptions,
    stack: contextlib.ExitStack,
) -> Iterator[list[TranslatedLine]]:
    # A person at the keyboard waits for each line's answer.
    interactive = not arguments.texts and arguments.input is None and sys.stdin.isatty()
    results = translate_lines(
        client,
        lines,
        target=target,
        batch_lines=1 if interactive or arguments.explain else arguments.batch_lines,  # the server bounds a page's part
        in_flight=1 if interactive else arguments.in_flight,
        patience_seconds=_patience(arguments),
        tell=_complain,
        **options,
    )
    stack.enter_context(contextlib.closing(results))
    return stack.enter_context(contextlib.closing(tell_missed(results, _complain)))


def _reach(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> tuple[Client, str]:
    """Returns a client, and the target language: the server's only one if none is given."""
    client = stack.enter_context(_connect(arguments))
    if arguments.target:
        return client, arguments.target
    models = patiently(client.list_models, _patience(arguments), _complain)
    try:
        return client, only_target(models, model=arguments.model, source=arguments.source)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _run_file(arguments: argparse.Namespace) -> int:
    """Translates one file that has a format."""
    _check_files(arguments)
    if arguments.texts or arguments.json:
        raise UsageError("--format translates one file: give no texts, and no --json")
    document = read_document(arguments.format, arguments.input)
    with contextlib.ExitStack() as stack:
        client, target = _reach(arguments, stack)
        options: TranslateOptions = {**_options(arguments), "mime_type": document.mime_type}
        settings = {name: value for name, value in options.items() if name not in ("priority", "traffic_key")}
        journal = Journal(arguments.output, document.texts, [target, settings])
        try:
            if num_done := journal.open(resume=arguments.resume):
                _complain(f"goes on after {num_done} texts of {journal.part}")
            shown = sys.stderr.isatty() and (bool(arguments.output) or not sys.stdout.isatty())
            progress = stack.enter_context(tqdm(total=len(document.texts), unit=" texts", disable=not shown))
            num_failed = translate_document(
                document,
                journal,
                target,
                lambda lines: _results(arguments, client, target, lines, options, stack),
                progress,
                _complain,
            )
            return EXIT_SOME_FAILED if num_failed else EXIT_OK
        finally:
            if journal.leave():
                _complain(f"what is done is in {journal.part}; --resume goes on from there")


def _options(arguments: argparse.Namespace) -> TranslateOptions:
    """Returns what the flags say of a translation: those flags bear the options' names."""
    options = {name: value for name, value in vars(arguments).items() if name in TranslateOptions.__annotations__}
    return cast("TranslateOptions", options)


def _check_files(arguments: argparse.Namespace) -> None:
    """Refuses flags that do not go together."""
    if arguments.texts and arguments.input:
        raise UsageError("give texts or --input, not both")
    if arguments.explain:
        _check_page(arguments)
    if arguments.resume and (arguments.texts or arguments.output is None):
        raise UsageError("--resume goes on with the lines of an --output; it needs one, and no texts")
    if not (arguments.input and arguments.output):
        return
    part = places(arguments.output)[1]
    for output in (arguments.output, part, part and whole_of(part)):
        if output and output.exists() and output.samefile(arguments.input):
            raise UsageError(f"{output} is the input; write to another file")


def _check_page(arguments: argparse.Namespace) -> None:
    """Refuses what a page cannot explain, and a page in the place of another file."""
    if arguments.resume or arguments.format or arguments.mime_type not in (None, "text/plain"):
        raise UsageError("--explain explains plain texts from the first on: give no --resume, --format or --mime-type")
    for name in ("input", "output"):
        other = getattr(arguments, name)
        if other and arguments.explain.resolve() == other.resolve():
            raise UsageError(f"--explain {arguments.explain} is the file of --{name}; write to another file")


def _open_input(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> tuple[Iterator[Line], tqdm]:
    """The texts, and a progress bar over the input file's bytes that shows only on a terminal."""
    size = 0
    lines: Iterator[Line]
    if arguments.texts:
        lines = (Line(text=text, num_bytes=len(text)) for text in arguments.texts)
    elif arguments.input:
        file = stack.enter_context(arguments.input.open("rb"))
        size = 0 if is_gzipped(file) else os.fstat(file.fileno()).st_size
        lines = read_lines(file, str(arguments.input))
    else:
        lines = read_lines(cast("BufferedReader", sys.stdin.buffer), "standard input")
    # Where output and bar would share the terminal, the output is progress enough.
    shown = bool(arguments.input) and sys.stderr.isatty() and (bool(arguments.output) or not sys.stdout.isatty())
    progress = tqdm(total=size or None, unit="B", unit_scale=True, disable=not shown)
    return lines, stack.enter_context(progress)


def _patience(arguments: argparse.Namespace) -> float:
    """Seconds; a job of lines has some, who waits for an answer to a few texts wants to know at once."""
    if arguments.wait is not None:
        return float(arguments.wait)
    is_short = arguments.texts or arguments.list_models or arguments.list_glossaries
    return 0.0 if is_short else DEFAULT_WAIT_SECONDS


def _connect(arguments: argparse.Namespace) -> Client:
    # Whoever is patient hears of every refusal, and makes the next attempt in its own time.
    max_attempts = 1 if _patience(arguments) else _ATTEMPTS
    try:
        return connect(arguments.address, arguments, max_attempts=max_attempts)
    except ValueError as error:
        raise UsageError(str(error)) from error


def _complain(message: str) -> None:
    tqdm.write(f"babelserve-translate: {in_one_line(message)}", file=sys.stderr)


def _fail(message: str, exit_code: int) -> int:
    _complain(message)
    return exit_code


if __name__ == "__main__":
    sys.exit(main())
