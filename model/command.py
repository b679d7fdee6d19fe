"""Console scripts whose packages are in an extra: without it they end in one line that names it, not in a traceback."""

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


def train() -> None:
    """Entry point of `babelserve-train`."""
    run("model.train", "train")
