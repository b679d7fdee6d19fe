import dataclasses
import gzip
import logging
import random
import re
import subprocess
import sys
import tracemalloc
import unicodedata
from pathlib import Path

import pytest
import sentencepiece
import torch

from export.subject import DevSet
from model.augment import Augmentation, Pair
from model.checkpoint import Checkpoint
from model.config import TransformerConfig
from model.data import (
    Batch,
    Corpus,
    epoch_batches,
    epoch_pairs,
    hold_out,
    make_batch,
    pad,
    read_corpus,
    without_held_out,
)
from model.recipe import AugmentationConfig, CorpusConfig, TrainingConfig

CONFIG = TransformerConfig(vocab_size=700)


def rows(tensor: torch.Tensor) -> list[list[int]]:
    return [[int(i) for i in row] for row in tensor]


def unpadded(batch: Batch) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    sides = zip(rows(batch.source), rows(batch.target_out), strict=True)
    return [(tuple(i for i in s if i != CONFIG.pad_id), tuple(i for i in t if i != CONFIG.pad_id)) for s, t in sides]


def test_text_for_which_there_is_no_memory_is_named(tmp_path: Path) -> None:
    """The lines of a gzip file of a megabyte may take gigabytes."""
    with gzip.open(tmp_path / "pairs.tsv.gz", "wb", 1) as file:
        for _ in range(20):
            file.write(b"a\tb\n" * 1_000_000)
    script = (
        "import resource; from pathlib import Path; from model.data import CorpusConfig, read_corpus\n"
        "used = int(Path('/proc/self/statm').read_text().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20), -1))\n"
        f"read_corpus(CorpusConfig(tsv='pairs.tsv.gz'), Path({str(tmp_path)!r}))"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)

    fault = done.stderr.rstrip("\n").split("\n")[-1]
    assert re.fullmatch(rf"ValueError: {tmp_path}/pairs\.tsv\.gz: the memory is full after \d{{6,}} lines", fault), (
        fault
    )


