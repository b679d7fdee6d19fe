"""The pages of the settings and of the commands, by their parsers.

`argparse` has no public way to ask a parser what it takes; its private names here are those that `shtab` uses as well.
"""

import argparse
import dataclasses
from collections.abc import Iterator

import babelserve.admin
import babelserve.arguments
import export.__main__
import export.evaluate
import export.imports.__main__
import export.probe_bundle
import model.train
import server.bulk.command
import server.gateway.command
from docs.generate.markdown_text import code, page, prose, table
from server.settings.command_line import PREFIX, build_parser
from server.settings.settings import BUILTIN_BUNDLE, Settings


def settings_page() -> str:
    """All flags of `babelserve`, those that are settings with their variables."""
    parser = build_parser("")
    actions = {action.dest: action for action in parser._actions}
    settings = [(each, actions.pop(each.name)) for each in dataclasses.fields(Settings)]
    rows = [
        (
            f"{code(action.option_strings[0])}<br>{code(PREFIX + each.name.upper())}",
            _values(each),
            _default(each),
            prose(each.metadata["help"]),
        )
        for each, action in settings
    ]
    return page(
        "# Server settings",
        "`babelserve` takes each setting as a flag, and as an environment variable; the flag wins. A flag or a"
        f" {code(PREFIX + '…')} variable that is unknown, a value out of its range, and settings that contradict each"
        " other are faults: all of them are listed at once, and the exit code is 2.",
        table(("Flag, variable", "Value", "Default", "Meaning"), rows),
        "## Instead of serving",
        _arguments(parser, list(actions.values())),
    )


def _values(each: "dataclasses.Field[object]") -> str:
    default, kind = each.default, each.metadata
    if isinstance(default, bool):
        return "true or false"
    if isinstance(default, int | float) or "kind" in kind:
        word = "whole number" if kind.get("kind", type(default)) is int else "number"
        limits = f"{kind['low']:,} or more" if kind["high"] is None else f"{kind['low']:,} to {kind['high']:,}"
        return f"{word}, {limits}"
    if choices := kind.get("choices"):
        return ", ".join(map(code, choices))
    return "text" if isinstance(default, str) else "path"


def _default(each: "dataclasses.Field[object]") -> str:
    if each.default is BUILTIN_BUNDLE:
        return "the built-in model"
    if isinstance(each.default, bool):
        return code(str(each.default).lower())
    return "" if each.default is None else code(each.default)


def command_parsers() -> list[argparse.ArgumentParser]:
    """The parsers of all commands but the server."""
    exporting = export.evaluate, export.__main__, export.imports.__main__, export.probe_bundle
    modules = (
        babelserve.arguments,
        babelserve.admin,
        model.train,
        server.bulk.command,
        server.gateway.command,
        *exporting,
    )
    return [module.build_parser() for module in modules]


def commands_page() -> str:
    """All arguments of the other commands."""
    parsers = sorted(command_parsers(), key=lambda parser: parser.prog)
    return page(
        "# Commands",
        f"Those of the server are [settings](settings.md). Every command has {code('--help')}.",
        *(block for parser in parsers for block in _command(parser, level=2)),
    )


def _command(parser: argparse.ArgumentParser, level: int) -> Iterator[str]:
    yield f"{'#' * level} {parser.prog}"
    yield prose(parser.description or "")
    positionals, optionals, *others = parser._action_groups
    yield _arguments(parser, [*positionals._group_actions, *optionals._group_actions])
    for group in others:
        if group._group_actions:
            yield f"{prose(group.title or '')}:"
            yield _arguments(parser, group._group_actions)
    yield prose(parser.epilog or "")
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            helps = {choice.dest: choice.help or "" for choice in action._choices_actions}
            for name, child in action.choices.items():
                child.description = child.description or f"{helps[name][:1].upper()}{helps[name][1:]}."
                yield from _command(child, level + 1)


def _arguments(parser: argparse.ArgumentParser, actions: list[argparse.Action]) -> str:
    formatter = parser._get_formatter()
    rows = [
        (
            code(formatter._format_action_invocation(action)),
            "required" if action.required and action.nargs not in ("?", "*") else "",
            prose(formatter._expand_help(action)) if action.help else "",
        )
        for action in actions
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction)
    ]
    return table(("Argument", "", "Meaning"), rows) if rows else ""
