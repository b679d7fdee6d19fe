"""The entry points of this room: they import what they need when they are run, or name the missing extra."""

from model.command import run


def export() -> None:
    """Entry point of `babelserve-export`."""
    run("export.__main__", "cpu,export")


def import_model() -> None:
    """Entry point of `babelserve-import`."""
    run("export.imports.__main__", "cpu,export")


def probe() -> None:
    """Entry point of `babelserve-probe`."""
    run("export.probe_bundle", "cpu,export")


def evaluate() -> None:
    """Entry point of `babelserve-evaluate`."""
    run("export.evaluate", "train")
