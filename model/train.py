"""`babelserve-train RECIPE --data DIR --out DIR`: trains a model and leaves checkpoints.

In the output directory: `final.pt` (in float16; the average of the last checkpoints, or the best one where that scores
higher on the dev set), `best.pt`, `step-N.pt`, `state.pt` (all that a restart needs to go on with the same losses),
`tokenizer.model` (one that is there already is taken), `held-out.tsv`, `curve.png`, TensorBoard scalars, and `lock`, by
which a second run there is refused. Ctrl-C saves and ends; the same command goes on, by the recipe as it is then: lower
`max_steps` to begin the cooldown early.
`--pretrained final.pt` begins with the weights and the vocabulary of another run: to fine-tune its model on other text,
or, as its embeddings know both languages, to train the other direction sooner.
With several processes start it by `torchrun`; each takes its share of every update's batches.

`babelserve-train --init DIR --source fr --target en` writes a recipe to begin with.
"""

import argparse
import dataclasses
import logging
import random
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import shtab
import torch

from model.augment import Augmentation, Pair
from model.checkpoint import Checkpoint
from model.command import Parser, parse, told
from model.data import Corpus, epoch_pairs, has_examples, read_corpus, without_held_out, word_classes
from model.families import FAMILIES
from model.files import hold_folder, read_whole, replacing
from model.memory import keep_freed_memory, known_memory_errors, memory_bytes
from model.processes import joined, rank, wait_for_all
from model.recipe import Recipe
from model.recipe_file import load_recipe
from model.run_state import load_pretrained, load_run
from model.starter import write_starter
from model.training_loop import Trainer
from model.vocabulary import learn_vocabulary, vocabulary_faults

logger = logging.getLogger(__name__)

_VOCABULARY = "tokenizer.model"
_MAX_VOCABULARY_BYTES = 1 << 26  # of the file: a million pieces take 20 MB
_TRAINING_BYTES = 16  # of a weight: its value, its gradient and Adam's two means, in float32
# What divides columns and, for some program, lines: a tab, and all at which str.splitlines divides.
_DIVIDERS = re.compile("[\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]+")


def main() -> None:
    """Entry point of `babelserve-train`."""
    arguments = _parse_arguments()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
    if arguments.init is not None:
        with told("babelserve-train", arguments.init, OSError, ValueError):
            print(write_starter(arguments.init, arguments.source, arguments.target))
        return
    keep_freed_memory()
    with joined():
        with told("babelserve-train", arguments.out, OSError, ValueError):
            recipe = load_recipe(arguments.recipe)
            if arguments.updates is not None:
                recipe = dataclasses.replace(recipe, training=recipe.training.with_updates(arguments.updates))
            trainer = prepare(recipe, arguments.data, arguments.out, arguments.pretrained)

        def request_stop(_signum: int, _frame: object) -> None:
            trainer.stop_requested = True

        signal.signal(signal.SIGINT, request_stop)
        signal.signal(signal.SIGTERM, request_stop)
        with told("babelserve-train", arguments.out, OSError, FloatingPointError, MemoryError), known_memory_errors():
            trainer.run()
        if trainer.is_finished and rank() == 0:
            logger.info("next: %s", _export_command(recipe, arguments.data, arguments.out))


def _export_command(recipe: Recipe, data: Path, out: Path) -> str:
    dev = next((each for each in recipe.dev if each.source), None)
    files = ["SOURCE", "TARGET"] if dev is None else [str(data / dev.source), str(data / dev.target)]
    if dev is not None and dev.reverse:
        files.reverse()
    bundle = out.parent / "bundle"  # where --init says, too
    return shlex.join(["babelserve-export", str(out / "final.pt"), str(bundle), "--dev", *files])


