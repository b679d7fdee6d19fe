"""What console scripts share: a missing extra, or a flag without its value, is one line and not a traceback."""

import argparse
import importlib
import sys


def run(module: str, extra: str) -> None:
    """Runs a module's `main`.

    Args:
        module: such as "model.train".
        extra: of this distribution, which brings what the module imports.

    Raises:
        SystemExit: with one line if a package is missing; else whatever `main` raises.
    """
    try:
        main = importlib.import_module(module).main
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == module.partition(".")[0]:  # ours: a bug, not an extra
            raise
        sys.exit(f"{sys.argv[0].rpartition('/')[2]}: needs {missing}: install 'babelserve[{extra}]'")
    main()


def parse(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """Parses a command line. Of `--flag=--` an older Python makes an empty list (its issue 109475): a fault as well."""
    arguments = parser.parse_args()
    for name, value in vars(arguments).items():
        if value == [] and value is not parser.get_default(name):
            parser.error(f"argument {name.replace('_', '-')}: -- is no value")
    return arguments


def train() -> None:
    """Entry point of `babelserve-train`."""
    run("model.train", "train")
