"""Trains a model, evaluates it as it goes, and leaves checkpoints."""

import contextlib
import dataclasses
import logging
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import sacrebleu
import sentencepiece
import torch
from torch import Tensor
from torch.utils.tensorboard import SummaryWriter

from model.ahead import epochs_from, spare_cores
from model.augment import Augmentation, Pair
from model.checkpoint import FOREIGN, Checkpoint, average_weights, load_checkpoint, save_checkpoint
from model.command import printable
from model.curve import can_draw, draw_curve
from model.data import Batch, Corpus, epoch_batches, epoch_pairs, word_classes
from model.families import FAMILIES
from model.optimizer import Optimizer
from model.precision import is_bfloat16_faster
from model.processes import rank, sum_over_processes, world_size
from model.progress import Progress
from model.recipe import Recipe
from model.run_state import load_run, save_run

SAVE_EVERY = 100  # updates that a lost machine costs at most
_LOG_EVERY = 50  # updates, of TensorBoard's scalars and the curve's points

logger = logging.getLogger(__name__)


class Trainer:
    """One training run: the model, its optimiser, and the place in the data where it stands."""

    def __init__(self, recipe: Recipe, corpora: list[Corpus], dev: list[Pair], tokenizer: bytes, out: Path) -> None:
        self.recipe = recipe
        self.corpora = corpora
        self.dev = dev
        self.tokenizer_bytes = tokenizer
        self.tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tokenizer)
        self.augmentation = Augmentation(recipe.augmentation, recipe.tokenizer.num_placeholders, word_classes(corpora))
        self.out = out
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        torch.manual_seed(recipe.training.seed)
        self.family = FAMILIES[recipe.model.family]
        self.model = self.family.network(recipe.model).to(self.device)
        self.optimizer = Optimizer(self.model, recipe.training)
        self.step = 0
        self.epoch = 0
        self.next_group = 0  # updates of this epoch already done
        self.best_bleu = 0.0
        self.mean_loss = 0.0  # of the last hundred updates or so
        self.seconds = 0.0
        self.target_tokens = 0
        self.pretrained = ""  # name of the model whose weights it began with
        self.loss_curve: list[tuple[int, float]] = []
        self.score_curve: list[tuple[int, float, float]] = []  # BLEU and chrF
        self.stop_requested = False
        self._is_stopping = False  # all processes agree on the step that is the last

    def begin_with(self, checkpoint: Checkpoint) -> None:
        """Takes the weights of a trained model; of one of another family, those of the encoder and the embeddings."""
        is_same = checkpoint.config.family == self.recipe.model.family
        weights = {name: w for name, w in checkpoint.weights.items() if is_same or not name.startswith("decoder")}
        self.model.load_state_dict({**self.model.state_dict(), **weights})
        self.pretrained = printable(str(checkpoint.facts.get("name", "another model")))

    @property
    def is_finished(self) -> bool:
        """Whether it has made all its updates."""
        return self.step >= self.recipe.training.max_steps

    def run(self) -> None:
        """Trains until `max_steps` or a stop request. A run that has made all its updates gets its averaged model.

        Raises OSError if a file cannot be written, FloatingPointError if the loss is not finite. What was saved stays.
        """
        training = self.recipe.training
        progress = Progress(training.max_steps, self.step, is_shown=rank() == 0)
        with SummaryWriter(str(self.out / "tensorboard"), purge_step=self.step + 1) as writer, progress:
            recent: list[float] = []
            for batches in self._updates():
                started = time.monotonic()
                loss, tokens = self.update(batches)
                if not math.isfinite(loss):
                    raise FloatingPointError(
                        f"the loss of step {self.step} is {loss}: lower lr_scale, or raise warmup_steps"
                    )
                elapsed = time.monotonic() - started
                self.seconds += elapsed
                self.target_tokens += tokens
                self.mean_loss += (loss - self.mean_loss) * max(0.01, 1 / self.step)
                recent.append(loss)
                if self.step % _LOG_EVERY == 0:
                    self.loss_curve.append((self.step, sum(recent) / len(recent)))
                    recent = []
                    writer.add_scalar("train/loss", loss, self.step)
                    writer.add_scalar("train/learning_rate", self.optimizer.learning_rate, self.step)
                    writer.add_scalar("train/target_tokens_per_second", tokens / elapsed, self.step)
                progress.update(self.epoch, loss, tokens, elapsed)
                if self.step % training.evaluate_every == 0 or self.is_finished:
                    self._evaluate_and_save(writer)
                elif self.step % SAVE_EVERY == 0:
                    self.save_state()
                if self._is_stopping and not self.is_finished:
                    self.save_state()
                    logger.info("stopped at step %d; the same command goes on from here", self.step)
                    return
        if rank() == 0 and not self._has_final():
            self._write_final()

    def update(self, batches: list[Batch]) -> tuple[float, int]:
        """Makes one update from `accumulate` batches per process.

        Returns:
            The mean label-smoothed loss per target token, in nats, and the number of target tokens.
        """
        self.model.train()
        # Dropout depends on the update and the process alone, so a resumed run draws what an unbroken one does.
        torch.manual_seed(((self.recipe.training.seed << 40) + (self.step << 8) + rank()) % 2**64)
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
        with self._autocast():
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
            with self._autocast():
                results = self.family.translate(self.model, [sources[i] for i in chosen], 1)
            for i, ids in zip(chosen, results, strict=True):
                hypotheses[i] = self.tokenizer.decode(ids)
        references = [[target for _, target in self.dev]]
        bleu, chrf = sacrebleu.corpus_bleu(hypotheses, references), sacrebleu.corpus_chrf(hypotheses, references)
        return float(bleu.score), float(chrf.score)

    def save_state(self) -> None:
        """Writes `state.pt`, from which `restore_state` goes on exactly."""
        if rank() == 0:
            state = {
                "model": self.model.state_dict(),
                "optimizer": self.optimizer.state_dict(),
                "progress": {name: getattr(self, name) for name in _PROGRESS},
            }
            save_run(self.out / "state.pt", self.recipe, state)

    def restore_state(self) -> bool:
        """Goes on from `state.pt` if there is one; says whether it did.

        Raises:
            OSError: it cannot be read.
            ValueError: it is damaged, or of a run with another model, tokenizer, optimiser or languages.
        """
        path = self.out / "state.pt"
        if not path.exists():
            return False
        state = load_run(path, self.recipe)
        try:
            self.model.load_state_dict(state["model"])
            self.optimizer.load_state_dict(state["optimizer"])
            for name in _PROGRESS:  # older versions drew no curves
                value = state["progress"].get(name, getattr(self, name))
                setattr(self, name, type(getattr(self, name))(value))
        except FOREIGN as error:  # of an older version, which did not say whose it was
            raise ValueError(f"{path} is of another model or optimizer than the recipe's") from error
        return True

    def _updates(self) -> Iterator[list[Batch]]:
        if self.is_finished:
            return
        per_update = self.recipe.training.accumulate * world_size()
        num_processes = spare_cores() if self.device.type == "cuda" else 0
        for batches in epochs_from(self.epoch, self._epoch, num_processes):
            groups = [batches[i : i + per_update] for i in range(0, len(batches), per_update)]
            for group in groups[self.next_group :]:
                self.next_group += 1
                yield group
                if self.is_finished:
                    return
            self.epoch, self.next_group = self.epoch + 1, 0

    def _epoch(self, epoch: int) -> list[Batch]:
        training = self.recipe.training
        pairs = epoch_pairs(self.corpora, self.augmentation, training, epoch)
        return epoch_batches(pairs, self.tokenizer, self.recipe.model, training, epoch)

    def _loss(self, batch: Batch) -> Tensor:
        with self._autocast():
            return self.family.loss(self.model, batch, self.recipe.training)

    def _autocast(self) -> contextlib.AbstractContextManager[Any]:
        wanted = self.recipe.training.bf16 and (self.device.type == "cuda" or is_bfloat16_faster())
        return torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=wanted)

    def _evaluate_and_save(self, writer: SummaryWriter) -> None:
        if rank() != 0:
            return
        bleu, chrf = self.dev_scores()
        writer.add_scalar("dev/bleu", bleu, self.step)
        writer.add_scalar("dev/chrf", chrf, self.step)
        place = f"step {self.step}, epoch {self.epoch}, {self.seconds / 3600:.2f} hours"
        logger.info("%s: loss %.3f, dev BLEU %.2f, chrF %.2f (greedy)", place, self.mean_loss, bleu, chrf)
        self.score_curve.append((self.step, bleu, chrf))
        path = self.out / f"step-{self.step}.pt"
        save_checkpoint(path, self._checkpoint(self.model.state_dict(), bleu))
        if bleu > self.best_bleu:
            self.best_bleu = bleu
            save_checkpoint(self.out / "best.pt", self._checkpoint(self.model.state_dict(), bleu))
        for old in self._step_checkpoints()[: -self.recipe.training.average_last]:
            old.unlink()
        self.save_state()
        if can_draw():
            title = f"{self.recipe.name}: best dev BLEU {self.best_bleu:.2f}"
            draw_curve(self.out / "curve.png", title, self.loss_curve, self.score_curve)

    def _has_final(self) -> bool:
        """Whether `final.pt` is of the updates that `state.pt` has: a run may end, and go on with more of them."""
        final = self.out / "final.pt"
        return final.exists() and final.stat().st_mtime_ns >= (self.out / "state.pt").stat().st_mtime_ns

    def _write_final(self) -> None:
        """Writes the average of the last checkpoints, or the best one if that scores higher on the dev set."""
        last = self._step_checkpoints()[-self.recipe.training.average_last :]
        weights = average_weights(last) if last else self.model.state_dict()  # somebody has removed them
        self.model.load_state_dict(weights)
        bleu, chrf = self.dev_scores()
        logger.info("average of the last %d checkpoints: dev BLEU %.2f, chrF %.2f (greedy)", len(last), bleu, chrf)
        final, kind, best = self._checkpoint(weights, bleu), "the average", self.out / "best.pt"
        if self.best_bleu > bleu and best.exists():
            final, bleu = load_checkpoint(best), self.best_bleu
            kind = f"that of step {final.facts['steps']}, the best,"
        half = {name: weight.half() for name, weight in final.weights.items()}
        save_checkpoint(self.out / "final.pt", dataclasses.replace(final, weights=half))
        logger.info("%s: %s with dev BLEU %.2f", self.out / "final.pt", kind, bleu)

    def _step_checkpoints(self) -> list[Path]:
        """Returns those of this run, the last one last. Another file of such a name is somebody else's."""
        paths = [self.out / f"step-{step}.pt" for step, _, _ in self.score_curve]
        return [path for path in paths if path.exists()]

    def _checkpoint(self, weights: dict[str, Tensor], bleu: float) -> Checkpoint:
        facts = {
            "name": self.recipe.name,
            "source_language": self.recipe.source_language,
            "target_language": self.recipe.target_language,
            "recipe": dataclasses.asdict(self.recipe),
            "steps": self.step,
            "epochs": self.epoch,
            "training_seconds": round(self.seconds),
            "target_tokens": self.target_tokens,
            "device": self.device.type,
            "dev_bleu_greedy": round(bleu, 2),
        }
        if self.pretrained:
            facts["pretrained"] = self.pretrained
        return Checkpoint(config=self.recipe.model, weights=weights, tokenizer=self.tokenizer_bytes, facts=facts)


_PROGRESS = (
    "step",
    "epoch",
    "next_group",
    "best_bleu",
    "mean_loss",
    "seconds",
    "target_tokens",
    "pretrained",
    "loss_curve",
    "score_curve",
)
