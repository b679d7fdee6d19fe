import random
import re
from collections import Counter
from pathlib import Path

import pytest

from model.augment import (
    Augmentation,
    copy,
    fill_slots,
    lower_case,
    placeholder,
    replace,
    title_case,
    upper_case,
)
from model.data import read_corpus
from model.recipe import AugmentationConfig, CorpusConfig
from model.verbatim import PLACEHOLDER_START

PAIR = ("A dog runs to Berlin.", "Ein Hund läuft nach Berlin.")
NUM_PLACEHOLDERS = 4
SYMBOLS = {chr(PLACEHOLDER_START + i) for i in range(NUM_PLACEHOLDERS)}


def test_upper_case_writes_sharp_s_as_two() -> None:
    assert upper_case(("street", "Straße"), random.Random(0)) == ("STREET", "STRASSE")


def test_upper_case_changes_both_sides() -> None:
    assert upper_case(PAIR, random.Random(0)) == ("A DOG RUNS TO BERLIN.", "EIN HUND LÄUFT NACH BERLIN.")


def test_title_case_changes_the_source_alone() -> None:
    assert title_case(("the McDonald's  sign", "Das Schild"), random.Random(0)) == (
        "The McDonald's  Sign",
        "Das Schild",
    )


def test_lower_case_writes_some_sharp_s_as_capitals_do() -> None:
    written = {lower_case(("Die Straße.", "The street."), random.Random(seed)) for seed in range(20)}

    assert written == {("die straße", "The street."), ("die strasse", "The street.")}


def test_lower_case_takes_the_full_stop_of_the_source_alone() -> None:
    assert lower_case(PAIR, random.Random(0)) == ("a dog runs to berlin", PAIR[1])


def test_copy_adds_the_same_text_to_both_sides() -> None:
    rng = random.Random(0)

    for _ in range(500):
        source, target = copy(PAIR, rng)
        added = source.replace("A dog runs to Berlin", "|"), target.replace("Ein Hund läuft nach Berlin", "|")
        assert added[0] == added[1]
        assert len(added[0]) > 2


@pytest.mark.parametrize("pair", [("Where?", "Wo?"), ("Wait...", "Warte..."), ("Go", "Geh!"), ("", "")])
def test_copy_leaves_the_ends_of_sentences_whole(pair: tuple[str, str]) -> None:
    for seed in range(50):
        for side, rewritten in zip(pair, copy(pair, random.Random(seed)), strict=True):
            assert side.rstrip("?!") in rewritten
            assert rewritten.count(side[-1:]) >= 1


def test_replace_puts_the_same_text_for_a_name_that_both_sides_share() -> None:
    pair = ("Anna's brother visits Paris.", "Der Bruder von Anna besucht Paris.")

    seen = {replace(pair, random.Random(seed)) for seed in range(200)}

    for source, target in seen:
        has_anna, has_paris = "Anna's" in source, source.endswith(" Paris.")
        assert (has_anna, has_paris) != (False, False)
        if not has_anna:
            text = source.removesuffix("'s brother visits Paris.")
            assert target == f"Der Bruder von {text} besucht Paris."
        elif not has_paris:
            text = source.removeprefix("Anna's brother visits ")
            assert target == f"Der Bruder von Anna besucht {text}"


def test_replace_keeps_the_shape_of_numbers() -> None:
    pair = ("In 1990 at 10:30.", "1990 um 10:30.")

    seen = {replace(pair, random.Random(seed)) for seed in range(200)}

    plain = {re.sub("[0-9]", "9", source) for source, _ in seen if not set("{$%") & set(source)}
    assert plain == {"In 9999 at 99:99."}
    assert any("{" in source for source, _ in seen)


@pytest.mark.parametrize(
    "pair",
    [
        ("Give me 1 apple", "Gib mir 1 Apfel"),  # another number would need another noun
        ("Was it he?", "Was?"),  # another word that looks alike
        ("the hand", "die hand"),
        ("I can", "I can"),
        ("Tom and Tom", "Tom und Tom"),
    ],
)
def test_replace_stands_beside_a_pair_without_a_name_or_number(pair: tuple[str, str]) -> None:
    for seed in range(50):
        source, target = replace(pair, random.Random(seed))
        assert pair[0].rstrip("?") in source
        assert pair[1].rstrip("?") in target


def test_slots_are_filled_alike_on_both_sides_and_anew_each_time() -> None:
    augment = Augmentation(AugmentationConfig(), NUM_PLACEHOLDERS)
    pair = ("From ⟦time⟧ to ⟦time2⟧: ⟦url⟧", "⟦url⟧: von ⟦time⟧ bis ⟦time2⟧")

    seen = {augment(pair, random.Random(seed)) for seed in range(50)}

    assert len(seen) == 50
    for source, target in seen:
        match = re.fullmatch(r"From (\d?\d:\d\d) to (\d?\d:\d\d): (\S+)", source)
        assert match is not None
        assert target == f"{match[3]}: von {match[1]} bis {match[2]}"


