"""How a model is trained: the tables of a recipe (`model.recipe_file` reads them), checked once, every fault named."""

import dataclasses
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from model.config import TransformerConfig

_CONFIGS = Path(__file__).parent / "configs"
MAX_PLACEHOLDERS = 6400  # private-use characters of the basic plane
# Of pairs, tokens and updates. No run has as many, and with far more neither its end nor its memory can be reckoned.
_MAX_COUNT = 10**9
# Of a corpus in an epoch. Halved, a hundred lines with slots are few beside a million pairs; doubled, a wrong number
# takes twice the memory.
_MAX_WEIGHT = 1000
_MAX_LR_SCALE = 1000  # at which no network learns any more
_MAX_NAME_CHARACTERS = 128  # as a bundle's manifest has it: to be told here, not by the export


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusConfig:
    """One parallel corpus, as paths below the data directory, or below `model/configs` if they start with "./".

    Attributes:
        source: a file of one sentence a line, plain or gzipped.
        target: the same lines in the target language.
        tsv: instead of both, one file of `source TAB target` lines (further columns are ignored).
        weight: share of the pairs that each epoch sees, 0 to 1000: 0.5 is another random half every epoch, 2 is every
            pair twice.
        hold_out: so many distinct source sentences, with all their translations, are kept out of training.
        limit: only so many pairs, from the first; 0 is all.
        reverse: exchange the sides: the file has the target's language first.
        has_classes: the third column of the tsv says which words may stand for each other, for
            `AugmentationConfig.interchange`; words without one have an empty column.
    """

    source: str = ""
    target: str = ""
    tsv: str = ""
    weight: float = 1.0
    hold_out: int = 0
    limit: int = 0
    reverse: bool = False
    has_classes: bool = False

    def __post_init__(self) -> None:
        faults = []
        if bool(self.tsv) == bool(self.source or self.target) or bool(self.source) != bool(self.target):
            faults.append("either tsv or both source and target must name files")
        if self.has_classes and not self.tsv:
            faults.append("has_classes needs a tsv")
        if self.source and self.source == self.target:
            faults.append("source and target must be two files")
        unprintable = [name for name in ("source", "target", "tsv") if not getattr(self, name).isprintable()]
        faults += [f"{name} must be printable, not {getattr(self, name)!r:.80}" for name in unprintable]
        if not 0 <= self.weight <= _MAX_WEIGHT:
            faults.append(f"weight must be in [0, {_MAX_WEIGHT}], not {self.weight}")
        counts = {"hold_out": self.hold_out, "limit": self.limit}
        faults += [
            f"{name} must be in 0..{_MAX_COUNT}, not {n}" for name, n in counts.items() if not 0 <= n <= _MAX_COUNT
        ]
        if faults:
            raise ValueError("; ".join(faults))

    def resolved(self) -> "CorpusConfig":
        """Returns the corpus with each path that starts with "./" made whole."""
        names = {key: getattr(self, key) for key in ("source", "target", "tsv")}
        ours = {key: str(_CONFIGS / name) for key, name in names.items() if name.startswith("./")}
        return dataclasses.replace(self, **ours)  # type: ignore[arg-type]  # three texts


