import logging

import numpy as np
import pytest
import sentencepiece

from export.shortlist import build_shortlist, learn_shortlist, spelling_ids, translation_probabilities
from export.subject import DevSet
from model.checkpoint import Checkpoint

Pairs = list[tuple[list[int], list[int]]]

EOS = 3
VOCAB_SIZE = 80
WORDS = range(10, 40)  # of the source; w is translated with w + 30
NAME = 75  # is copied
UNSEEN = 5


def toy_pairs(count: int = 400, seed: int = 0) -> Pairs:
    """Sentences of words in any order, translated word by word in another order, with a name in some."""
    rng = np.random.default_rng(seed)
    pairs = []
    for i in range(count):
        source = rng.choice(WORDS, rng.integers(2, 8)).tolist()
        target = rng.permutation([word + 30 for word in source]).tolist()
        name = [NAME] if i % 10 == 0 else []
        pairs.append(([*source, *name, EOS], [*name, *target, EOS]))
    return pairs


class TestBuildShortlist:
    def test_the_dictionary_of_a_toy_language_is_recovered(self) -> None:
        shortlist = build_shortlist(toy_pairs(), VOCAB_SIZE, always=[EOS], per_token=2, num_common=0)

        assert shortlist.by_token.shape == (VOCAB_SIZE, 2)
        assert shortlist.by_token.dtype == shortlist.common.dtype == np.int32
        assert shortlist.by_token[WORDS].tolist() == [[word, word + 30] for word in WORDS]

    def test_every_token_is_its_own_first_candidate(self) -> None:
        shortlist = build_shortlist(toy_pairs(), VOCAB_SIZE, always=[EOS], per_token=5, num_common=3)

        assert shortlist.by_token[:, 0].tolist() == list(range(VOCAB_SIZE))

    def test_a_token_that_was_never_seen_may_only_be_copied(self) -> None:
        shortlist = build_shortlist(toy_pairs(), VOCAB_SIZE, always=[EOS], per_token=3, num_common=0)

        assert shortlist.by_token[UNSEEN].tolist() == [UNSEEN] * 3
        assert shortlist.candidates((UNSEEN, EOS)).tolist() == sorted({UNSEEN, *shortlist.by_token[EOS], EOS})

    def test_a_row_with_fewer_candidates_repeats_its_first(self) -> None:
        shortlist = build_shortlist([([6, EOS], [7, EOS])], VOCAB_SIZE, always=[], per_token=4, num_common=0)

        assert shortlist.by_token[6].tolist() == [6, EOS, 7, 6]  # of equals, the smaller id comes first

    def test_common_are_the_most_frequent_target_tokens_and_those_always_wanted(self) -> None:
        pairs = [([6, EOS], [7, 7, 7, 8, 8, 9, EOS])]

        shortlist = build_shortlist(pairs, VOCAB_SIZE, always=[EOS, 0], per_token=2, num_common=2)

        assert shortlist.common.tolist() == [0, EOS, 7, 8]

    def test_tokens_that_never_occur_are_not_common(self) -> None:
        pairs = [([6, EOS], [7, EOS])]

        shortlist = build_shortlist(pairs, VOCAB_SIZE, always=[0], per_token=2, num_common=50)

        assert shortlist.common.tolist() == [0, EOS, 7]

    def test_common_tokens_take_no_place_in_the_table(self) -> None:
        shortlist = build_shortlist(toy_pairs(), VOCAB_SIZE, always=[40, 41], per_token=8, num_common=5)

        assert not np.isin(shortlist.by_token[:, 1:], shortlist.common)[WORDS].any()
        assert {40, 41} <= set(shortlist.candidates((10, EOS)).tolist())

    def test_every_candidate_but_the_token_itself_was_seen_beside_it(self) -> None:
        pairs = toy_pairs(20)

        shortlist = build_shortlist(pairs, VOCAB_SIZE, always=[EOS], per_token=100, num_common=0)

        for token, row in enumerate(shortlist.by_token.tolist()):
            beside = {t for source, target in pairs if token in source for t in target}
            assert set(row) == ({token} | beside) - ({EOS} if token != EOS else set())

    def test_all_tokens_of_the_training_translations_are_candidates_of_a_large_table(self) -> None:
        pairs = toy_pairs(50)

        shortlist = build_shortlist(pairs, VOCAB_SIZE, always=[EOS], per_token=VOCAB_SIZE, num_common=0)

        for source, target in pairs:
            assert set(target) <= set(shortlist.candidates(tuple(source)).tolist())

    @pytest.mark.parametrize("chunk_links", [1, 100, 1000])
    def test_the_size_of_the_chunks_changes_nothing(self, monkeypatch: pytest.MonkeyPatch, chunk_links: int) -> None:
        pairs = toy_pairs()
        expected = build_shortlist(pairs, VOCAB_SIZE, always=[EOS])
        keys, probabilities = translation_probabilities(pairs, VOCAB_SIZE)

        monkeypatch.setattr("export.shortlist._CHUNK_LINKS", chunk_links)

        found = build_shortlist(pairs, VOCAB_SIZE, always=[EOS])
        np.testing.assert_array_equal(found.by_token, expected.by_token)
        np.testing.assert_array_equal(found.common, expected.common)
        found_keys, found_probabilities = translation_probabilities(pairs, VOCAB_SIZE)
        np.testing.assert_array_equal(found_keys, keys)
        np.testing.assert_allclose(found_probabilities, probabilities, rtol=1e-9, atol=1e-15)

    def test_equal_text_gives_equal_tables(self) -> None:
        one, other = (build_shortlist(toy_pairs(), VOCAB_SIZE, always=[EOS]) for _ in range(2))

        np.testing.assert_array_equal(one.by_token, other.by_token)
        np.testing.assert_array_equal(one.common, other.common)

    def test_no_pairs_are_refused(self) -> None:
        with pytest.raises(ValueError, match="no sentence pairs to learn a shortlist from"):
            build_shortlist([], VOCAB_SIZE, always=[EOS])


