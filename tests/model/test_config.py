from pathlib import Path

import pytest

from model.config import AugmentationConfig, CorpusConfig, TrainingConfig, TransformerConfig, load_recipe

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


@pytest.mark.parametrize("name", ["tiny", "general", "multi30k", "base", "big"])
def test_every_recipe_that_ships_loads(name: str) -> None:
    recipe = load_recipe(CONFIGS / f"{name}.toml")

    assert recipe.name == f"en-de-{name}"
    assert recipe.train
    assert all(corpus.tsv or (corpus.source and corpus.target) for corpus in (*recipe.train, *recipe.dev))
    assert recipe.dev


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
        ('d_model = "wide"', r"\[model\]: .*'str'"),
        ("[training]\nsteps = 1\nspeed = 2", r"\[training\]: unknown name: speed, steps"),
        ("[training]\nmax_steps = 0", r"\[training\]: max_steps must be at least 1, not 0"),
        ("[training]\nmax_steps = 9\ncooldown_steps = 10", r"cooldown_steps must be in 0\.\.9, not 10"),
        ("[training]\nmax_tokens = 600", "training.max_tokens is 600, but model.max_positions is 512"),
        ("[augmentation]\ncopy = 1.5", r"\[augmentation\]: copy must be in \[0, 1\], not 1.5"),
        ("[[train]]\nweight = -1", r"\[\[train\]\]: weight, hold_out and limit must be at least 0"),
        ("[tokenizer]\nnormalization = 'nfc'", r"\[tokenizer\]: normalization must be .*, not \"nfc\""),
        ("[training]\noptimizer = 'sgd'", r"\[training\]: optimizer must be .*, not \"sgd\""),
        ("inner_dropout = 1.0", r"\[model\]: inner_dropout must be in \[0, 1\), not 1.0"),
        ("[[dev]]\nlimit = -1", r"\[\[dev\]\]: weight, hold_out and limit"),
        ("[[train]]\nfile = 'a'", r"\[\[train\]\]: unknown name: file"),
    ],
)
def test_a_fault_in_a_recipe_is_named_with_its_table(tmp_path: Path, faulty: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        load_recipe(write(tmp_path, RECIPE + faulty))


def test_a_recipe_without_a_model_says_so(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="model"):
        load_recipe(write(tmp_path, 'name = "x"\nsource_language = "en"\ntarget_language = "de"\n'))


def test_a_recipe_that_is_no_toml_is_a_value_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Invalid value"):
        load_recipe(write(tmp_path, "name = "))


def test_every_fault_of_a_model_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="vocab_size") as caught:
        TransformerConfig(vocab_size=0, encoder_layers=-1, dropout=1.0, norm="none", positions="none")  # type: ignore[arg-type]

    faults = str(caught.value).split("; ")
    assert [fault.split()[0] for fault in faults] == ["vocab_size", "encoder_layers", "dropout", "norm", "positions"]


@pytest.mark.parametrize(("d_model", "num_heads"), [(100, 3), (36, 4), (16, 4)])
def test_heads_that_the_graphs_cannot_hold_are_refused(d_model: int, num_heads: int) -> None:
    with pytest.raises(ValueError, match=f"must be a multiple of 8, not {d_model} / {num_heads}"):
        TransformerConfig(vocab_size=10, d_model=d_model, num_heads=num_heads)


def test_every_fault_of_a_training_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="batch_tokens") as caught:
        TrainingConfig(batch_tokens=0, average_last=0, lr_scale=0.0, label_smoothing=1.0, word_dropout=-0.1)

    faults = str(caught.value).split("; ")
    assert [f.split()[0] for f in faults] == [
        "batch_tokens",
        "average_last",
        "lr_scale",
        "label_smoothing",
        "word_dropout",
    ]


def test_probabilities_of_rewritings_sum_up_to_at_most_one() -> None:
    AugmentationConfig(upper_case=0.5, copy=0.5)

    with pytest.raises(ValueError, match="sum up to at most 1"):
        AugmentationConfig(upper_case=0.75, copy=0.5)
