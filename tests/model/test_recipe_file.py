import dataclasses
from pathlib import Path

import pytest
import torch

from model.families import FAMILIES
from model.recipe import AugmentationConfig, CorpusConfig, TrainingConfig
from model.recipe_file import load_recipe

CONFIGS = Path(__file__).parents[2] / "model" / "configs"
RECIPE = """
name = "test"
source_language = "en"
target_language = "de"
[model]
vocab_size = 100
"""


def write(folder: Path, text: str) -> Path:
    path = folder / "recipe.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("file", "name"),
    [
        ("tiny", "en-de-tiny"),
        ("general", "en-de-small"),
        ("general.de-en", "de-en-small"),
        ("multi30k", "en-de-multi30k"),
        ("base", "en-de-base"),
        ("big", "en-de-big"),
        ("one_pass", "en-de-one-pass"),
        *((f"networks/rnn_{score}", f"en-de-rnn-{score}") for score in ("none", "dot", "general", "additive")),
    ],
)
def test_every_recipe_that_ships_loads(file: str, name: str) -> None:
    recipe = load_recipe(CONFIGS / f"{file}.toml")

    assert recipe.name == name
    assert recipe.train
    assert all(corpus.tsv or (corpus.source and corpus.target) for corpus in (*recipe.train, *recipe.dev))
    assert recipe.dev


def test_networks_are_compared_on_equal_terms() -> None:
    recipes = {path.stem: load_recipe(path) for path in sorted((CONFIGS / "networks").glob("*.toml"))}
    first = recipes["transformer"]
    with torch.device("meta"):  # the networks without their numbers
        networks = {name: FAMILIES[recipe.model.family].network(recipe.model) for name, recipe in recipes.items()}
    sizes = {name: sum(weight.numel() for weight in each.parameters()) for name, each in networks.items()}

    assert len({recipe.name for recipe in recipes.values()}) == len(recipes) >= 7
    assert all(abs(size - 2.9e6) < 0.05 * 2.9e6 for size in sizes.values()), sizes
    for recipe in recipes.values():
        same = {"label_smoothing": first.training.label_smoothing, "glancing": first.training.glancing}
        assert dataclasses.replace(recipe.training, **same) == first.training  # type: ignore[arg-type]
        assert (recipe.train, recipe.dev, recipe.augmentation) == (first.train, first.dev, first.augmentation)
        assert (recipe.model.vocab_size, recipe.model.dropout) == (first.model.vocab_size, first.model.dropout)


@pytest.mark.parametrize(("name", "d_model", "ffn_dim", "heads"), [("base", 512, 2048, 8), ("big", 1024, 4096, 16)])
def test_base_and_big_have_the_shapes_of_the_paper(name: str, d_model: int, ffn_dim: int, heads: int) -> None:
    model = load_recipe(CONFIGS / f"{name}.toml").model

    assert (model.d_model, model.ffn_dim, model.num_heads, model.head_dim) == (d_model, ffn_dim, heads, 64)
    assert (model.encoder_layers, model.decoder_layers) == (6, 6)
    assert (model.norm, model.positions) == ("post", "sinusoidal")


def test_tables_of_a_recipe_become_their_configurations(tmp_path: Path) -> None:
    tables = '[training]\nmax_steps = 7\n[dev]\ntsv = "dev.tsv"\n[[train]]\ntsv = "a.tsv"\n[[train]]\ntsv = "b.tsv"\n'

    recipe = load_recipe(write(tmp_path, RECIPE + tables))

    assert recipe.training == TrainingConfig(max_steps=7)
    assert recipe.dev == (CorpusConfig(tsv="dev.tsv"),)
    assert recipe.train == (CorpusConfig(tsv="a.tsv"), CorpusConfig(tsv="b.tsv"))
    assert recipe.augmentation == AugmentationConfig()


