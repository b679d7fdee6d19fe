"""Trains a model by teacher forcing, evaluates it as it goes, and leaves checkpoints."""

import contextlib
import dataclasses
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sacrebleu
import sentencepiece
import torch
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from model.augment import Augmentation, Pair
from model.checkpoint import Checkpoint, average_weights, save_atomically, save_checkpoint
from model.data import Batch, Corpus, epoch_batches, epoch_pairs
from model.loss import smoothed_cross_entropy
from model.optimizer import Optimizer
from model.processes import rank, sum_over_processes, world_size
from model.search import default_max_tokens, search
from model.training import Recipe
from model.transformer import Transformer

SAVE_EVERY = 100  # updates that a lost machine costs at most

logger = logging.getLogger(__name__)


class Trainer:
    """One training run: the model, its optimiser, and the place in the data where it stands."""

    def __init__(self, recipe: Recipe, corpora: list[Corpus], dev: list[Pair], tokenizer: bytes, out: Path) -> None:
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
        self.optimizer = Optimizer(self.model, recipe.training)
        self.step = 0
        self.epoch = 0
        self.next_group = 0  # updates of this epoch already done
        self.best_bleu = 0.0
        self.mean_loss = 0.0  # of the last hundred updates or so
        self.seconds = 0.0
        self.stop_requested = False
        self._is_stopping = False  # all processes agree on the step that is the last

    def run(self) -> None:
        """Trains until `max_steps` or a stop request, then writes the averaged model."""
        training = self.recipe.training
        progress = tqdm(total=training.max_steps, initial=self.step, unit="step", disable=None if rank() == 0 else True)
        with SummaryWriter(str(self.out / "tensorboard"), purge_step=self.step) as writer, progress:
            for batches in self._updates():
                started = time.monotonic()
                loss, tokens = self.update(batches)
                elapsed = time.monotonic() - started
                self.seconds += elapsed
                self.mean_loss += (loss - self.mean_loss) * max(0.01, 1 / self.step)
                progress.update()
                if self.step % 50 == 0:
                    progress.set_postfix(epoch=self.epoch, loss=f"{loss:.3f}", tokens_s=f"{tokens / elapsed:.0f}")
                    writer.add_scalar("train/loss", loss, self.step)
                    writer.add_scalar("train/learning_rate", self.optimizer.learning_rate, self.step)
                    writer.add_scalar("train/target_tokens_per_second", tokens / elapsed, self.step)
                if self.step % training.evaluate_every == 0 or self.step == training.max_steps:
                    self._evaluate_and_save(writer)
                elif self.step % SAVE_EVERY == 0:
                    self.save_state()
                if self._is_stopping:
                    self.save_state()
                    logger.info("stopped at step %d; the same command goes on from here", self.step)
                    return
        if rank() == 0:
            self._write_final()

    def update(self, batches: list[Batch]) -> tuple[float, int]:
        """Makes one update from `accumulate` batches per process.

        Returns:
            The mean label-smoothed cross entropy per target token, in nats, and the number of target tokens.
        """
        self.model.train()
        # Dropout depends on the update and the process alone, so a resumed run draws what an unbroken one does.
        torch.manual_seed((self.recipe.training.seed << 40) + (self.step << 8) + rank())
        mine = batches[rank() :: world_size()]
        pad_id = self.recipe.model.pad_id
        num_tokens = sum(int((batch.target_out != pad_id).sum()) for batch in batches)
        total = torch.zeros((), device=self.device)
        for batch in mine:
            loss = self._loss(batch) / num_tokens
            loss.backward()
            total += loss.detach()
        self._is_stopping = self.stop_requested
        if world_size() > 1:
            stop = torch.tensor(float(self.stop_requested), device=self.device)
            # A process without a batch, at the end of an epoch, has no gradients yet.
            grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.model.parameters()]
            sum_over_processes([total, stop, *grads])
            self._is_stopping = bool(stop)
            for parameter, grad in zip(self.model.parameters(), grads, strict=True):
                parameter.grad = grad
        self.step += 1
        self.optimizer.update(self.step)
        return float(total), num_tokens

    def dev_scores(self) -> tuple[float, float]:
        """Returns sacreBLEU and chrF of greedy translations of the dev set."""
        self.model.eval()
        sources = [[*ids, self.recipe.model.eos_id] for ids in self.tokenizer.encode([s for s, _ in self.dev])]
        order = sorted(range(len(sources)), key=lambda i: len(sources[i]))
        hypotheses = [""] * len(sources)
        for start in range(0, len(order), 128):
            chosen = order[start : start + 128]
            limits = [default_max_tokens(len(sources[i]), self.recipe.model.max_positions - 1) for i in chosen]
            with self._autocast():
                results = search(self.model, [sources[i] for i in chosen], max_tokens=limits)
            for i, result in zip(chosen, results, strict=True):
                hypotheses[i] = self.tokenizer.decode(result[0].ids)
        references = [[target for _, target in self.dev]]
        bleu, chrf = sacrebleu.corpus_bleu(hypotheses, references), sacrebleu.corpus_chrf(hypotheses, references)
        return float(bleu.score), float(chrf.score)

    def save_state(self) -> None:
        """Writes `state.pt`, from which `restore_state` goes on exactly."""
        if rank() == 0:
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
        per_update = self.recipe.training.accumulate * world_size()
        while self.step < self.recipe.training.max_steps:
            training = self.recipe.training
            pairs = epoch_pairs(self.corpora, self.augmentation, training, self.epoch)
            batches = epoch_batches(pairs, self.tokenizer, self.recipe.model, training, self.epoch)
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
        target_out = batch.target_out.to(self.device)
        real = target_out != config.pad_id
        with self._autocast():
            states = self.model.states(batch.source.to(self.device), target_in.to(self.device))
            return smoothed_cross_entropy(
                states[real],
                self.model.output_weight,
                target_out[real],
                self.recipe.training.label_smoothing,
                self.model.output_bias,
            )

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        wanted = self.recipe.training.bf16 and (
            self.device.type == "cuda" or torch.cpu.get_capabilities().get("avx512_bf16", False)
        )
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=wanted)

    def _evaluate_and_save(self, writer: SummaryWriter) -> None:
        if rank() != 0:
            return
        bleu, chrf = self.dev_scores()
        writer.add_scalar("dev/bleu", bleu, self.step)
        writer.add_scalar("dev/chrf", chrf, self.step)
        place = f"step {self.step}, epoch {self.epoch}, {self.seconds / 3600:.2f} hours"
        logger.info("%s: loss %.3f, dev BLEU %.2f, chrF %.2f (greedy)", place, self.mean_loss, bleu, chrf)
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
        bleu, chrf = self.dev_scores()
        half = {name: weight.half() for name, weight in weights.items()}
        save_checkpoint(self.out / "final.pt", self._checkpoint(half, bleu))
        logger.info(
            "averaged model: dev BLEU %.2f, chrF %.2f (greedy), written to %s", bleu, chrf, self.out / "final.pt"
        )

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


_PROGRESS = ("step", "epoch", "next_group", "best_bleu", "mean_loss", "seconds")


def replace_words(target_in: Tensor, share: float, last_special_id: int, vocab_size: int) -> Tensor:
    """Replaces a random `share` of the decoder's input tokens [B, T] (special ones apart) by random tokens."""
    if share == 0:
        return target_in
    chosen = (torch.rand(target_in.shape) < share) & (target_in > last_special_id)
    return torch.where(chosen, torch.randint_like(target_in, last_special_id + 1, vocab_size), target_in)
