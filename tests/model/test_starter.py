import dataclasses
import re
from pathlib import Path

import pytest

from model.config import TransformerConfig
from model.recipe import AugmentationConfig, CorpusConfig, TokenizerConfig, TrainingConfig
from model.recipe_file import load_recipe
from model.starter import STARTER, write_starter

NOT_FOR_BEGINNERS = {
    *("source_vocab_size", "encoder_num_heads", "head_width", "encoder_ffn_dim", "encoder_norm", "final_norm"),
    *("embedding_norm", "layer_norm_eps", "activation", "scale_embedding", "tied_output", "output_bias", "positions"),
    *("family", "glancing", "decoder_mixer", "attention_score", "self_window", "pad_id", "unk_id", "bos_id", "eos_id"),
}


def test_the_recipe_is_one_for_the_languages(tmp_path: Path) -> None:
    said = write_starter(tmp_path / "new" / "fr-en", "FR", "zh_hant")

    recipe = load_recipe(tmp_path / "new" / "fr-en" / "recipe.toml")
    assert (recipe.name, recipe.source_language, recipe.target_language) == ("fr-zh-Hant", "fr", "zh-Hant")
    assert recipe.train == (CorpusConfig(source="train.fr", target="train.zh-Hant"),)
    assert recipe.dev == (CorpusConfig(source="dev.fr", target="dev.zh-Hant"),)
    assert (tmp_path / "new" / "fr-en" / "data").is_dir()
    folder = tmp_path / "new" / "fr-en"
    assert f"babelserve-train {folder}/recipe.toml --data {folder}/data --out {folder}/run" in said
    assert f"{folder}/data/train.fr, {folder}/data/train.zh-Hant" in said


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "recipe.toml").write_text("mine", encoding="utf-8")

    with pytest.raises(FileExistsError, match=r"recipe\.toml exists already"):
        write_starter(tmp_path, "fr", "en")

    assert (tmp_path / "recipe.toml").read_text(encoding="utf-8") == "mine"


@pytest.mark.parametrize(
    ("source", "target", "expected"),
    [
        ("french", "en", "--source must be a BCP-47 code such as fr or zh-Hant, not 'french'"),
        ("fr", "", "--target must be a BCP-47 code"),
        ("fr", "e n", "--target must be a BCP-47 code"),
        ("fr", "fr", "--source and --target are both fr"),
    ],
)
def test_codes_that_are_none_are_refused(tmp_path: Path, source: str, target: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        write_starter(tmp_path, source, target)

    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("table", "kind"),
    [
        ("train", CorpusConfig),
        ("model", TransformerConfig),
        ("training", TrainingConfig),
        ("tokenizer", TokenizerConfig),
        ("augmentation", AugmentationConfig),
    ],
)
def test_every_key_is_there_and_what_is_commented_out_has_its_default(table: str, kind: type) -> None:
    text = re.split(rf"^\[+{table}\]+$", STARTER.read_text(encoding="utf-8"), flags=re.MULTILINE)[1]
    lines = dict(re.findall(r"^((?:# )?[a-z_0-9]+) = (\S+)", text.partition("\n[")[0], re.MULTILINE))
    defaults = {field.name: field.default for field in dataclasses.fields(kind)}

    shown = {name.removeprefix("# ") for name in lines}
    assert shown == set(defaults) - NOT_FOR_BEGINNERS
    for name, value in lines.items():
        key = name.removeprefix("# ")
        if name != key and key not in ("tsv", "inner_dropout"):  # examples
            assert value.strip('"') == str(defaults[key]).replace("False", "false").replace("True", "true"), key


def test_what_is_said_to_be_fixed_is(tmp_path: Path) -> None:
    write_starter(tmp_path, "fr", "en")
    fixed = set(re.findall(r"^(?:# )?([a-z_]+) = .*\(fixed\)", STARTER.read_text(encoding="utf-8"), re.MULTILINE))
    recipe = load_recipe(tmp_path / "recipe.toml")

    of_model = {field.name for field in dataclasses.fields(recipe.model)} - {"dropout", "inner_dropout"}
    of_tokenizer = {field.name for field in dataclasses.fields(recipe.tokenizer)}
    all_fixed = {"source_language", "target_language", "optimizer", *of_model, *of_tokenizer}
    assert fixed == all_fixed - NOT_FOR_BEGINNERS
