"""libFuzzer on one target, as `tests.fuzz.__main__` runs it: `python -m tests.fuzz.fuzzer TARGET FLAG... FOLDER...`."""

import sys

import atheris

with atheris.instrument_imports(include=["server"]):
    from tests.fuzz.targets import TARGETS


def main() -> None:
    """Ends the process when all runs are made, or at the first input that raises."""
    _, target, *arguments = sys.argv
    program = f"{sys.executable} -m tests.fuzz.fuzzer {target}"  # which libFuzzer starts again to merge
    atheris.Setup([program, *arguments], TARGETS[target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
