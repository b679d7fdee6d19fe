"""`babelserve-train --init`: a commented recipe for a pair of languages, and where its text goes."""

import shlex
from pathlib import Path

import langcodes

from model.files import replacing

STARTER = Path(__file__).parent / "configs" / "starter.toml"
_MAX_CODE_CHARACTERS = 35  # which BCP 47 (RFC 5646, section 4.4.1) wants every program to take


def write_starter(directory: Path, source: str, target: str) -> str:
    """Writes `recipe.toml` and makes the folder `data`.

    Args:
        directory: is made; may hold other files.
        source: BCP-47 code.
        target: the same.

    Returns:
        What is to be put where, and the commands that follow.

    Raises:
        FileExistsError: there is a `recipe.toml` already.
        OSError: it cannot be written.
        ValueError: a code is none, or both are the same.
    """
    source, target = _code("--source", source), _code("--target", target)
    if source == target:
        raise ValueError(f"--source and --target are both {source}")
    recipe, data, run = directory / "recipe.toml", directory / "data", directory / "run"
    if recipe.exists():
        raise FileExistsError(f"{recipe} exists already")
    data.mkdir(parents=True, exist_ok=True)
    text = STARTER.read_text(encoding="utf-8").replace("SOURCE", source).replace("TARGET", target)
    with replacing(recipe) as draft:
        draft.write_text(text, encoding="utf-8")
    dev = [data / f"dev.{source}", data / f"dev.{target}"]
    commands = [
        ["babelserve-train", recipe, "--data", data, "--out", run],
        ["babelserve-export", run / "final.pt", directory / "bundle", "--dev", *dev],
        ["babelserve", "--bundle", directory / "bundle"],
    ]
    lines = [shlex.join(map(str, command)) for command in commands]
    return f"""{recipe} is written; its comments say what to change.

Put your text there: UTF-8, one sentence a line, the same line of both files for each pair.
  {data / f"train.{source}"}, {data / f"train.{target}"}: to learn from
  {dev[0]}, {dev[1]}: 200 to 2,000 other pairs, to choose and to measure by

Then:
  {lines[0]}
  {lines[1]}
  {lines[2]}"""


def _code(flag: str, code: str) -> str:
    """Returns a code as BCP-47 writes it."""
    try:
        standard = langcodes.standardize_tag(code) if len(code) <= _MAX_CODE_CHARACTERS else ""
    except ValueError:
        standard = ""
    if not 2 <= len(standard.partition("-")[0]) <= 3:  # longer ones are names, such as "french"
        raise ValueError(f"{flag} must be a BCP-47 code such as fr or zh-Hant, not {code!r:.40}")
    return standard
