"""`babelserve-export`, `-import` and `-evaluate`: import what they need only when run, or name the missing extra."""

from model.command import run


def export() -> None:
    """Entry point of `babelserve-export`."""
    run("export.__main__", "cpu,export")


def import_model() -> None:
    """Entry point of `babelserve-import`."""
    run("export.imports.__main__", "cpu,export")


def evaluate() -> None:
    """Entry point of `babelserve-evaluate`."""
    run("export.evaluate", "train")
