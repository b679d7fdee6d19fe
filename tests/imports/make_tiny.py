"""Makes the tiny models anew: `python -m tests.imports.make_tiny [NAME ...]`; needs the packages in README.md."""

import argparse
import shutil
import sys

import torch

from tests.imports import expected, family_fsmt, family_many, family_marian
from tests.imports.families import EXPECTED, MODELS, Family
from tests.imports.generating import expect
from tests.imports.training import save_weights, train

FAMILIES = {
    family.name: family
    for family in (
        family_marian.SHARED,
        family_marian.FIRST,
        family_marian.SEPARATE,
        family_many.M2M100,
        family_many.NLLB,
        family_many.MBART50,
        family_fsmt.FSMT,
    )
}


def main(arguments: list[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.imports.make_tiny", description=__doc__)
    parser.add_argument("names", nargs="*", choices=[[], *FAMILIES], help="which; all if left out")
    parser.add_argument("--train", action="store_true", help="only train, do not generate")
    parser.add_argument("--generate", action="store_true", help="only generate, with the weights that are there")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    EXPECTED.mkdir(exist_ok=True)
    for name in options.names or list(FAMILIES):
        if not options.generate:
            make_model(FAMILIES[name])
        if not options.train:
            make_expected(FAMILIES[name])


def make_model(family: Family) -> None:
    """Makes the directory of a model anew."""
    directory = MODELS / family.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    family.write(directory)
    save_weights(family, train(family, directory), directory)
    for path in directory.iterdir():
        path.chmod(0o644)  # safetensors writes files for their owner only
        print(f"{path.stat().st_size:10,} {path.name}")


def make_expected(family: Family) -> None:
    """Writes what `generate` makes of the test sentences with the weights that were stored."""
    path = EXPECTED / f"{family.name}.json.gz"
    result = expect(family, MODELS / family.name)
    expected.write(path, result)
    print(f"{path.stat().st_size:10,} {path.name}")
    for run, counts in expected.report(result).items():
        print(f"  {run}: {counts}")


if __name__ == "__main__":
    main(sys.argv[1:])