class TestReading:
    def test_a_pair_of_files_is_read_line_by_line(self, tmp_path: Path) -> None:
        (tmp_path / "a.en").write_text("one\n two \r\nthree", encoding="utf-8")
        (tmp_path / "a.de").write_text("eins\nzwei\ndrei\n", encoding="utf-8")

        corpus = read_corpus(CorpusConfig(source="a.en", target="a.de", weight=0.5), tmp_path)

        assert corpus.pairs == [("one", "eins"), ("two", "zwei"), ("three", "drei")]
        assert corpus.held_out == []
        assert corpus.weight == 0.5

    def test_a_tsv_file_is_read_and_further_columns_are_ignored(self, tmp_path: Path) -> None:
        (tmp_path / "a.tsv").write_text("one\teins\ntwo \t zwei\tCC-BY\t#12\nthree\n", encoding="utf-8")

        assert read_corpus(CorpusConfig(tsv="a.tsv"), tmp_path).pairs == [("one", "eins"), ("two", "zwei")]
        exchanged = read_corpus(CorpusConfig(tsv="a.tsv", reverse=True), tmp_path)
        assert exchanged.pairs == [("eins", "one"), ("zwei", "two")]

    def test_a_name_may_begin_with_the_current_directory(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "copying.en-de.tsv").write_text("one\teins\n", encoding="utf-8")  # one of that name ships
        monkeypatch.chdir(tmp_path)

        assert read_corpus(CorpusConfig(tsv="./copying.en-de.tsv"), Path()).pairs == [("one", "eins")]

    def test_a_limit_takes_the_first_pairs(self, tmp_path: Path) -> None:
        (tmp_path / "a.tsv").write_text("one\teins\ntwo\tzwei\nthree\tdrei\n", encoding="utf-8")

        assert read_corpus(CorpusConfig(tsv="a.tsv", limit=2), tmp_path).pairs == [("one", "eins"), ("two", "zwei")]

    def test_no_pair_behind_a_limit_is_kept_or_reported(self, tmp_path: Path) -> None:
        (tmp_path / "a.tsv").write_text("one\teins\nbroken\ntwo\tzwei\n" + "more\tmehr\nbroken\n" * 100_000)

        tracemalloc.start()
        corpus = read_corpus(CorpusConfig(tsv="a.tsv", limit=2), tmp_path)
        most_bytes = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

        assert (len(corpus.pairs), corpus.broken) == (2, [2])
        assert most_bytes < 1_000_000

    def test_a_limit_hides_no_difference_between_the_files(self, tmp_path: Path) -> None:
        (tmp_path / "a.en").write_text("one\ntwo\n", encoding="utf-8")
        (tmp_path / "a.de").write_text("eins\n", encoding="utf-8")

        with pytest.raises(ValueError, match=r"a\.en has 2 lines, a\.de has 1"):
            read_corpus(CorpusConfig(source="a.en", target="a.de", limit=1), tmp_path)

    def test_gzipped_files_are_read_alike(self, tmp_path: Path) -> None:
        (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"one\teins\n"))
        (tmp_path / "a.en.gz").write_bytes(gzip.compress(b"two\n"))
        (tmp_path / "a.de").write_bytes(b"zwei\n")

        assert read_corpus(CorpusConfig(tsv="a.tsv.gz"), tmp_path).pairs == [("one", "eins")]
        assert read_corpus(CorpusConfig(source="a.en.gz", target="a.de"), tmp_path).pairs == [("two", "zwei")]

    def test_only_line_feeds_end_a_line(self, tmp_path: Path) -> None:
        (tmp_path / "a.en").write_text("a\u2028b\nc\x85d\n", encoding="utf-8")
        (tmp_path / "a.de").write_text("e\nf\x0bg\n", encoding="utf-8")

        pairs = read_corpus(CorpusConfig(source="a.en", target="a.de"), tmp_path).pairs

        assert pairs == [("a\u2028b", "e"), ("c\x85d", "f\x0bg")]

    def test_broken_lines_of_a_tsv_file_are_counted_and_left_out(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        lines = [
            b"one\teins",
            b"no target",
            b"\tno source",
            b"\tno source\tCC-BY",
            b"empty target\t ",
            b"",
            b"bad \xff\tx",
            b"two\tzwei",
        ]
        (tmp_path / "a.tsv").write_bytes(b"\n".join(lines))

        with caplog.at_level(logging.WARNING):
            pairs = read_corpus(CorpusConfig(tsv="a.tsv"), tmp_path).pairs

        assert pairs == [("one", "eins"), ("two", "zwei")]
        assert caplog.messages == ["a.tsv: left out 6 broken lines of 8, the first is line 2"]

    def test_a_broken_line_of_a_pair_of_files_takes_its_partner_along(
        self, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        (tmp_path / "a.en").write_bytes(b"one\n\xc3\x28\nthree\n\nfive\n")
        (tmp_path / "a.de").write_bytes(b"eins\nzwei\n\xff\nvier\nf\xc3\xbcnf\n")

        pairs = read_corpus(CorpusConfig(source="a.en", target="a.de"), tmp_path).pairs

        assert pairs == [("one", "eins"), ("five", "fünf")]
        assert caplog.messages == ["a.en: left out 3 broken lines of 5, the first is line 2"]

    def test_whole_files_are_reported_by_nothing(self, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
        (tmp_path / "a.tsv").write_text("one\teins\n", encoding="utf-8")

        read_corpus(CorpusConfig(tsv="a.tsv"), tmp_path)

        assert caplog.messages == []

    def test_files_of_unequal_length_are_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.en").write_text("one\ntwo\n", encoding="utf-8")
        (tmp_path / "a.de").write_text("eins\n", encoding="utf-8")

        with pytest.raises(ValueError, match=r"a\.en has 2 lines, a\.de has 1"):
            read_corpus(CorpusConfig(source="a.en", target="a.de"), tmp_path)

    def test_a_cut_gzipped_file_is_refused(self, tmp_path: Path) -> None:
        (tmp_path / "a.tsv.gz").write_bytes(gzip.compress(b"one\teins\n" * 1000)[:-12])

        with pytest.raises(ValueError, match=r"a\.tsv\.gz is damaged"):
            read_corpus(CorpusConfig(tsv="a.tsv.gz"), tmp_path)

    def test_a_missing_file_is_an_os_error(self, tmp_path: Path) -> None:
        with pytest.raises(FileNotFoundError, match=r"none\.tsv"):
            read_corpus(CorpusConfig(tsv="none.tsv"), tmp_path)


class TestHoldOut:
    PAIRS: tuple[Pair, ...] = tuple((f"Sentence {i}.", f"Satz {i}.") for i in range(50))

    def test_the_choice_does_not_depend_on_the_order(self) -> None:
        shuffled = random.Random(0).sample(self.PAIRS, len(self.PAIRS))

        kept, held_out = hold_out(list(self.PAIRS), 10)
        other_kept, other_held_out = hold_out(shuffled, 10)

        assert len(held_out) == 10
        assert set(held_out) == set(other_held_out)
        assert set(kept) == set(other_kept) == set(self.PAIRS) - set(held_out)

    def test_the_choice_only_grows_with_the_count(self) -> None:
        few, many = (set(hold_out(list(self.PAIRS), count)[1]) for count in (5, 20))

        assert few < many

    def test_a_sentence_goes_with_all_its_translations_and_near_duplicates(self) -> None:
        pairs = [p for s, t in self.PAIRS for p in ((s, t), (s, f"{t}!"), (s.upper(), t), (f"  {s[:-1]} !?", t))]

        kept, held_out = hold_out(pairs, 10)

        assert len(held_out) == 40
        assert len(kept) == 160
        numbers = [{source.lower().strip(" .!?") for source, _ in side} for side in (kept, held_out)]
        assert not numbers[0] & numbers[1]

    def test_the_order_of_the_pairs_is_kept(self) -> None:
        kept, held_out = hold_out(list(self.PAIRS), 10)

        assert kept == [p for p in self.PAIRS if p in kept]
        assert held_out == [p for p in self.PAIRS if p in held_out]

    def test_nothing_is_held_out_unless_asked_for(self) -> None:
        assert hold_out(list(self.PAIRS), 0) == (list(self.PAIRS), [])

    def test_a_letter_and_its_composition_are_one(self) -> None:
        pairs = [(unicodedata.normalize(form, f"Caf\u00e9 {n}"), form) for n in range(10) for form in ("NFC", "NFD")]

        kept, held_out = hold_out(pairs, 5)

        assert (len(kept), len(held_out)) == (10, 10)

    def test_what_one_corpus_holds_out_leaves_the_others_too(self) -> None:
        first = Corpus(pairs=[("A", "a")], held_out=[("I can't do this.", "x")], weight=1.0)
        second = Corpus(pairs=[("I can’t do this!", "y"), ("B", "b")], held_out=[], weight=0.5)

        clean = without_held_out([first, second])

        assert [corpus.pairs for corpus in clean] == [[("A", "a")], [("B", "b")]]
        assert clean[0].held_out == first.held_out
        assert [corpus.weight for corpus in clean] == [1.0, 0.5]

    def test_none_of_a_corpus_that_is_held_out_is_among_its_training_pairs(self, tmp_path: Path) -> None:
        lines = [f"{s}\t{t}\n{s.upper()}\t{t}\n" for s, t in self.PAIRS]
        (tmp_path / "a.tsv").write_text("".join(lines), encoding="utf-8")

        corpus = read_corpus(CorpusConfig(tsv="a.tsv", hold_out=7), tmp_path)

        assert len(corpus.held_out) == 14
        assert not {s.lower() for s, _ in corpus.pairs} & {s.lower() for s, _ in corpus.held_out}


class TestBatches:
    TRAINING = TrainingConfig(batch_tokens=300, max_tokens=60)

    @pytest.fixture
    def tokenizer(self, tiny_checkpoint: Checkpoint) -> sentencepiece.SentencePieceProcessor:
        return sentencepiece.SentencePieceProcessor(model_proto=tiny_checkpoint.tokenizer)

    @pytest.fixture
    def corpus(self, dev_set: DevSet) -> Corpus:
        return Corpus(pairs=list(zip(dev_set.sources, dev_set.references, strict=True)), held_out=[], weight=1.0)

    def batches(
        self,
        corpus: Corpus,
        tokenizer: sentencepiece.SentencePieceProcessor,
        epoch: int = 0,
        augmentation: AugmentationConfig | None = None,
        **changes: int,
    ) -> list[Batch]:
        augment = Augmentation(augmentation or AugmentationConfig(), 16)
        training = dataclasses.replace(self.TRAINING, **changes)  # type: ignore[arg-type]
        pairs = epoch_pairs([corpus], augment, training, epoch)
        return epoch_batches(pairs, tokenizer, CONFIG, training, epoch)

    def test_padding_stands_behind_and_special_tokens_where_they_belong(self) -> None:
        batch = make_batch([([10, 11, 12], [20]), ([13], [21, 22])], CONFIG)

        assert batch.source.dtype == batch.target_in.dtype == torch.int64
        assert rows(batch.source) == [[10, 11, 12, 3], [13, 3, 0, 0]]
        assert rows(batch.target_in) == [[2, 20, 0], [2, 21, 22]]
        assert rows(batch.target_out) == [[20, 3, 0], [21, 22, 3]]

    def test_rows_are_padded_to_the_longest(self) -> None:
        assert rows(pad([[5], [6, 7, 8], []], pad_id=9)) == [[5, 9, 9], [6, 7, 8], [9, 9, 9]]

    def test_the_token_budget_is_kept_on_both_sides(
        self, corpus: Corpus, tokenizer: sentencepiece.SentencePieceProcessor
    ) -> None:
        for batch in self.batches(corpus, tokenizer):
            assert batch.source.numel() <= 300
            assert batch.target_in.numel() <= 300
            assert batch.target_in.shape == batch.target_out.shape

    def test_batches_are_filled_with_sentences_of_like_length(
        self, corpus: Corpus, tokenizer: sentencepiece.SentencePieceProcessor
    ) -> None:
        batches = self.batches(corpus, tokenizer)

        padding = sum(int((batch.target_out == CONFIG.pad_id).sum()) for batch in batches)
        assert padding / sum(batch.target_out.numel() for batch in batches) < 0.1
        assert len(batches) > 20

    def test_an_epoch_holds_every_pair_once(
        self, corpus: Corpus, tokenizer: sentencepiece.SentencePieceProcessor
    ) -> None:
        sides = [tokenizer.encode([pair[side] for pair in corpus.pairs]) for side in (0, 1)]
        expected = [
            ((*source, 3), (*target, 3))
            for source, target in zip(*sides, strict=True)
            if max(len(source), len(target)) < self.TRAINING.max_tokens
        ]

        found = [pair for batch in self.batches(corpus, tokenizer) for pair in unpadded(batch)]

        assert sorted(found) == sorted(expected)

    def test_the_same_seed_and_epoch_give_the_same_batches(
        self, corpus: Corpus, tokenizer: sentencepiece.SentencePieceProcessor
    ) -> None:
        augmentation = AugmentationConfig(copy=0.3, placeholder=0.3)

        def run(**changes: int) -> list[list[list[int]]]:
            return [
                rows(batch.source) for batch in self.batches(corpus, tokenizer, augmentation=augmentation, **changes)
            ]

        assert run(epoch=2) == run(epoch=2)
        assert run(epoch=2) != run(epoch=3)
        assert run(seed=1) != run(seed=2)

    def test_long_pairs_are_left_out_and_counted_once(
        self, corpus: Corpus, tokenizer: sentencepiece.SentencePieceProcessor, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO):
            batches = [self.batches(corpus, tokenizer, epoch=epoch, max_tokens=20) for epoch in (0, 1)]

        left = sum(batch.source.shape[0] for batch in batches[0])
        assert all(side.shape[1] <= 20 for batch in batches[0] for side in (batch.source, batch.target_in))
        assert 0 < left < 200
        assert caplog.messages == [f"left out {200 - left} pairs over 20 tokens"]

    def test_a_pair_over_the_budget_is_a_batch_of_its_own(
        self, corpus: Corpus, tokenizer: sentencepiece.SentencePieceProcessor
    ) -> None:
        assert all(batch.source.shape[0] == 1 for batch in self.batches(corpus, tokenizer, batch_tokens=1))

    @pytest.mark.parametrize(("weight", "expected"), [(0.25, 50), (1.0, 200), (2.5, 500)])
    def test_the_weight_decides_how_many_pairs_an_epoch_sees(
        self, corpus: Corpus, tokenizer: sentencepiece.SentencePieceProcessor, weight: float, expected: int
    ) -> None:
        weighted = dataclasses.replace(corpus, weight=weight)

        batches = self.batches(weighted, tokenizer, max_tokens=500, batch_tokens=500)

        assert sum(batch.source.shape[0] for batch in batches) == expected

    def test_part_of_a_corpus_is_another_part_every_epoch(
        self, corpus: Corpus, tokenizer: sentencepiece.SentencePieceProcessor
    ) -> None:
        half = dataclasses.replace(corpus, weight=0.5)

        seen = [{p for b in self.batches(half, tokenizer, epoch=epoch) for p in unpadded(b)} for epoch in (0, 1)]

        assert seen[0] - seen[1]
        assert seen[1] - seen[0]