@pytest.mark.parametrize(
    ("faulty", "expected"),
    [
        ("heads = 3", r"\[model\]: unknown name: heads"),
        ('d_model = "wide"', r"\[model\]: d_model must be a whole number, not 'wide'"),
        ("[training]\nsteps = 1\nspeed = 2", r"\[training\]: unknown name: speed\n.*\[training\]: unknown name: steps"),
        ("[training]\nmax_steps = 0", r"\[training\]: max_steps must be in 1..1000000000, not 0"),
        ("[training]\nmax_steps = 9\ncooldown_steps = 10", r"cooldown_steps must be in 0\.\.9, not 10"),
        ("[training]\nmax_tokens = 600", "training.max_tokens is 600, but model.max_positions is 512"),
        ("[augmentation]\ncopy = 1.5", r"\[augmentation\]: copy must be in \[0, 1\], not 1.5"),
        ("[[train]]\nweight = -1", r"\[\[train\]\] 1: weight must be in \[0, 1000\], not -1"),
        ("[tokenizer]\nnormalization = 'nfc'", r"\[tokenizer\]: normalization must be .*, not 'nfc'"),
        ("[training]\noptimizer = 'sgd'", r"\[training\]: optimizer must be .*, not 'sgd'"),
        ("inner_dropout = 'much'", r"\[model\]: inner_dropout must be a number, not 'much'"),
        ("encoder_norm = 'none'", r"\[model\]: encoder_norm must be \"post\" or \"pre\", not 'none'"),
        ("positions = 'table'", 'positions "table" is for weights that have one, not for training'),
        ("source_vocab_size = 90", "source_vocab_size must be vocab_size, since the tokenizer is joint, not 90"),
        ("inner_dropout = 1.0", r"\[model\]: inner_dropout must be in \[0, 1\), not 1.0"),
        ("[[dev]]\nlimit = -1", r"\[\[dev\]\] 1: limit must be in 0..1000000000, not -1"),
        ("[[train]]\nfile = 'a'", r"\[\[train\]\] 1: unknown name: file"),
        ("[[train]]\ntsv = 'a'\nsource = 'a'\ntarget = 'b'", r"\[\[train\]\] 1: either tsv or both source and target"),
        ("[tokenizer]\ncharacter_coverage = 0.5", r"\[tokenizer\]: character_coverage must be in \[0.98, 1\], not 0.5"),
        ("[tokenizer]\nnum_placeholders = -1", r"\[tokenizer\]: num_placeholders must be in 0..6400, not -1"),
        (
            "[tokenizer]\nnum_placeholders = 0\n[augmentation]\nplaceholder = 0.1",
            "augmentation.placeholder needs tokenizer.num_placeholders, which is 0",
        ),
    ],
)
def test_a_fault_in_a_recipe_is_named_with_its_table(tmp_path: Path, faulty: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        load_recipe(write(tmp_path, RECIPE + faulty))


def test_a_recipe_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="model"):
        load_recipe(write(tmp_path, 'name = "x"\nsource_language = "en"\ntarget_language = "de"\n'))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (("name", '""'), "name must have 1..128 characters, all printable, not ''"),
        (("source_language", '""'), "source_language must have 1..128 characters"),
        (("target_language", '"d\\u0007e"'), "target_language must have 1..128 characters"),
        (("train", "5"), r"\[\[train\]\] 1: must be a table, not 5"),
    ],
)
def test_what_the_export_would_refuse_is_refused_before_the_training(
    tmp_path: Path, changed: tuple[str, str], expected: str
) -> None:
    lines = [line for line in RECIPE.splitlines() if line.partition(" ")[0] != changed[0]]

    with pytest.raises(ValueError, match=expected):
        load_recipe(write(tmp_path, "\n".join([" = ".join(changed), *lines])))


def test_a_recipe_that_is_no_toml_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Invalid value"):
        load_recipe(write(tmp_path, "name = "))


def test_every_fault_of_every_table_is_told_at_once(tmp_path: Path) -> None:
    tables = """
    [model]
    vocab_size = "many"
    heads = 3
    [training]
    max_steps = 0
    warmup_steps = 0
    bf16 = 1
    [[train]]
    tsv = "a.tsv"
    [[train]]
    source = "a"
    weight = -1
    [speed]
    """
    with pytest.raises(ValueError, match=r"recipe\.toml") as caught:
        load_recipe(write(tmp_path, 'name = 7\nsource_language = "en"\n' + tables.replace("    ", "")))

    assert [line.partition("recipe.toml: ")[2] for line in str(caught.value).splitlines()] == [
        "[model]: unknown name: heads",
        "[model]: vocab_size must be a whole number, not 'many'",
        "[training]: bf16 must be true or false, not 1",
        "[[train]] 2: either tsv or both source and target must name files",
        "[[train]] 2: weight must be in [0, 1000], not -1",
        "the recipe: unknown name: speed",
        "the recipe: target_language is missing",
        "the recipe: name must be a text, not 7",
    ]