@pytest.mark.parametrize("is_reversed", [False, True])
def test_slots_of_a_language_get_the_same_thing_in_its_writing(is_reversed: bool) -> None:
    pair = ("⟦clock:en⟧, ⟦clock2:en⟧: ⟦clock:en⟧", "⟦clock:de⟧, ⟦clock2:de⟧: ⟦clock:de⟧")
    differ = 0

    for seed in range(50):
        source, target = fill_slots((pair[1], pair[0]) if is_reversed else pair, random.Random(seed))
        english, german = (target, source) if is_reversed else (source, target)
        match = re.fullmatch("(.*) Uhr, (.*) Uhr: (.*) Uhr", german)
        assert match is not None
        assert match[1] == match[3]
        first, second, third = re.split(", |: ", english)
        assert first == third
        assert int(first.split(":")[0].rstrip(" apm")) % 12 == int(match[1].split(":")[0]) % 12
        differ += first != second
    assert differ > 40


def test_slots_of_one_name_with_and_without_a_language_are_two() -> None:
    pair = ("⟦number:en⟧ and ⟦number⟧", "⟦number:de⟧ und ⟦number⟧")

    assert {"⟦", "⟧"}.isdisjoint("".join(fill_slots(pair, random.Random(0))))


def test_the_slots_of_the_sentences_that_ship_can_be_filled() -> None:
    pairs = read_corpus(CorpusConfig(tsv="./copying.en-de.tsv").resolved(), Path()).pairs

    assert len(pairs) > 100
    for pair in pairs:
        slots = [sorted(re.findall("⟦.*?⟧", side)) for side in pair]
        assert slots[1] == sorted(slot.replace(":en", ":de") for slot in slots[0])
        assert not {"⟦", "⟧"} & set("".join(fill_slots(pair, random.Random(0))))


def test_whole_sentences_are_joined_as_often_as_configured() -> None:
    augment = Augmentation(AugmentationConfig(join=0.25), NUM_PLACEHOLDERS)
    pairs = [(f"Go {i}.", f"Geh {i}!") for i in range(4000)]

    joined = augment.join(pairs, 100, random.Random(0))

    counts = Counter(source.count(".") for source, _ in joined)
    assert set(counts) == {1, 2, 3}
    assert (counts[2] + counts[3]) / len(joined) == pytest.approx(0.25, abs=0.03)
    assert " ".join(source for source, _ in joined) == " ".join(source for source, _ in pairs)
    assert " ".join(target for _, target in joined) == " ".join(target for _, target in pairs)


@pytest.mark.parametrize(
    "pair", [("Save as", "Speichern unter"), ("Go.", "Geh"), ("A long sentence.", "Ein langer Satz.")]
)
def test_fragments_and_long_sentences_are_not_joined(pair: tuple[str, str]) -> None:
    augment = Augmentation(AugmentationConfig(join=1.0), NUM_PLACEHOLDERS)

    assert augment.join([pair] * 9, 30, random.Random(0)) == [pair] * 9


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


def test_half_of_the_slots_get_a_placeholder_symbol_of_their_own() -> None:
    pair = "From ⟦url⟧ to ⟦url2⟧.", "Von ⟦url⟧ nach ⟦url2⟧."
    filled = [fill_slots(pair, random.Random(seed), num_placeholders=2) for seed in range(200)]
    symbols = [[ch for ch in source if ch in "\ue000\ue001"] for source, _ in filled]
    assert [source.removeprefix("From ").replace(" to ", " nach ") for source, _ in filled] == [
        target.removeprefix("Von ") for _, target in filled
    ]
    assert all(len(set(each)) == len(each) for each in symbols)
    assert 150 <= sum(map(len, symbols)) <= 250


def test_slots_get_text_where_there_are_fewer_symbols() -> None:
    pair = "⟦email⟧ ⟦email2⟧", "⟦email⟧ ⟦email2⟧"
    assert all("\ue000" not in fill_slots(pair, random.Random(seed), num_placeholders=1)[0] for seed in range(20))


@pytest.mark.parametrize("source", ["See ⟦unknown⟧.", "See ⟦price:xx⟧.", "See ⟦unknown:en⟧.", "See this."])
def test_what_is_no_slot_stays_as_it_is(source: str) -> None:
    pair = source, f"⟦also⟧ {source}"

    assert fill_slots(pair, random.Random(0)) == pair


def test_a_long_line_is_searched_for_words_that_both_sides_share_once() -> None:
    numbers = " ".join(map(str, range(1000, 1000 + 40_000)))

    source, target = replace((f"A {numbers}", f"Ein {numbers}"), random.Random(0))

    assert source.split()[1:] == target.split()[1:] != numbers.split()
