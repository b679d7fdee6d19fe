"""Rooms that do not know each other mean the same characters by placeholders."""

from model.training import MAX_PLACEHOLDERS as MOST_TRAINED
from model.verbatim import PLACEHOLDER_START
from server.bundle.masking import FIRST_PLACEHOLDER, MAX_PLACEHOLDERS, Masking
from server.text.masking import FIRST_SYMBOL, NO_MASKING


def test_placeholders_are_the_same_in_training_bundles_and_texts() -> None:
    assert FIRST_PLACEHOLDER == FIRST_SYMBOL == PLACEHOLDER_START
    assert MAX_PLACEHOLDERS == MOST_TRAINED
    assert chr(FIRST_PLACEHOLDER + MAX_PLACEHOLDERS - 1) == "\uf8ff"  # the last of the private use area


def test_a_model_of_which_nothing_is_said_is_shown_every_text_as_it_stands() -> None:
    assert (Masking().num_placeholders, Masking().folds_capitals) == (
        NO_MASKING.num_placeholders,
        NO_MASKING.folds_capitals,
    )
