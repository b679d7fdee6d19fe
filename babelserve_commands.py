"""The commands of the distribution `babelserve`, in a module whose name nobody else has.

Its packages have plain names: `model`, `export` and `server`. A folder on PYTHONPATH that has one of them comes before
ours, and another distribution that installs one of them overwrites our files. A command runs only what is ours.
"""

import importlib
import sys
from importlib.util import find_spec
from pathlib import Path

EXIT_CANNOT_START = 2
_EXPORTING = ("export", "model", "server")


def serve() -> int:
    """Entry point of `babelserve`; returns its exit code."""
    refuse_foreign("server")
    return int(importlib.import_module("server.__main__").main())


def gateway() -> None:
    """Entry point of `babelserve-gateway`."""
    run("server.gateway.__main__", "web", "server")


def bulk() -> None:
    """Entry point of `babelserve-bulk`."""
    run("server.bulk.__main__", "cpu,bulk", "server")


def train() -> None:
    """Entry point of `babelserve-train`."""
    run("model.train", "train", "model")


def export() -> None:
    """Entry point of `babelserve-export`."""
    run("export.__main__", "cpu,export", *_EXPORTING)


def import_model() -> None:
    """Entry point of `babelserve-import`."""
    run("export.imports.__main__", "cpu,export", *_EXPORTING)


def probe() -> None:
    """Entry point of `babelserve-probe`."""
    run("export.probe_bundle", "cpu,export", *_EXPORTING)


def evaluate() -> None:
    """Entry point of `babelserve-evaluate`."""
    run("export.evaluate", "train", *_EXPORTING)


def run(module: str, extra: str, *packages: str) -> None:
    """Runs a module's `main`.

    Args:
        module: such as "model.train".
        extra: of this distribution, which brings what the module imports.
        packages: of ours that it needs.

    Raises:
        SystemExit: with one line if a package is not ours, or the extra's is missing; else whatever `main` raises.
    """
    refuse_foreign(*packages)
    try:
        main = importlib.import_module(module).main
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing == module.partition(".")[0]:  # ours: a bug, not an extra
            raise
        sys.exit(f"{_command()}: needs {missing}: install 'babelserve[{extra}]'")
    main()


def refuse_foreign(*packages: str) -> None:
    """Ends the process with one line if one of our packages is somebody else's.

    Ours lies beside this file, and its `__init__.py` has the word "babelserve". None is imported for that: a foreign
    one may do anything.

    Raises:
        SystemExit: with code 2.
    """
    here = Path(__file__).parent
    for package in packages:
        spec = find_spec(package)
        found = Path((spec and spec.origin) or "nothing")
        if found.parent != here / package or b"babelserve" not in found.read_bytes():
            sys.stderr.write(
                f"{_command()}: Python finds {found} as '{package}', which is not babelserve's: give babelserve a"
                " virtual environment of its own, and no PYTHONPATH\n"
            )
            sys.exit(EXIT_CANNOT_START)


def _command() -> str:
    return sys.argv[0].rpartition("/")[2]