def build_parser() -> argparse.ArgumentParser:
    """All flags, with defaults and units in their help."""
    parser = Parser(prog="babelserve-train", description="Train a translation model.")
    parser.add_argument("recipe", type=Path, nargs="?", help="TOML file, such as --init writes")
    parser.add_argument("--data", type=Path, metavar="DIR", help="directory that the recipe's corpora are relative to")
    parser.add_argument("--out", type=Path, metavar="DIR", help="for checkpoints; an existing run goes on")
    parser.add_argument(
        "--pretrained",
        type=Path,
        metavar="FILE",
        help="final.pt of another run, a best.pt, or what `python -m export.restore` writes: a new run begins with its "
        "weights and vocabulary",
    )
    parser.add_argument(
        "--updates",
        type=int,
        metavar="N",
        help="in place of the recipe's max_steps; warmup, cooldown and evaluations keep their shares of it",
    )
    parser.add_argument(
        "--init", type=Path, metavar="DIR", help="instead: write a commented recipe there, say what else is needed, end"
    )
    parser.add_argument("--source", metavar="CODE", help="with --init: the source language, such as fr")
    parser.add_argument("--target", metavar="CODE", help="with --init: the target language, such as en")
    shtab.add_argument_to(parser, "--print-completion", help="print what completes this command in a shell, and end")
    return parser


def _parse_arguments() -> argparse.Namespace:
    parser = build_parser()
    arguments = parse(parser)
    training, starting = ["recipe", "data", "out"], ["source", "target"]
    changing = ["pretrained", "updates"]
    needed, others = (training, starting) if arguments.init is None else (starting, [*training, *changing])
    if missing := [_flag(name) for name in needed if getattr(arguments, name) is None]:
        parser.error(f"{', '.join(missing)} must be given, or --init with --source and --target")
    if given := sorted(_flag(name) for name in others if getattr(arguments, name) is not None):
        parser.error(f"{', '.join(given)}: {'not' if arguments.init is not None else 'only'} with --init")
    if arguments.updates is not None and arguments.updates < 1:
        parser.error(f"argument --updates: must be at least 1, not {arguments.updates}")
    return arguments


def _flag(name: str) -> str:
    return name.upper() if name == "recipe" else f"--{name}"


def prepare(recipe: Recipe, data: Path, out: Path, pretrained: Path | None = None) -> Trainer:
    """Reads the data, learns the vocabulary once, and returns a trainer that goes on where the last run stopped.

    Args:
        recipe: of the run.
        data: directory that its corpora are relative to.
        out: for checkpoints.
        pretrained: a checkpoint with whose weights and vocabulary a run begins that has no `state.pt` yet.

    Raises:
        OSError: a file cannot be read or written, or another run writes to `out`.
        ValueError: a corpus is damaged; the machine is too small for the network; or the corpora, the pretrained model,
            or what an earlier run has left, do not fit the recipe.
    """
    if not data.is_dir():
        raise FileNotFoundError(f"--data {data}: there is no such folder; put there the text that the recipe names")
    out.mkdir(parents=True, exist_ok=True)
    if rank() == 0:
        hold_folder(out)
    checkpoint = _check_start(recipe, out, pretrained)
    _check_size(recipe)
    corpora = without_held_out([read_corpus(corpus, data) for corpus in recipe.train])
    if not corpora:
        raise ValueError("the recipe names no [[train]] corpus")
    if not any(corpus.pairs for corpus in corpora):
        raise ValueError("the [[train]] corpora have no pair that is not held out: lower hold_out")
    dev = [pair for corpus in recipe.dev for pair in read_corpus(corpus, data).pairs]
    if not dev:
        raise ValueError("the recipe names no [dev] corpus: checkpoints are chosen by it")
    vocabulary = out / _VOCABULARY
    if rank() == 0:
        with replacing(out / "held-out.tsv") as draft:
            draft.write_text("".join(_held_out_lines(corpora)), encoding="utf-8")
        if not vocabulary.exists():
            content = checkpoint.tokenizer if checkpoint else _learn_vocabulary(recipe, corpora)
            with replacing(vocabulary) as draft:
                draft.write_bytes(content)
    wait_for_all()
    trainer = Trainer(recipe, corpora, dev, read_whole(vocabulary, _MAX_VOCABULARY_BYTES), out)
    if not has_examples(corpora, trainer.tokenizer, recipe.training):
        longest = recipe.training.max_tokens
        raise ValueError(f"the [[train]] corpora have no pair of fewer than {longest} tokens, training.max_tokens")
    trainer.dev = _fitting(dev, trainer)
    if checkpoint:
        trainer.begin_with(checkpoint)
    _tell_start(trainer, is_resumed=trainer.restore_state())
    return trainer


def _held_out_lines(corpora: list[Corpus]) -> Iterator[str]:
    """Yields SOURCE TAB TARGET lines. A tab or an end of a line within a text becomes a blank."""
    for corpus in corpora:
        for pair in corpus.held_out:
            yield "\t".join(_DIVIDERS.sub(" ", side) for side in pair) + "\n"