def test_ranges_are_told_where_every_kind_is_right(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="max_steps must be in 1") as caught:
        load_recipe(write(tmp_path, RECIPE + "[training]\nmax_steps = 0\nwarmup_steps = 0\n"))

    assert len(str(caught.value).splitlines()) == 2


def test_a_reverse_recipe_is_the_other_direction_of_another(tmp_path: Path) -> None:
    corpora = '[[train]]\ntsv = "a.tsv"\n[[train]]\ntsv = "b.tsv"\nreverse = true\n[dev]\ntsv = "dev.tsv"\n'
    base = load_recipe(write(tmp_path, RECIPE + corpora))
    (tmp_path / "back.toml").write_text('name = "back"\nreverse_of = "recipe.toml"\n', encoding="utf-8")

    recipe = load_recipe(tmp_path / "back.toml")

    assert (recipe.name, recipe.source_language, recipe.target_language) == ("back", "de", "en")
    assert recipe.train == (CorpusConfig(tsv="a.tsv", reverse=True), CorpusConfig(tsv="b.tsv"))
    assert recipe.dev == (CorpusConfig(tsv="dev.tsv", reverse=True),)
    assert (recipe.model, recipe.training) == (base.model, base.training)


def test_a_variant_is_another_recipe_with_other_values(tmp_path: Path) -> None:
    base = load_recipe(write(tmp_path, RECIPE + '[[train]]\ntsv = "a.tsv"\n'))
    variant = 'name = "large"\nvariant_of = "recipe.toml"\n[model]\nd_model = 64\n'
    (tmp_path / "large.toml").write_text(variant, encoding="utf-8")

    recipe = load_recipe(tmp_path / "large.toml")

    assert recipe == dataclasses.replace(base, name="large", model=dataclasses.replace(base.model, d_model=64))
    assert recipe != base


def test_a_reverse_recipe_changes_values_of_its_tables(tmp_path: Path) -> None:
    base = load_recipe(write(tmp_path, RECIPE + "[training]\nmax_steps = 900\nwarmup_steps = 9\n"))
    back = 'name = "back"\nreverse_of = "recipe.toml"\n[training]\nmax_steps = 70\n[augmentation]\nlower_case = 0.2\n'
    (tmp_path / "back.toml").write_text(back, encoding="utf-8")

    recipe = load_recipe(tmp_path / "back.toml")

    assert recipe.training == dataclasses.replace(base.training, max_steps=70)
    assert recipe.augmentation == dataclasses.replace(base.augmentation, lower_case=0.2)


def test_the_faults_of_a_reverse_recipes_tables_name_its_file(tmp_path: Path) -> None:
    write(tmp_path, RECIPE)
    back = 'name = "back"\nreverse_of = "recipe.toml"\n[training]\nmax_steps = "all"\n[augmentation]\nlower = 0.2\n'
    (tmp_path / "back.toml").write_text(back, encoding="utf-8")

    with pytest.raises(ValueError, match="max_steps") as caught:
        load_recipe(tmp_path / "back.toml")

    assert [line.removeprefix(str(tmp_path)) for line in str(caught.value).splitlines()] == [
        "/back.toml: [training]: max_steps must be a whole number, not 'all'",
        "/back.toml: [augmentation]: unknown name: lower",
    ]


@pytest.mark.parametrize(
    "text",
    [
        'name = "x"\nreverse_of = "y.toml"\nseed = 1',
        'name = "x"\nreverse_of = "y.toml"\ntraining = 1',
        'reverse_of = "y.toml"',
        'name = "x"\nreverse_of = 1',
    ],
)
def test_a_reverse_recipe_has_a_name_and_tables_alone(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError, match="a recipe with reverse_of has name beside it, both texts, and at most"):
        load_recipe(write(tmp_path, text))


def test_a_recipe_is_not_the_reverse_of_a_reverse(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="must name a recipe that is not itself one with variant_of or reverse_of"):
        load_recipe(write(tmp_path, 'name = "x"\nreverse_of = "recipe.toml"'))


def test_a_reverse_recipe_has_a_name_that_can_be_shown(tmp_path: Path) -> None:
    write(tmp_path, RECIPE)
    (tmp_path / "back.toml").write_text('name = ""\nreverse_of = "recipe.toml"\n', encoding="utf-8")

    with pytest.raises(ValueError, match=r"back.toml: name must have 1\.\.128 characters"):
        load_recipe(tmp_path / "back.toml")
