"""`babelserve-train RECIPE --data DIR --out DIR`: trains a model by teacher forcing and leaves checkpoints.

In the output directory: `final.pt` (the average of the last checkpoints, in float16), `best.pt`, `step-N.pt`,
`state.pt` (all that a restart needs to go on with the same losses), `held-out.tsv`, and TensorBoard scalars. Ctrl-C
saves and ends; the same command goes on. With several processes start it by `torchrun`; each takes its share of every
update's batches.
"""

import argparse
import contextlib
import dataclasses
import logging
import math
import os
import random
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sacrebleu
import sentencepiece
import torch
import torch.distributed
from torch import Tensor
from torch.nn import functional
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from model.augment import Augmentation
from model.checkpoint import Checkpoint, average_weights, save_atomically, save_checkpoint
from model.config import Recipe, TrainingConfig, load_recipe
from model.data import Batch, Corpus, epoch_batches, read_corpus, without_held_out
from model.search import default_max_tokens, search
from model.transformer import Transformer
from model.vocabulary import learn_vocabulary

logger = logging.getLogger(__name__)


class Trainer:
    """One training run: the model, its optimiser, and the place in the data where it stands."""

    def __init__(self, recipe: Recipe, corpora: list[Corpus], dev: Corpus, tokenizer: bytes, out: Path) -> None:
        self.recipe = recipe
        self.corpora = corpora
        self.dev = dev
        self.tokenizer_bytes = tokenizer
        self.tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
        self.augmentation = Augmentation(recipe.augmentation, recipe.tokenizer.num_placeholders)
        self.out = out
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(recipe.training.seed)
        self.model = Transformer(recipe.model).to(self.device)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
        self.step = 0
        self.epoch = 0
        self.next_group = 0  # updates of this epoch already done
        self.best_bleu = 0.0
        self.seconds = 0.0
        self.stop_requested = False
        self._is_stopping = False  # all processes agree on the step that is the last

    def run(self) -> None:
        """Trains until `max_steps` or a stop request, then writes the averaged model."""
        training = self.recipe.training
        progress = tqdm(
            total=training.max_steps, initial=self.step, unit="step", disable=None if _rank() == 0 else True
        )
        with SummaryWriter(str(self.out / "tensorboard"), purge_step=self.step) as writer, progress:
            for batches in self._updates():
                started = time.monotonic()
                loss, tokens = self.update(batches)
                elapsed = time.monotonic() - started
                self.seconds += elapsed
                progress.update()
                if self.step % 50 == 0:
                    rate = self.optimizer.param_groups[0]["lr"]
                    progress.set_postfix(epoch=self.epoch, loss=f"{loss:.3f}", tokens_s=f"{tokens / elapsed:.0f}")
                    writer.add_scalar("train/loss", loss, self.step)
                    writer.add_scalar("train/learning_rate", rate, self.step)
                    writer.add_scalar("train/target_tokens_per_second", tokens / elapsed, self.step)
                if self.step % training.evaluate_every == 0 or self.step == training.max_steps:
                    self._evaluate_and_save(writer)
                if self._is_stopping:
                    self.save_state()
                    logger.info("stopped at step %d; the same command goes on from here", self.step)
                    return
        if _rank() == 0:
            self._write_final()

    def update(self, batches: list[Batch]) -> tuple[float, int]:
        """Makes one update from `accumulate` batches per process.

        Returns:
            The mean label-smoothed cross entropy per target token, in nats, and the number of target tokens.
        """
        self.model.train()
        # Dropout depends on the update and the process alone, so a resumed run draws what an unbroken one does.
        torch.manual_seed((self.recipe.training.seed << 40) + (self.step << 8) + _rank())
        mine = batches[_rank() :: _world_size()]
        pad_id = self.recipe.model.pad_id
        num_tokens = sum(int((batch.target_out != pad_id).sum()) for batch in batches)
        total = torch.zeros((), device=self.device)
        for batch in mine:
            loss = self._loss(batch) / num_tokens
            loss.backward()
            total += loss.detach()
        self._is_stopping = self.stop_requested
        if _world_size() > 1:
            stop = torch.tensor(float(self.stop_requested), device=self.device)
            # A process without a batch, at the end of an epoch, has no gradients yet.
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.model.parameters()]
            _sum_over_processes([total, stop, *grads])
            self._is_stopping = bool(stop)
            for parameter, grad in zip(self.model.parameters(), grads, strict=True):
                parameter.grad = grad
        self.step += 1
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate(self.recipe.training, self.recipe.model.d_model, self.step)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return float(total), num_tokens

    def dev_bleu(self) -> float:
        """Returns sacreBLEU of greedy translations of the dev set."""
        self.model.eval()
        sources = [[*ids, self.recipe.model.eos_id] for ids in self.tokenizer.encode([s for s, _ in self.dev.pairs])]
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        hypotheses = [""] * len(sources)
        for start in range(0, len(order), 128):
            chosen = order[start : start + 128]
            limits = [default_max_tokens(len(sources[i]), self.recipe.model.max_positions - 1) for i in chosen]
            with self._autocast():
                results = search(self.model, [sources[i] for i in chosen], max_tokens=limits)
            for i, result in zip(chosen, results, strict=True):
                hypotheses[i] = self.tokenizer.decode(result[0].ids)
        return float(sacrebleu.corpus_bleu(hypotheses, [[t for _, t in self.dev.pairs]]).score)

    def save_state(self) -> None:
        """Writes `state.pt`, from which `restore_state` goes on exactly."""
        if _rank() == 0:
            document = {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "progress": {name: getattr(self, name) for name in _PROGRESS},
            }
            save_atomically(self.out / "state.pt", document)

    def restore_state(self) -> bool:
        """Goes on from `state.pt` if there is one; says whether it did."""
        path = self.out / "state.pt"
        if not path.exists():
            return False
        document = torch.load(path, map_location="cpu", weights_only=True)
        self.model.load_state_dict(document["model"])
        self.optimizer.load_state_dict(document["optimizer"])
        for name in _PROGRESS:
            setattr(self, name, document["progress"][name])
        return True

    def _updates(self) -> Iterator[list[Batch]]:
        per_update = self.recipe.training.accumulate * _world_size()
        while self.step < self.recipe.training.max_steps:
            batches = epoch_batches(
                self.corpora, self.tokenizer, self.augmentation, self.recipe.model, self.recipe.training, self.epoch
            )
            groups = [batches[i : i + per_update] for i in range(0, len(batches), per_update)]
            for group in groups[self.next_group :]:
                self.next_group += 1
                yield group
                if self.step >= self.recipe.training.max_steps:
                    return
            self.epoch, self.next_group = self.epoch + 1, 0

    def _loss(self, batch: Batch) -> Tensor:
        config = self.recipe.model
        target_in = replace_words(batch.target_in, self.recipe.training.word_dropout, config.eos_id, config.vocab_size)
        with self._autocast():
            logits = self.model(batch.source.to(self.device), target_in.to(self.device))
        return functional.cross_entropy(
            logits.flatten(0, 1).float(),
            batch.target_out.to(self.device).flatten(),
            ignore_index=config.pad_id,
            label_smoothing=self.recipe.training.label_smoothing,
            reduction="sum",
        )

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        wanted = self.recipe.training.bf16 and (
            self.device.type == "cuda" or torch.cpu.get_capabilities().get("avx512_bf16", False)
        )
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=wanted)

    def _evaluate_and_save(self, writer: SummaryWriter) -> None:
        if _rank() != 0:
            return
        bleu = self.dev_bleu()
        writer.add_scalar("dev/bleu", bleu, self.step)
        logger.info("step %d, epoch %d: dev BLEU %.2f (greedy)", self.step, self.epoch, bleu)
        path = self.out / f"step-{self.step}.pt"
        save_checkpoint(path, self._checkpoint(self.model.state_dict(), bleu))
        if bleu > self.best_bleu:
            self.best_bleu = bleu
            save_checkpoint(self.out / "best.pt", self._checkpoint(self.model.state_dict(), bleu))
        for old in self._step_checkpoints()[: -self.recipe.training.average_last]:
            old.unlink()
        self.save_state()

    def _write_final(self) -> None:
        weights = average_weights(self._step_checkpoints()[-self.recipe.training.average_last :])
        self.model.load_state_dict(weights)
        bleu = self.dev_bleu()
        half = {name: weight.half() for name, weight in weights.items()}
        save_checkpoint(self.out / "final.pt", self._checkpoint(half, bleu))
        logger.info("averaged model: dev BLEU %.2f (greedy), written to %s", bleu, self.out / "final.pt")

    def _step_checkpoints(self) -> list[Path]:
        return sorted(self.out.glob("step-*.pt"), key=lambda path: int(path.stem.split("-")[1]))

    def _checkpoint(self, weights: dict[str, Tensor], bleu: float) -> Checkpoint:
        facts = {
            "name": self.recipe.name,
            "source_language": self.recipe.source_language,
            "target_language": self.recipe.target_language,
            "recipe": dataclasses.asdict(self.recipe),
            "steps": self.step,
            "epochs": self.epoch,
            "training_seconds": round(self.seconds),
            "device": self.device.type,
            "dev_bleu_greedy": round(bleu, 2),
        }
        return Checkpoint(config=self.recipe.model, weights=weights, tokenizer=self.tokenizer_bytes, facts=facts)


