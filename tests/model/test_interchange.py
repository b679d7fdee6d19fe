import dataclasses
import random
from pathlib import Path

import pytest

from model.augment import Augmentation, Interchange
from model.data import read_corpus
from model.recipe import AugmentationConfig, CorpusConfig
from model.recipe_file import load_recipe

GENERAL = Path(__file__).parents[2] / "model" / "configs" / "general.toml"

CLASSES = {("bed", "Bett"): "n", ("ship", "Schiff"): "n", ("nappy", "Windel"): "f", ("wheel", "Rad"): "n"}


def test_a_word_of_a_class_becomes_another_one_on_both_sides() -> None:
    exchange = Interchange(CLASSES)
    pair = ("The bed's old, but my bed is new: buy a wheel.", "Das Bett ist neu: kauf ein Rad.")

    seen = {exchange(pair, random.Random(seed)) for seed in range(50)}

    for_bed = {("bed", "Bett"), ("ship", "Schiff"), ("wheel", "Rad")}
    assert seen == {
        (
            f"The bed's old, but my {bed} is new: buy a {wheel}.",
            f"Das {bett} ist neu: kauf ein {rad}.",
        )
        for bed, bett, wheel, rad in [
            *((*other, "wheel", "Rad") for other in for_bed),
            *(("bed", "Bett", *other) for other in for_bed),
        ]
    }


@pytest.mark.parametrize(
    "pair",
    [
        ("A ship", "Eine Windel"),
        ("A bed, a bed", "Ein Bett"),
        ("A bed", "Bett an Bett"),
        ("Five o'bed", "Bett"),
        ("", ""),
    ],
)
def test_nothing_is_exchanged_but_a_word_and_its_translation_that_stand_once(pair: tuple[str, str]) -> None:
    exchange = Interchange(CLASSES)

    assert all(exchange(pair, random.Random(seed)) == pair for seed in range(20))


def test_the_dictionary_that_ships_has_classes_in_either_direction() -> None:
    config = CorpusConfig(tsv="./ding_words.en-de.tsv.gz", has_classes=True).resolved()
    forth, back = (read_corpus(each, Path()) for each in (config, dataclasses.replace(config, reverse=True)))

    assert len(forth.pairs) > 70_000
    assert forth.classes["lamp", "Lampe"] == "f"
    assert {(s, t): kind for (t, s), kind in back.classes.items()} == forth.classes
    augment = Augmentation(AugmentationConfig(interchange=1.0), 0, back.classes)
    assert augment(("Eine Lampe", "A lamp"), random.Random(0)) != ("Eine Lampe", "A lamp")


def test_a_recipe_without_classes_cannot_interchange() -> None:
    recipe = load_recipe(GENERAL)
    without = tuple(dataclasses.replace(corpus, has_classes=False) for corpus in recipe.train)

    with pytest.raises(ValueError, match=r"augmentation.interchange needs a \[\[train\]\] corpus with has_classes"):
        dataclasses.replace(recipe, train=without)