@dataclass(frozen=True, slots=True, kw_only=True)
class AugmentationConfig:
    """Probabilities, per pair and epoch, of each kind of rewriting in `model.augment`, which exclude each other.

    Attributes:
        upper_case: ALL CAPS on both sides.
        title_case: the source as a heading.
        lower_case: the source in small letters, without its full stop; servers then show the model ALL CAPS so.
        noise: the source with typing errors.
        copy: something that is the same in both languages, such as an address or a number, is put into both sides.
        replace: a name, a number or a code that both sides share becomes another one.
        placeholder: likewise a symbol; servers then show the model symbols in the place of addresses, codes and emoji.
        interchange: a word of a corpus with `has_classes`, with its translation, becomes another one of its class.
        join: share of the examples that are two or three sentences.
    """

    upper_case: float = 0.0
    title_case: float = 0.0
    lower_case: float = 0.0
    noise: float = 0.0
    copy: float = 0.0
    replace: float = 0.0
    placeholder: float = 0.0
    interchange: float = 0.0
    join: float = 0.0

    def __post_init__(self) -> None:
        shares = dataclasses.asdict(self)
        faults = [f"{name} must be in [0, 1], not {share}" for name, share in shares.items() if not 0 <= share <= 1]
        if not faults and sum(shares.values()) > 1:
            faults.append(f"the probabilities must sum up to at most 1, not {sum(shares.values())}")
        if faults:
            raise ValueError("; ".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingConfig:
    """How a model is trained.

    Attributes:
        batch_tokens: padded target tokens of one batch.
        accumulate: batches of one update.
        warmup_steps: updates until the learning rate lr_scale * d_model^-0.5 * min(step^-0.5, step * warmup^-1.5)
            peaks.
        lr_scale: factor of the learning rate, over 0 and at most 1000.
        max_steps: updates after which training ends.
        cooldown_steps: the last updates, over which the learning rate falls to zero in a straight line.
        max_tokens: pairs with a longer side are left out (and counted).
        label_smoothing: probability in [0, 1) that the loss spreads over all tokens but the right one.
        word_dropout: share of decoder input tokens replaced by random ones, so that errors are less exposed at serving.
        glancing: share of the tokens that a one-pass network gets wrong which it is shown while it learns the others,
            in [0, 1); 0 saves a third of the time.
        evaluate_every: updates between two scores on the dev set, and two checkpoints.
        average_last: checkpoints whose weights are averaged into the final model.
        seed: of all that is random.
        optimizer: "adam", or "muon" for the matrices of the layers (`model.optimizer`).
        bf16: use bfloat16 autocast on a GPU, or where it makes the processor faster.
    """

    batch_tokens: int = 4096
    accumulate: int = 1
    warmup_steps: int = 4000
    lr_scale: float = 1.0
    max_steps: int = 100_000
    cooldown_steps: int = 0
    max_tokens: int = 128
    label_smoothing: float = 0.1
    word_dropout: float = 0.0
    glancing: float = 0.0
    evaluate_every: int = 1000
    average_last: int = 5
    seed: int = 1
    optimizer: Literal["adam", "muon"] = "adam"
    bf16: bool = True

    def __post_init__(self) -> None:
        may_be_less = (
            "lr_scale",
            "cooldown_steps",
            "label_smoothing",
            "word_dropout",
            "glancing",
            "seed",
            "optimizer",
            "bf16",
        )
        counts = {name: value for name, value in dataclasses.asdict(self).items() if name not in may_be_less}
        faults = [
            f"{name} must be in 1..{_MAX_COUNT}, not {n}" for name, n in counts.items() if not 1 <= n <= _MAX_COUNT
        ]
        if not 0 <= self.cooldown_steps <= self.max_steps:
            faults.append(f"cooldown_steps must be in 0..{self.max_steps}, not {self.cooldown_steps}")
        if not 0 < self.lr_scale <= _MAX_LR_SCALE:
            faults.append(f"lr_scale must be over 0 and at most {_MAX_LR_SCALE}, not {self.lr_scale}")
        shares = ("label_smoothing", "word_dropout", "glancing")
        faults += [f"{s} must be in [0, 1), not {getattr(self, s)}" for s in shares if not 0 <= getattr(self, s) < 1]
        if self.optimizer not in ("adam", "muon"):
            faults.append(f'optimizer must be "adam" or "muon", not "{self.optimizer}"')
        if faults:
            raise ValueError("; ".join(faults))

    def with_updates(self, count: int) -> "TrainingConfig":
        """Returns the same plan for another number of updates: warmup, cooldown and evaluations keep their shares.

        Raises ValueError if there cannot be so many.
        """

        def share(steps: int) -> int:
            return max(1, steps * count // self.max_steps)

        return dataclasses.replace(
            self,
            max_steps=count,
            warmup_steps=share(self.warmup_steps),
            cooldown_steps=min(count, share(self.cooldown_steps)) if self.cooldown_steps else 0,
            evaluate_every=share(self.evaluate_every),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerConfig:
    """How the SentencePiece vocabulary is learned; its size is the model's `vocab_size`.

    Attributes:
        model_type: of SentencePiece.
        character_coverage: share of the text's characters that are tokens, 0.98 to 1; the others fall back to bytes.
        num_placeholders: symbols, from U+E000 on, that are whole tokens, for `AugmentationConfig.placeholder`.
        normalization: "nmt_nfkc" (SentencePiece's: "m²" becomes "m2") or "invisible", which changes white space and
            control characters alone.
        split_digits: each digit is a token.
        required_characters: are tokens however rare.
        from_first_epoch: learn from what the first epoch shows, weighted and rewritten, not from the bare corpora.
    """

    model_type: Literal["unigram", "bpe"] = "unigram"
    character_coverage: float = 0.9995
    num_placeholders: int = 16
    normalization: Literal["nmt_nfkc", "invisible"] = "nmt_nfkc"
    split_digits: bool = False
    required_characters: str = ""
    from_first_epoch: bool = False

    def __post_init__(self) -> None:
        faults = []
        if self.normalization not in ("nmt_nfkc", "invisible"):
            faults.append(f'normalization must be "nmt_nfkc" or "invisible", not "{self.normalization}"')
        if not 0.98 <= self.character_coverage <= 1:
            faults.append(f"character_coverage must be in [0.98, 1], not {self.character_coverage}")
        if not 0 <= self.num_placeholders <= MAX_PLACEHOLDERS:
            faults.append(f"num_placeholders must be in 0..{MAX_PLACEHOLDERS}, not {self.num_placeholders}")
        if faults:
            raise ValueError("; ".join(faults))


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All of a training run but its data: read with `model.recipe_file.load_recipe`.

    Attributes:
        name: of the model: requests may ask for it, metrics carry it.
        source_language: BCP-47 code.
        target_language: the same.
        model: shape of the network.
        training: how it is trained.
        tokenizer: how its vocabulary is learned.
        augmentation: how pairs are rewritten.
        train: what to learn from, one corpus or more.
        dev: what checkpoints are chosen by, likewise.
    """

    name: str
    source_language: str
    target_language: str
    model: TransformerConfig
    training: TrainingConfig = field(default_factory=TrainingConfig)
    tokenizer: TokenizerConfig = field(default_factory=TokenizerConfig)
    augmentation: AugmentationConfig = field(default_factory=AugmentationConfig)
    train: tuple[CorpusConfig, ...] = ()
    dev: tuple[CorpusConfig, ...] = ()

    def __post_init__(self) -> None:
        faults = [
            f"{name} must have 1..{_MAX_NAME_CHARACTERS} characters, all printable, not {value!r:.80}"
            for name in ("name", "source_language", "target_language")
            if not (0 < len(value := getattr(self, name)) <= _MAX_NAME_CHARACTERS and value.isprintable())
        ]
        if self.training.max_tokens > self.model.max_positions:
            longest, limit = self.training.max_tokens, self.model.max_positions
            faults.append(f"training.max_tokens is {longest}, but model.max_positions is {limit}")
        if self.model.positions == "table":
            faults.append('model.positions "table" is for weights that have one, not for training')
        if self.model.source_vocab_size not in (None, self.model.vocab_size):
            size = self.model.source_vocab_size
            faults.append(f"model.source_vocab_size must be vocab_size, since the tokenizer is joint, not {size}")
        foreign = "word_dropout" if self.model.family == "one_pass" else "glancing"
        if value := getattr(self.training, foreign):
            faults.append(f'training.{foreign} must be 0 where model.family is "{self.model.family}", not {value}')
        if any(corpus.hold_out for corpus in self.dev):
            faults.append("[[dev]] hold_out must be 0: nothing is held out of what checkpoints are chosen by")
        if self.augmentation.placeholder and not self.tokenizer.num_placeholders:
            faults.append("augmentation.placeholder needs tokenizer.num_placeholders, which is 0")
        if self.augmentation.interchange and self.train and not any(corpus.has_classes for corpus in self.train):
            faults.append("augmentation.interchange needs a [[train]] corpus with has_classes")
        if faults:
            raise ValueError("; ".join(faults))
