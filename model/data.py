"""Parallel text: read, held out, tokenised, and batched by token count, in an order that a seed decides."""

import dataclasses
import hashlib
import itertools
import logging
import random
import re
import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import sentencepiece
import torch
from torch import Tensor

from model.augment import Augmentation, Pair
from model.config import TransformerConfig
from model.files import read_lines
from model.recipe import CorpusConfig, TrainingConfig

_Row = tuple[str | None, str | None, str]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded int64 ids: `source` [B, S], `target_in` [B, T] from bos, `target_out` [B, T] to eos."""

    source: Tensor
    target_in: Tensor
    target_out: Tensor


@dataclass(frozen=True, slots=True)
class Corpus:
    """Pairs for training and those held out, with the weight of the former in an epoch, and the classes of words.

    `broken` are the numbers of the lines that were left out, from 1, in order.
    """

    pairs: list[Pair]
    held_out: list[Pair]
    weight: float
    classes: dict[Pair, str] = dataclasses.field(default_factory=dict)
    broken: list[int] = dataclasses.field(default_factory=list)


def read_corpus(config: CorpusConfig, data: Path) -> Corpus:
    """Reads one corpus up to its limit. It reports broken lines (no text or no UTF-8 on a side), and leaves them out.

    Args:
        config: of the corpus. Names that start with "./" are paths below `data`, too; `CorpusConfig.resolved` makes
            them paths of ours.
        data: directory that its paths are relative to.

    Raises:
        OSError: a file cannot be read.
        ValueError: a file is damaged or has a line that is too long (`model.files`), no line is whole, the two files of
            a pair differ in their number of lines, or there is no memory for all lines.
    """
    name = config.tsv or config.source
    pairs: list[Pair] = []
    classes: dict[Pair, str] = {}
    broken: list[int] = []
    number = 0
    try:
        for number, (source, target, word_class) in enumerate(_rows(config, data), 1):
            if len(pairs) == config.limit > 0:
                continue  # to the ends, which must be those of whole files with the same number of lines
            if not (source and target):
                broken.append(number)
                continue
            pairs.append((target, source) if config.reverse else (source, target))
            if config.has_classes and word_class:
                classes[pairs[-1]] = word_class
    except MemoryError as error:  # of a small gzip file with many lines, say
        raise ValueError(f"{data / name}: the memory is full after {number} lines") from error
    if not pairs:
        raise ValueError(f"{data / name}: none of its {number} lines has text in UTF-8 on both sides")
    if broken:
        logger.warning("%s: left out %d broken lines of %d, the first is line %d", name, len(broken), number, broken[0])
    kept, held_out = hold_out(pairs, config.hold_out)
    return Corpus(pairs=kept, held_out=held_out, weight=config.weight, classes=classes, broken=broken)


def hold_out(pairs: list[Pair], count: int) -> tuple[list[Pair], list[Pair]]:
    """Splits off every pair of `count` source sentences, chosen by hash, so that the choice survives any reordering.

    Sentences that differ only in case or punctuation count as one.

    Returns:
        The pairs that remain, and those held out.
    """
    keys = {source: _hold_out_key(source) for source, _ in pairs}
    chosen = set(sorted(set(keys.values()))[:count])
    return [p for p in pairs if keys[p[0]] not in chosen], [p for p in pairs if keys[p[0]] in chosen]


def without_held_out(corpora: list[Corpus]) -> list[Corpus]:
    """Leaves out of each corpus what another one holds out."""
    held_out = {_hold_out_key(source) for corpus in corpora for source, _ in corpus.held_out}
    return [
        dataclasses.replace(corpus, pairs=[p for p in corpus.pairs if _hold_out_key(p[0]) not in held_out])
        for corpus in corpora
    ]


def word_classes(corpora: list[Corpus]) -> dict[Pair, str]:
    """Returns the classes of all corpora's words."""
    return {pair: word_class for corpus in corpora for pair, word_class in corpus.classes.items()}


def epoch_pairs(corpora: list[Corpus], augmentation: Augmentation, training: TrainingConfig, epoch: int) -> list[Pair]:
    """Returns what one epoch shows, weighted and rewritten; the same for the same seed and epoch."""
    rng = random.Random(f"{training.seed}/{epoch}/pairs")
    max_characters = 2 * training.max_tokens  # so that what is joined is seldom too long
    return [
        pair
        for corpus in corpora
        for pair in augmentation.join([augmentation(pair, rng) for pair in _sample(corpus, rng)], max_characters, rng)
    ]