def _fitting(dev: list[Pair], trainer: Trainer) -> list[Pair]:
    """Returns the pairs of the dev set whose source the network can read; warns of the others, and of learned ones."""
    limit = trainer.recipe.model.max_positions
    fitting = [pair for pair in dev if len(trainer.tokenizer.encode(pair[0])) < limit]
    if not fitting:
        raise ValueError(f"the [dev] corpora have no source of fewer than {limit} tokens, model.max_positions")
    if len(fitting) < len(dev):
        logger.warning("left out %d [dev] pairs of %d tokens or more", len(dev) - len(fitting), limit)
    learned = set(fitting).intersection(pair for corpus in trainer.corpora for pair in corpus.pairs)
    if learned:
        logger.warning("%d [dev] pairs are in the [[train]] text too: scores on them say little", len(learned))
    return fitting


def _check_size(recipe: Recipe) -> None:
    """Raises ValueError if the machine has not the memory to train the network."""
    with torch.device("meta"):  # the network without its numbers
        network = FAMILIES[recipe.model.family].network(recipe.model)
        num_weights = sum(weight.numel() for weight in network.state_dict().values())
    needed, there = num_weights * _TRAINING_BYTES, memory_bytes()
    if needed > there:
        wants = f"[model] is a network of {num_weights / 1e6:.0f} million weights, whose training takes"
        raise ValueError(f"{wants} {needed / 1e9:.0f} GB of memory; this machine has {there / 1e9:.0f} GB")


def _tell_start(trainer: Trainer, *, is_resumed: bool) -> None:
    logger.info(
        "%s: %.1f million weights%s, %d pairs, %s step %d",
        trainer.recipe.name,
        sum(p.numel() for p in trainer.model.parameters()) / 1e6,
        f", at first those of {trainer.pretrained}" if trainer.pretrained else "",
        sum(len(corpus.pairs) for corpus in trainer.corpora),
        "resuming at" if is_resumed else "starting at",
        trainer.step,
    )


def _check_start(recipe: Recipe, out: Path, pretrained: Path | None) -> Checkpoint | None:
    """Returns the model that a new run begins with, if any. Raises as `prepare`, for what a run starts from."""
    checkpoint, state, vocabulary = None, out / "state.pt", out / _VOCABULARY
    if state.exists():
        load_run(state, recipe)  # its faults first: what it says may explain those of the vocabulary
    elif pretrained is not None:
        checkpoint = load_pretrained(pretrained, recipe)
        _check_vocabulary(pretrained, checkpoint.tokenizer, recipe)
    if vocabulary.exists():
        content = read_whole(vocabulary, _MAX_VOCABULARY_BYTES)
        _check_vocabulary(vocabulary, content, recipe)
        if checkpoint is not None and content != checkpoint.tokenizer:
            raise ValueError(f"{vocabulary} is not the vocabulary of {pretrained}; remove it, or take another --out")
    return checkpoint


def _check_vocabulary(path: Path, content: bytes, recipe: Recipe) -> None:
    """Raises ValueError with all that keeps a file's vocabulary from being the recipe's."""
    if faults := vocabulary_faults(content, recipe):
        raise ValueError("\n".join(f"{path}: {fault}" for fault in faults))


def _learn_vocabulary(recipe: Recipe, corpora: list[Corpus]) -> bytes:
    sentences = _sentences(recipe, corpora)
    logger.info("learning a vocabulary of %d pieces from %d sentences", recipe.model.vocab_size, len(sentences))
    return learn_vocabulary(sentences, recipe)


def _sentences(recipe: Recipe, corpora: list[Corpus]) -> list[str]:
    """Returns what the vocabulary is learned from, both languages, shuffled."""
    if recipe.tokenizer.from_first_epoch:
        augmentation = Augmentation(recipe.augmentation, recipe.tokenizer.num_placeholders, word_classes(corpora))
        pairs = epoch_pairs(corpora, augmentation, recipe.training, epoch=0)
    else:
        pairs = [pair for corpus in corpora for pair in corpus.pairs]
    sentences = [side for pair in pairs for side in pair]
    random.Random(recipe.training.seed).shuffle(sentences)
    return sentences


if __name__ == "__main__":
    main()
