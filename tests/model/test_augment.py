import random
from collections import Counter

import pytest

from model.augment import PLACEHOLDER_START, Augmentation, copy, lower_case, placeholder, title_case, upper_case
from model.config import AugmentationConfig

PAIR = ("A dog runs to Berlin.", "Ein Hund läuft nach Berlin.")
NUM_PLACEHOLDERS = 4
SYMBOLS = {chr(PLACEHOLDER_START + i) for i in range(NUM_PLACEHOLDERS)}


def test_upper_case_changes_both_sides() -> None:
    assert upper_case(PAIR, random.Random(0)) == ("A DOG RUNS TO BERLIN.", "EIN HUND LÄUFT NACH BERLIN.")


def test_title_case_changes_the_source_alone() -> None:
    assert title_case(("the McDonald's  sign", "Das Schild"), random.Random(0)) == (
        "The McDonald's  Sign",
        "Das Schild",
    )


def test_lower_case_takes_the_full_stop_of_the_source_alone() -> None:
    assert lower_case(PAIR, random.Random(0)) == ("a dog runs to berlin", PAIR[1])


def test_copy_attaches_the_same_token_to_both_sides() -> None:
    rng = random.Random(0)

    for _ in range(200):
        source, target = copy(PAIR, rng)
        before = source.removesuffix(PAIR[0]), target.removesuffix(PAIR[1])
        behind = source.removeprefix(PAIR[0]), target.removeprefix(PAIR[1])
        added = before if source.endswith(PAIR[0]) else behind
        assert added[0] == added[1]
        assert added[0].strip()


def test_copy_makes_urls_addresses_numbers_codes_dates_and_emoji() -> None:
    rng = random.Random(0)
    tokens = {copy(("", ""), rng)[0].strip() for _ in range(500)}

    assert any(token.startswith("https://") for token in tokens)
    assert any("@" in token for token in tokens)
    assert any(token.isdecimal() for token in tokens)
    assert any(token.count(".") == 2 and token.replace(".", "").isdecimal() for token in tokens)
    assert any(ord(token[0]) > 0xFFFF for token in tokens)


def test_placeholder_replaces_a_word_that_both_sides_share() -> None:
    pair = ("Anna visits Paris", "Anna besucht Paris")

    seen = {placeholder(pair, random.Random(seed), NUM_PLACEHOLDERS) for seed in range(100)}

    names = {("Anna" in source, "Paris" in source) for source, _ in seen}
    assert names == {(True, False), (False, True)}
    for source, target in seen:
        assert source.replace(" visits ", " besucht ") == target
        assert len(SYMBOLS & set(source)) == 1


@pytest.mark.parametrize("pair", [("a a dog", "a Hund"), ("He is 5", "5 5 er"), ("yes", "ja")])
def test_placeholder_stands_beside_a_pair_without_a_word_to_replace(pair: tuple[str, str]) -> None:
    source, target = placeholder(pair, random.Random(0), NUM_PLACEHOLDERS)

    (symbol,) = SYMBOLS & set(source)
    assert source.replace(symbol, "").strip() == pair[0]
    assert target.replace(symbol, "").strip() == pair[1]


def test_placeholder_uses_every_symbol_of_the_vocabulary_and_no_other() -> None:
    used = {ch for seed in range(100) for ch in placeholder(PAIR, random.Random(seed), NUM_PLACEHOLDERS)[0]}

    assert {ch for ch in used if ord(ch) >= PLACEHOLDER_START} == SYMBOLS


def test_rewritings_come_as_often_as_configured() -> None:
    shares = {"upper_case": 0.1, "title_case": 0.2, "lower_case": 0.15, "copy": 0.1, "placeholder": 0.15}
    augment = Augmentation(AugmentationConfig(**shares), NUM_PLACEHOLDERS)
    pair = ("a dog runs.", "Ein Hund läuft.")
    rng, draws = random.Random(1), 20_000

    found = Counter(_kind(pair, augment(pair, rng)) for _ in range(draws))

    for kind, share in {**shares, "none": 0.3}.items():
        assert found[kind] / draws == pytest.approx(share, abs=0.015)  # four standard deviations


def test_one_rewriting_alone_can_be_certain() -> None:
    augment = Augmentation(AugmentationConfig(lower_case=1.0), NUM_PLACEHOLDERS)

    assert all(augment(PAIR, random.Random(seed)) == lower_case(PAIR, random.Random(0)) for seed in range(50))


def test_a_pair_stays_as_it_is_by_default() -> None:
    augment = Augmentation(AugmentationConfig(), NUM_PLACEHOLDERS)

    assert all(augment(PAIR, random.Random(seed)) == PAIR for seed in range(50))


def test_rewritings_are_the_same_for_the_same_seed() -> None:
    config = AugmentationConfig(upper_case=0.2, title_case=0.2, lower_case=0.2, copy=0.2, placeholder=0.2)
    augment = Augmentation(config, NUM_PLACEHOLDERS)

    first, second, other = ([augment(PAIR, rng) for _ in range(100)] for rng in map(random.Random, (3, 3, 4)))

    assert first == second
    assert first != other


def _kind(pair: tuple[str, str], rewritten: tuple[str, str]) -> str:
    fixed = {rewrite(pair, random.Random(0)): rewrite.__name__ for rewrite in (upper_case, title_case, lower_case)}
    if rewritten == pair:
        return "none"
    if rewritten in fixed:
        return fixed[rewritten]
    return "placeholder" if SYMBOLS & set(rewritten[0]) else "copy"
