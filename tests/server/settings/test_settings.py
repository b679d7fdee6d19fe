"""The table of settings by itself; how it is read is in test_command_line.py."""

import dataclasses
from typing import Any

import pytest

from server.bundle.manifest_file import read_manifest
from server.bundle.variants import VARIANTS
from server.settings.settings import BUILTIN_BUNDLE, Settings

FIELDS = dataclasses.fields(Settings)
NUMBERS = [field for field in FIELDS if isinstance(field.default, int | float) and not isinstance(field.default, bool)]
CHOICES = [field for field in FIELDS if "choices" in field.metadata]

Field = dataclasses.Field[Any]


def name_of(field: Field) -> str:
    return field.name


@pytest.mark.parametrize("field", FIELDS, ids=name_of)
def test_every_setting_says_what_it_is_for(field: Field) -> None:
    text = field.metadata["help"]

    assert len(text.split()) > 2
    assert text == text.strip()
    assert not text.endswith(".")  # the default follows


@pytest.mark.parametrize("field", FIELDS, ids=name_of)
def test_every_setting_has_a_default_of_its_own_type(field: Field) -> None:
    """The command line reads a value as what the default is."""
    kind: Any = field.type

    assert isinstance(field.default, kind)
    assert isinstance(field.default, bool) is (kind is bool)


@pytest.mark.parametrize("field", NUMBERS, ids=name_of)
def test_every_number_has_a_range_and_its_default_is_within(field: Field) -> None:
    low, high = field.metadata["low"], field.metadata["high"]

    assert low is not None
    assert low <= field.default
    assert high is None or field.default <= high


@pytest.mark.parametrize("field", CHOICES, ids=name_of)
def test_a_default_is_one_of_the_choices(field: Field) -> None:
    assert field.default in field.metadata["choices"]


@pytest.mark.parametrize("name", ["max_cache_mib", "max_encode_tokens"])
def test_where_0_takes_the_variants_default_the_help_names_each(name: str) -> None:
    (field,) = (field for field in FIELDS if field.name == name)

    assert field.default == 0
    for variant, kind in VARIANTS.items():
        assert f"{getattr(kind, name)} with {variant}" in field.metadata["help"]


@pytest.mark.parametrize("field", [field for field in FIELDS if field.name.endswith("port")], ids=name_of)
def test_ports_are_all_that_there_are_and_0_takes_a_free_one(field: Field) -> None:
    assert (field.metadata["low"], field.metadata["high"]) == (0, 65535)
    assert field.metadata["help"].endswith("; 0 takes a free one")


def test_the_widest_default_beam_fits_into_the_default_batch() -> None:
    (beam_size,) = (field for field in FIELDS if field.name == "beam_size")

    assert beam_size.metadata["high"] <= Settings().max_rows


def test_the_built_in_model_is_there() -> None:
    assert read_manifest(BUILTIN_BUNDLE).language_pairs
    assert Settings().bundle == BUILTIN_BUNDLE
