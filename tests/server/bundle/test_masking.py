"""Rooms that do not know each other mean the same characters by placeholders."""

from model.recipe import MAX_PLACEHOLDERS as MOST_TRAINED
from model.verbatim import PLACEHOLDER_START
from server.bundle.masking import FIRST_PLACEHOLDER, MAX_PLACEHOLDERS, Masking
from server.text.carriers import clean


def test_placeholders_are_the_same_in_training_bundles_and_texts() -> None:
    assert FIRST_PLACEHOLDER == PLACEHOLDER_START
    assert MAX_PLACEHOLDERS == MOST_TRAINED
    first, last = chr(FIRST_PLACEHOLDER), chr(FIRST_PLACEHOLDER + MAX_PLACEHOLDERS - 1)
    assert (first, last) == ("\ue000", "\uf8ff")  # the private use area
    assert clean(f"a{first}b{last}") == "ab"


def test_symbols_are_the_first_carriers_and_then_each_code() -> None:
    masking = Masking(num_placeholders=2, codes=("%{}", "X{}"))

    assert masking.carriers == (
        ("\ue000", "\ue001"),
        tuple(f"%{digit}" for digit in range(1, 10)),
        tuple(f"X{digit}" for digit in range(1, 10)),
    )


def test_a_model_of_which_nothing_is_known_has_no_carriers() -> None:
    assert Masking().carriers == ()
