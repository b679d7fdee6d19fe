"""Small training runs for the tests of training."""

import dataclasses
import shutil
from pathlib import Path

from model.config import TransformerConfig
from model.data import Batch, read_corpus
from model.recipe import AugmentationConfig, CorpusConfig, Recipe, TrainingConfig
from model.training_loop import Trainer

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
CORPUS = CorpusConfig(source="multi30k_val_200.en.txt", target="multi30k_val_200.de.txt")
SMALL_RECIPE = """
name = "small"
source_language = "en"
target_language = "de"
[model]
vocab_size = 700
d_model = 16
num_heads = 2
encoder_layers = 1
decoder_layers = 1
ffn_dim = 32
dropout = 0.0
[training]
batch_tokens = 4000
warmup_steps = 10
max_steps = 1000
bf16 = false
{training}
[[train]]
source = "multi30k_val_200.en.txt"
target = "multi30k_val_200.de.txt"
[dev]
source = "dev.en"
target = "dev.de"
"""


def recipe(**training: float | str) -> Recipe:
    return Recipe(
        name="test",
        source_language="en",
        target_language="de",
        model=TransformerConfig(
            vocab_size=700, d_model=16, num_heads=2, encoder_layers=1, decoder_layers=1, ffn_dim=32, dropout=0.2
        ),
        training=dataclasses.replace(
            TrainingConfig(
                batch_tokens=2000, warmup_steps=5, max_steps=12, evaluate_every=100, word_dropout=0.1, bf16=False
            ),
            **training,  # type: ignore[arg-type]
        ),
        augmentation=AugmentationConfig(copy=0.2, placeholder=0.2, upper_case=0.1),
        train=(CORPUS,),
        dev=(CORPUS,),
    )


def one_pass_recipe() -> Recipe:
    plain = recipe(word_dropout=0.0)
    model = dataclasses.replace(plain.model, family="one_pass", decoder_layers=2, output_bias=True)
    return dataclasses.replace(plain, model=model, training=dataclasses.replace(plain.training, glancing=0.5))


def recurrent_recipe() -> Recipe:
    plain = recipe()
    model = dataclasses.replace(plain.model, family="recurrent", num_heads=1, attention_score="additive")
    return dataclasses.replace(plain, model=model)


class RecordingTrainer(Trainer):
    """Notes each loss and stops after `stop_at` updates, as if Ctrl-C came."""

    losses: list[float]
    stop_at: int | None

    def update(self, batches: list[Batch]) -> tuple[float, int]:
        self.stop_requested = self.step + 1 == self.stop_at
        loss, tokens = super().update(batches)
        self.losses.append(loss)
        return loss, tokens


def make(out: Path, tokenizer: bytes, how: Recipe, stop_at: int | None = None) -> RecordingTrainer:
    out.mkdir(exist_ok=True)
    dev = read_corpus(CORPUS, DATA)
    trainer = RecordingTrainer(how, [read_corpus(CORPUS, DATA)], dev.pairs[:2], tokenizer, out)
    trainer.losses, trainer.stop_at = [], stop_at
    return trainer


def small_data(folder: Path) -> Path:
    data = folder / "data"
    data.mkdir()
    for language in ("en", "de"):
        name = f"multi30k_val_200.{language}.txt"
        shutil.copy(DATA / name, data)
        first = (DATA / name).read_text(encoding="utf-8").splitlines()[0]
        (data / f"dev.{language}").write_text(f"{first}\n", encoding="utf-8")
    return data
