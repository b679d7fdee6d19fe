"""Every flag of every command is in the reference, as `--help` has it."""

import argparse
import dataclasses
import re
import tomllib
from pathlib import Path

import pytest

from docs.generate.commands import command_parsers, commands_page, settings_page
from server.settings.command_line import build_parser
from server.settings.settings import Settings

ROOT = Path(__file__).parents[2]


def flags(text: str) -> set[str]:
    """What looks like a flag at the start of a line of --help, or of a cell."""
    return set(re.findall(r"^ {2}(--[a-z-]+)", text, re.MULTILINE)) - {"--help"}


def cells(page: str) -> set[str]:
    return set(re.findall(r"^\| `(--[a-z-]+)[` ]", page, re.MULTILINE))


def section(page: str, command: str) -> str:
    (found,) = re.findall(rf"^## {command}\n(.*?)(?=^## |\Z)", page, re.DOTALL | re.MULTILINE)
    return str(found)


def test_every_flag_of_the_server_is_there() -> None:
    wanted = flags(build_parser("").format_help())

    assert {"--max-rows", "--check"} < wanted
    assert cells(settings_page()) == wanted


@pytest.mark.parametrize("name", [each.name for each in dataclasses.fields(Settings)])
def test_every_setting_has_its_variable_and_its_default(name: str) -> None:
    (row,) = re.findall(rf"^\| `--{name.replace('_', '-')}`<br>.*$", settings_page(), re.MULTILINE)

    default = getattr(Settings(), name)
    assert f"`BABELSERVE_{name.upper()}`" in row
    if isinstance(default, int | float) and not isinstance(default, bool):
        assert f"| `{default}` |" in row


def test_a_settings_range_and_choices_are_told() -> None:
    page = settings_page()

    assert "`BABELSERVE_MAX_ROWS` | whole number, 1 to 4,096 | `128` |" in page
    assert "`BABELSERVE_HTTP_PORT` | whole number, 0 to 65,535 | |" in page.replace("|  |", "| |")
    assert "`BABELSERVE_DEVICE` | `auto`, `cpu`, `cuda` | `auto` |" in page
    assert "`BABELSERVE_BUNDLE` | path | the built-in model |" in page


def test_every_command_has_a_section() -> None:
    projects = [tomllib.loads((ROOT / name).read_text()) for name in ("pyproject.toml", "babelserve/pyproject.toml")]

    scripts = {name for each in projects for name in each["project"]["scripts"]}
    assert re.findall(r"^## (.*)$", commands_page(), re.MULTILINE) == sorted(scripts - {"babelserve"})


@pytest.mark.parametrize("parser", command_parsers(), ids=lambda parser: parser.prog)
def test_every_flag_of_a_command_is_there(parser: argparse.ArgumentParser) -> None:
    wanted = flags(parser.format_help())

    assert wanted
    assert cells(section(commands_page(), parser.prog)) == wanted


def test_every_action_of_a_command_is_there() -> None:
    found = section(commands_page(), "babelserve-models")

    actions = re.findall(r"^### babelserve-models (\w+)$", found, re.MULTILINE)
    assert actions == ["list", "load", "unload", "rollback", "traffic"]
    assert found.count("| `MODEL` | required | its name") == 4
    assert "| `VERSION=PERCENT` | required | adding up to 100 |" in found


def test_what_must_be_given_is_told_and_defaults_are() -> None:
    page = commands_page()

    assert "| `--dev SOURCE TARGET` | required |" in page
    assert "most texts per request; fewer while the server has no room for them (default: 32) |" in page
    assert "Exit codes: 0 all translated" in page