def epoch_batches(
    pairs: list[Pair],
    tokenizer: sentencepiece.SentencePieceProcessor,
    model: TransformerConfig,
    training: TrainingConfig,
    epoch: int,
) -> list[Batch]:
    """Returns the batches of one epoch; the same for the same seed and epoch, whatever came before."""
    rng = random.Random(f"{training.seed}/{epoch}/batches")
    sources = tokenizer.encode([source for source, _ in pairs])
    targets = tokenizer.encode([target for _, target in pairs])
    examples = [(s, t) for s, t in zip(sources, targets, strict=True) if _fits(s, t, training.max_tokens)]
    if epoch == 0 and len(examples) < len(pairs):
        logger.info("left out %d pairs over %d tokens", len(pairs) - len(examples), training.max_tokens)
    rng.shuffle(examples)
    examples.sort(key=lambda example: (len(example[1]) // 2, len(example[0]) // 2))  # stable: random within a length
    groups = list(_group_by_tokens(examples, training.batch_tokens))
    rng.shuffle(groups)
    return [make_batch(group, model) for group in groups]


def has_examples(
    corpora: list[Corpus], tokenizer: sentencepiece.SentencePieceProcessor, training: TrainingConfig
) -> bool:
    """Says whether there is any pair to train with: of a corpus that epochs see, and neither empty nor too long."""
    return any(
        _fits(tokenizer.encode(source), tokenizer.encode(target), training.max_tokens)
        for corpus in corpora
        if round(corpus.weight * len(corpus.pairs)) > 0
        for source, target in corpus.pairs
    )


def make_batch(examples: list[tuple[list[int], list[int]]], model: TransformerConfig) -> Batch:
    """Pads (source, target) ids, both without special tokens, into one batch."""
    return Batch(
        source=pad([[*s, model.eos_id] for s, _ in examples], model.pad_id),
        target_in=pad([[model.bos_id, *t] for _, t in examples], model.pad_id),
        target_out=pad([[*t, model.eos_id] for _, t in examples], model.pad_id),
    )


def pad(rows: list[list[int]], pad_id: int) -> Tensor:
    """Returns int64 [B, longest row]."""
    longest = max(len(row) for row in rows)
    return torch.tensor([row + [pad_id] * (longest - len(row)) for row in rows])


def _rows(config: CorpusConfig, data: Path) -> Iterator[_Row]:
    """Yields both sides of each line and the class of words; what is missing or not UTF-8 is None."""
    if config.tsv:
        yield from (_split_columns(line) for _, line in _lines(data / config.tsv))
        return
    names, ends = (config.source, config.target), [0, 0]
    for sides in itertools.zip_longest(*(_lines(data / name) for name in names), fillvalue=(0, None)):
        ends = [max(end, number) for end, (number, _) in zip(ends, sides, strict=True)]
        source, target = (text and text.strip() for _, text in sides)
        yield source, target, ""
    if ends[0] != ends[1]:
        raise ValueError(f"{names[0]} has {ends[0]} lines, {names[1]} has {ends[1]}")


def _lines(path: Path) -> Iterator[tuple[int, str | None]]:
    """Yields numbers, from 1, and lines without their ends, None for one that is not UTF-8."""
    for number, line in enumerate(read_lines(path), 1):
        try:
            yield number, line.decode("utf-8").rstrip("\r\n")
        except UnicodeDecodeError:
            yield number, None


def _split_columns(line: str | None) -> _Row:
    columns = [*(line or "").split("\t", 3), ""]
    return (columns[0].strip(), columns[1].strip(), columns[2].strip()) if len(columns) > 2 else (None, None, "")


def _hold_out_key(source: str) -> str:
    composed = unicodedata.normalize("NFC", source)  # combining marks would count as punctuation
    normal = re.sub(r"\W+", " ", composed.casefold()).strip()
    return hashlib.sha256(normal.encode()).hexdigest()


def _sample(corpus: Corpus, rng: random.Random) -> Iterable[Pair]:
    whole, part = divmod(corpus.weight, 1.0)
    for _ in range(int(whole)):
        yield from rng.sample(corpus.pairs, len(corpus.pairs))
    yield from rng.sample(corpus.pairs, round(part * len(corpus.pairs)))


def _fits(source: list[int], target: list[int], limit: int) -> bool:
    return 0 < len(source) < limit and 0 < len(target) < limit


def _group_by_tokens(
    examples: list[tuple[list[int], list[int]]], batch_tokens: int
) -> Iterator[list[tuple[list[int], list[int]]]]:
    group: list[tuple[list[int], list[int]]] = []
    longest = 0
    for source, target in examples:
        longest = max(longest, len(source) + 1, len(target) + 1)
        if group and longest * (len(group) + 1) > batch_tokens:
            yield group
            group, longest = [], max(len(source), len(target)) + 1
        group.append((source, target))
    if group:
        yield group
