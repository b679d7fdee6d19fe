"""The captions that the tiny model of `tests/data` knows by heart."""

from pathlib import Path

from export.subject import DevSet

_DATA = Path(__file__).parent / "data"


def read_captions() -> DevSet:
    """Returns 200 sentences of Multi30k's dev set with their German translations."""
    sides = [_DATA / f"multi30k_val_200.{language}.txt" for language in ("en", "de")]
    sources, references = (side.read_text(encoding="utf-8").splitlines() for side in sides)
    return DevSet(sources=sources, references=references)
