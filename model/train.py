"""`babelserve-train RECIPE --data DIR --out DIR`: trains a model by teacher forcing and leaves checkpoints.

In the output directory: `final.pt` (the average of the last checkpoints, in float16), `best.pt`, `step-N.pt`,
`state.pt` (all that a restart needs to go on with the same losses), `held-out.tsv`, and TensorBoard scalars. Ctrl-C
saves and ends; the same command goes on, by the recipe as it is then: lower `max_steps` to begin the cooldown early.
With several processes start it by `torchrun`; each takes its share of every update's batches.
"""

import argparse
import logging
import random
import signal
import sys
from pathlib import Path

import shtab

from model.augment import Augmentation
from model.data import Corpus, epoch_pairs, read_corpus, without_held_out
from model.memory import keep_freed_memory
from model.processes import joined, rank, wait_for_all
from model.recipe import load_recipe
from model.trainer import Trainer
from model.training import Recipe
from model.vocabulary import learn_vocabulary

logger = logging.getLogger(__name__)


def main() -> None:
    """Entry point of `babelserve-train`."""
    parser = argparse.ArgumentParser(prog="babelserve-train", description="Train a translation model.")
    parser.add_argument("recipe", type=Path, help="TOML file, such as model/configs/general.toml")
    parser.add_argument("--data", type=Path, required=True, help="directory that the recipe's corpora are relative to")
    parser.add_argument("--out", type=Path, required=True, help="directory for checkpoints; an existing run goes on")
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    keep_freed_memory()
    with joined():
        try:
            trainer = prepare(load_recipe(arguments.recipe), arguments.data, arguments.out)
        except (OSError, ValueError) as error:
            sys.exit(f"babelserve-train: {error}")

        def request_stop(_signum: int, _frame: object) -> None:
            trainer.stop_requested = True

        signal.signal(signal.SIGINT, request_stop)
        signal.signal(signal.SIGTERM, request_stop)
        trainer.run()


def prepare(recipe: Recipe, data: Path, out: Path) -> Trainer:
    """Reads the data, learns the vocabulary once, and returns a trainer that goes on where the last run stopped.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: the corpora do not fit the recipe.
    """
    out.mkdir(parents=True, exist_ok=True)
    corpora = without_held_out([read_corpus(corpus, data) for corpus in recipe.train])
    if not corpora:
        raise ValueError("the recipe names no [[train]] corpus")
    dev = [pair for corpus in recipe.dev for pair in read_corpus(corpus, data).pairs]
    vocabulary = out / "tokenizer.model"
    if rank() == 0:
        held_out = [f"{source}\t{target}\n" for corpus in corpora for source, target in corpus.held_out]
        (out / "held-out.tsv").write_text("".join(held_out), encoding="utf-8")
        if not vocabulary.exists():
            vocabulary.write_bytes(learn_vocabulary(_sentences(recipe, corpora), recipe))
    wait_for_all()
    trainer = Trainer(recipe, corpora, dev, vocabulary.read_bytes(), out)
    num_weights = sum(p.numel() for p in trainer.model.parameters())
    resumed = trainer.restore_state()
    logger.info(
        "%s: %.1f million weights, %d pairs, %s step %d",
        recipe.name,
        num_weights / 1e6,
        sum(len(corpus.pairs) for corpus in corpora),
        "resuming at" if resumed else "starting at",
        trainer.step,
    )
    return trainer


def _sentences(recipe: Recipe, corpora: list[Corpus]) -> list[str]:
    """Returns what the vocabulary is learned from, both languages, shuffled."""
    if recipe.tokenizer.from_first_epoch:
        augmentation = Augmentation(recipe.augmentation, recipe.tokenizer.num_placeholders)
        pairs = epoch_pairs(corpora, augmentation, recipe.training, epoch=0)
    else:
        pairs = [pair for corpus in corpora for pair in corpus.pairs]
    sentences = [side for pair in pairs for side in pair]
    random.Random(recipe.training.seed).shuffle(sentences)
    return sentences


if __name__ == "__main__":
    main()