_PROGRESS = ("step", "epoch", "next_group", "best_bleu", "seconds")


def learning_rate(training: TrainingConfig, d_model: int, step: int) -> float:
    """Returns the rate of update `step` (from 1): linear warm-up, inverse square root (section 5.3), cooldown."""
    shape = min(1 / math.sqrt(step), step / training.warmup_steps / math.sqrt(training.warmup_steps))
    cooldown = min(1.0, (training.max_steps + 1 - step) / training.cooldown_steps) if training.cooldown_steps else 1.0
    return training.lr_scale / math.sqrt(d_model) * shape * cooldown


def replace_words(target_in: Tensor, share: float, last_special_id: int, vocab_size: int) -> Tensor:
    """Replaces a random `share` of the decoder's input tokens [B, T] (special ones apart) by random tokens."""
    if share == 0:
        return target_in
    chosen = (torch.rand(target_in.shape) < share) & (target_in > last_special_id)
    return torch.where(chosen, torch.randint_like(target_in, last_special_id + 1, vocab_size), target_in)


def main() -> None:
    """Entry point of `babelserve-train`."""
    parser = argparse.ArgumentParser(prog="babelserve-train", description="Train a translation model.")
    parser.add_argument("recipe", type=Path, help="TOML file, such as model/configs/small.toml")
    parser.add_argument("--data", type=Path, required=True, help="directory that the recipe's corpora are relative to")
    parser.add_argument("--out", type=Path, required=True, help="directory for checkpoints; an existing run goes on")
    arguments = parser.parse_args()
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s", stream=sys.stderr)
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
    if "WORLD_SIZE" in os.environ and not torch.distributed.is_initialized():
        torch.distributed.init_process_group("nccl" if torch.cuda.is_available() else "gloo")
    out.mkdir(parents=True, exist_ok=True)
    corpora = without_held_out([read_corpus(corpus, data) for corpus in recipe.train])
    if not corpora:
        raise ValueError("the recipe names no [[train]] corpus")
    dev = read_corpus(recipe.dev, data)
    vocabulary = out / "tokenizer.model"
    if _rank() == 0:
        held_out = [f"{source}\t{target}\n" for corpus in corpora for source, target in corpus.held_out]
        (out / "held-out.tsv").write_text("".join(held_out), encoding="utf-8")
        if not vocabulary.exists():
            sentences = [side for corpus in corpora for pair in corpus.pairs for side in pair]
            random.Random(recipe.training.seed).shuffle(sentences)
            vocabulary.write_bytes(learn_vocabulary(sentences, recipe))
    if _world_size() > 1:
        torch.distributed.barrier()
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


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _world_size() -> int:
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def _sum_over_processes(tensors: list[Tensor]) -> None:
    flat = torch.cat([tensor.flatten() for tensor in tensors])
    torch.distributed.all_reduce(flat)
    for tensor, part in zip(tensors, flat.split([t.numel() for t in tensors]), strict=True):
        tensor.copy_(part.view_as(tensor))


if __name__ == "__main__":
    main()
