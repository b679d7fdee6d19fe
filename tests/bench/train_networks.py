"""`make networks`: trains every recipe of a folder on the same text, exports each network, and compares their bundles.

    python -m tests.bench.train_networks --data data/people --runs runs/people --domain captions=captions.tsv

For each recipe it calls `babelserve-train` and then `babelserve-export`, which proves the bundle. A bundle that is
there already stays as it is, and a training that was interrupted goes on: so the same command goes on after Ctrl-C. At
the end `tests.bench.networks` measures all bundles, those too that its other arguments name. It calls each network by
its recipe and its data, such as "ssru (people)", because a table may have networks that learned from different text.

On a GPU several recipes can be trained at a time (`--at-once`). A processor does not get faster by that.
"""

import argparse
import shlex
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from model.recipe_file import load_recipe
from tests.bench import networks

RECIPES = Path(__file__).parents[2] / "model" / "configs" / "networks"


def main() -> None:
    """Ends with exit code 1 if a network was not trained or exported. The others are compared nevertheless."""
    arguments = _parse_arguments()
    try:
        recipes = find_recipes(arguments.recipes, arguments.only)
        dev = {recipe: dev_files(recipe, arguments.data) for recipe in recipes}
        domains = networks.read_domains(arguments)  # now, because the training takes hours
    except (OSError, ValueError) as error:
        sys.exit(f"train_networks: {error}")
    with ThreadPoolExecutor(arguments.at_once) as pool:
        bundles = list(pool.map(lambda recipe: make_bundle(recipe, dev[recipe], arguments), recipes))
    made = [bundle for bundle in bundles if bundle.exists()]
    if domains:
        arguments.bundles += [(f"{_name(bundle)} ({arguments.data.name})", str(bundle)) for bundle in made]
        networks.compare(arguments, domains)
    if missing := [_name(bundle) for bundle in bundles if bundle not in made]:
        sys.exit(f"train_networks: without a bundle: {', '.join(missing)}; the same command goes on")


def find_recipes(folder: Path, only: list[str]) -> list[Path]:
    """Returns the recipes of a folder, or those with the given names in their order.

    Raises ValueError if there is none, or none of that name.
    """
    found = {path.stem: path for path in sorted(folder.glob("*.toml"))}
    if unknown := [name for name in only if name not in found]:
        raise ValueError(f"--only {' '.join(unknown)}: {folder} has {', '.join(found) or 'no recipe'}")
    if not found:
        raise ValueError(f"--recipes {folder}: there is no *.toml in it")
    return [found[name] for name in only or found]


def dev_files(recipe: Path, data: Path) -> list[Path]:
    """Returns both sides of a recipe's first dev corpus, by which its bundle is proven. Raises ValueError without."""
    corpora = load_recipe(recipe).dev
    if not corpora or corpora[0].tsv:
        raise ValueError(f"{recipe}: its first [[dev]] corpus must have source and target")
    return [data / corpora[0].source, data / corpora[0].target]


def make_bundle(recipe: Path, dev: list[Path], arguments: argparse.Namespace) -> Path:
    """Trains a recipe and exports the network, as far as that is not done. Returns where the bundle is, if it is."""
    runs: Path = arguments.runs
    run, bundle = runs / recipe.stem, runs / f"{recipe.stem}-bundle"
    checkpoint = run / "final.pt"
    if not (checkpoint.exists() or bundle.exists()):
        updates = ["--updates", arguments.updates] if arguments.updates else []
        _call("model.train", recipe, "--data", arguments.data, "--out", run, *updates)
    if checkpoint.exists() and not bundle.exists():
        _call("export", checkpoint, bundle, "--dev", *dev)
    return bundle


def _name(bundle: Path) -> str:
    return bundle.name.removesuffix("-bundle")


def _call(module: str, *arguments: object) -> None:
    """Runs a command and shows it. What the command writes says why it failed."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    print(f"$ {shlex.join(command)}", flush=True)
    subprocess.run(command, check=False)


def _parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.train_networks", description=__doc__.partition("\n")[0]
    )
    networks.add_arguments(parser)
    parser.add_argument("--data", type=Path, required=True, metavar="DIR", help="text that the recipes name")
    parser.add_argument("--runs", type=Path, required=True, metavar="DIR", help="for checkpoints and bundles")
    parser.add_argument("--recipes", type=Path, default=RECIPES, metavar="DIR", help="default: %(default)s")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="of the recipes, in this order")
    parser.add_argument("--updates", type=int, metavar="N", help="of each network (default: as its recipe says)")
    parser.add_argument(
        "--at-once", type=int, default=1, metavar="N", help="recipes that train at a time (default: %(default)s)"
    )
    arguments = parser.parse_args()
    for name in ("updates", "at_once"):
        value = getattr(arguments, name)
        if value is not None and value < 1:
            parser.error(f"argument --{name.replace('_', '-')}: must be at least 1, not {value}")
    return arguments


if __name__ == "__main__":
    main()