class TestTranslationProbabilities:
    def test_they_are_those_of_five_rounds_by_hand(self) -> None:
        pairs = toy_pairs(30)
        expected = {(s, t): 1.0 for source, target in pairs for s in [*source, VOCAB_SIZE] for t in target}
        for _ in range(5):
            counts = dict.fromkeys(expected, 0.0)
            for source, target in pairs:
                for t in target:
                    total = sum(expected[s, t] for s in [*source, VOCAB_SIZE])
                    for s in [*source, VOCAB_SIZE]:
                        counts[s, t] += expected[s, t] / total
            totals = np.zeros(VOCAB_SIZE + 1)
            for (s, _), count in counts.items():
                totals[s] += count
            expected = {(s, t): count / totals[s] for (s, t), count in counts.items()}

        keys, probabilities = translation_probabilities(pairs, VOCAB_SIZE)

        assert [divmod(key, VOCAB_SIZE) for key in keys.tolist()] == sorted(expected)
        np.testing.assert_allclose(probabilities, [expected[key] for key in sorted(expected)])

    def test_those_of_each_source_token_sum_up_to_one(self) -> None:
        keys, probabilities = translation_probabilities(toy_pairs(), VOCAB_SIZE)

        totals = np.bincount(keys // VOCAB_SIZE, probabilities)
        np.testing.assert_allclose(totals[[*WORDS, NAME, EOS, VOCAB_SIZE]], 1.0)


class TestLearnShortlist:
    def test_the_training_translations_are_covered(self, tiny_checkpoint: Checkpoint, dev_set: DevSet) -> None:
        tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tiny_checkpoint.tokenizer)
        pairs = list(zip(dev_set.sources, dev_set.references, strict=True))

        shortlist = learn_shortlist(pairs, tiny_checkpoint)

        assert len(shortlist.by_token) == tiny_checkpoint.config.vocab_size
        covered = [
            np.isin([*tokenizer.encode(target), EOS], shortlist.candidates((*tokenizer.encode(source), EOS))).mean()
            for source, target in pairs
        ]
        assert np.mean(covered) > 0.95

    def test_pairs_that_the_model_was_not_trained_with_are_left_out(
        self, tiny_checkpoint: Checkpoint, dev_set: DevSet, caplog: pytest.LogCaptureFixture
    ) -> None:
        caplog.set_level(logging.INFO, "export.shortlist")
        pairs = [pair for pair in zip(dev_set.sources, dev_set.references, strict=True) if max(map(len, pair)) < 60]
        long = " ".join(dev_set.sources[:10])

        found = learn_shortlist([*pairs, (long, "x"), ("x", long)], tiny_checkpoint)

        np.testing.assert_array_equal(found.by_token, learn_shortlist(pairs, tiny_checkpoint).by_token)
        first, second = caplog.messages
        assert pairs
        assert f"learned from {len(pairs)} pairs, 2 left out over 64 tokens" in first
        assert f"learned from {len(pairs)} pairs, 0 left out" in second

    def test_no_text_is_refused(self, tiny_checkpoint: Checkpoint) -> None:
        with pytest.raises(ValueError, match="no sentence pairs"):
            learn_shortlist([], tiny_checkpoint)

    def test_any_text_can_be_spelled(self, tiny_checkpoint: Checkpoint) -> None:
        tokenizer = sentencepiece.SentencePieceProcessor(model_proto=tiny_checkpoint.tokenizer)

        ids = spelling_ids(tokenizer)

        pieces = {tokenizer.id_to_piece(i) for i in ids}
        assert {"<unk>", "</s>", "<0x00>", "<0xFF>", "\ue000", "\ue00f", "▁", "e"} <= pieces
        assert not {"<pad>", "<s>"} & pieces
