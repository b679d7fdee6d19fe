"""Every command of ours that a page shows is one that its parser takes, and every flag that it names exists."""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.generate.commands import command_parsers
from server.settings.command_line import build_parser

ROOT = Path(__file__).parents[2]
PAGES = [*sorted((ROOT / "docs").rglob("*.md")), *(ROOT / name for name in ("README.md", "deploy/README.md"))]
PARSERS = {parser.prog: parser for parser in (build_parser(""), *command_parsers())}
OTHERS = {"--schema", "--build-arg", "--cpus", "--gpus"}  # flags of buf and docker
BLOCK = re.compile(r"^```console\n(.*?)^```$", re.DOTALL | re.MULTILINE)
TARGET = re.compile(r"^([a-z][a-z-]*):", re.MULTILINE)


def shown_commands(page: str) -> Iterator[list[str]]:
    """Yields the words of each command of a page's console blocks, the parts of a pipe one by one, aliases replaced."""
    aliases: dict[str, list[str]] = {}
    for block in BLOCK.findall(page):
        for line in re.findall(r"^\$ (.*)$", block.replace("\\\n", " "), re.MULTILINE):
            words = shlex.shlex(line, posix=True, punctuation_chars="|&;>")
            words.whitespace_split = True
            command: list[str] = []
            for word in [*words, "|"]:
                if not word.strip("|&;>"):
                    if command:
                        yield [*aliases.get(command[0], command[:1]), *command[1:]]
                    command = []
                else:
                    command.append(word)
            if line.startswith("alias "):
                name, _, meaning = shlex.split(line, comments=True)[1].partition("=")
                aliases[name] = shlex.split(meaning)


def flags(parser: argparse.ArgumentParser) -> set[str]:
    return {flag for action in parser._actions for flag in action.option_strings}


def is_taken(parser: argparse.ArgumentParser, arguments: list[str]) -> bool:
    try:
        parser.parse_args(arguments)
    except SystemExit as ended:  # also by what it prints, such as --help
        return not ended.code
    return True


def test_commands_are_found_in_pipes_and_behind_aliases() -> None:
    page = "```console\n$ alias m='babelserve-models --x y'   # z\n$ cat a | m list \\\n  b && c > d  # e\nf\n```\n"

    assert list(shown_commands(page))[1:] == [
        ["cat", "a"],
        ["babelserve-models", "--x", "y", "list", "b"],
        ["c"],
        ["d"],
    ]
    assert {command[0] for path in PAGES for command in shown_commands(path.read_text())} >= PARSERS.keys()


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_is_taken_by_its_parser(path: Path) -> None:
    targets = TARGET.findall((ROOT / "Makefile").read_text())
    for program, *arguments in shown_commands(path.read_text()):
        if Path(program).name in PARSERS:
            assert is_taken(PARSERS[Path(program).name], arguments), (program, arguments)
        elif program == "make":
            assert next(word for word in arguments if "=" not in word) in targets


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_flag_that_is_named_exists(path: Path) -> None:
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`((?:--|babelserve)[^`]*)`", text)
    named = {flag for span in spans for flag in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span)}

    assert named - set().union(*map(flags, PARSERS.values())) <= OTHERS
