import dataclasses
from pathlib import Path
from typing import Any

import pytest
import torch

from model.run_state import load_run, save_run
from tests.model.runs import recipe


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state.pt"


def changed(table: str, **values: Any) -> Any:
    how = recipe()
    return dataclasses.replace(how, **{table: dataclasses.replace(getattr(how, table), **values)})


def test_what_is_saved_comes_back(path: Path) -> None:
    save_run(path, recipe(), {"progress": {"step": 7, "curve": [(1, 2.5)]}, "tensor": torch.arange(3)})

    state = load_run(path, recipe())

    assert state["progress"] == {"step": 7, "curve": [(1, 2.5)]}
    assert torch.equal(state["tensor"], torch.arange(3))


@pytest.mark.parametrize(
    "how",
    [
        changed("training", max_steps=99, seed=5, lr_scale=2.0),
        changed("model", dropout=0.3, inner_dropout=0.1),
        changed("augmentation", copy=0.0),
        dataclasses.replace(recipe(), name="another", train=(), dev=()),
    ],
)
def test_what_shapes_neither_weights_nor_vocabulary_may_change(path: Path, how: Any) -> None:
    save_run(path, recipe(), {"step": 7})

    assert load_run(path, how)["step"] == 7


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        (changed("model", d_model=32), "model.d_model was 16, the recipe says 32"),
        (changed("training", optimizer="muon"), "training.optimizer was 'adam', the recipe says 'muon'"),
        (changed("tokenizer", split_digits=True), "tokenizer.split_digits was False, the recipe says True"),
        (dataclasses.replace(recipe(), source_language="fr"), "source_language was 'en', the recipe says 'fr'"),
    ],
)
def test_what_does_is_told(path: Path, how: Any, expected: str) -> None:
    save_run(path, recipe(), {})

    with pytest.raises(ValueError, match="holds a run of another recipe") as caught:
        load_run(path, how)

    assert str(caught.value).splitlines()[1:] == [f"{path.parent}: {expected}"]


def test_every_difference_is_told_at_once(path: Path) -> None:
    save_run(path, recipe(), {})

    with pytest.raises(ValueError, match="another recipe") as caught:
        load_run(path, dataclasses.replace(changed("model", num_heads=1, ffn_dim=8), target_language="fr"))

    assert len(str(caught.value).splitlines()) == 4


def test_a_state_of_an_older_version_which_says_no_recipe_is_read(path: Path) -> None:
    torch.save({"progress": {"step": 7}}, path)

    assert load_run(path, recipe())["progress"] == {"step": 7}


@pytest.mark.parametrize("content", [b"", b"no archive", None])
def test_a_damaged_state_is_told(path: Path, content: bytes | None) -> None:
    save_run(path, recipe(), {"tensor": torch.arange(1000)})
    path.write_bytes(path.read_bytes()[:2000] if content is None else content)

    with pytest.raises(ValueError, match=r"state\.pt is damaged: "):
        load_run(path, recipe())


def test_a_state_that_cannot_be_written_is_an_os_error(path: Path) -> None:
    path.with_name("state.pt.tmp").mkdir()

    with pytest.raises(OSError, match=r"state\.pt cannot be written: "):
        save_run(path, recipe(), {})
