"""Every public name of the client is in the reference."""

import re

import babelserve
from babelserve.messages import TranslateOptions
from docs.generate.fields import meanings
from docs.generate.python_client import client_page, documented


def test_every_public_name_is_there_once() -> None:
    shown = [name.rpartition(".")[2] for name in re.findall(r"^::: ([\w.]+)$", client_page(), re.MULTILINE)]

    assert sorted(shown) == sorted([*babelserve.__all__, "TranslateOptions"])


def test_names_stand_with_their_like() -> None:
    found = documented()

    assert found["Clients"] == ["babelserve.client.Client", "babelserve.client_asyncio.AsyncClient"]
    assert found["Options"] == ["babelserve.channel.TlsOptions", "babelserve.messages.TranslateOptions"]
    assert "babelserve.results.FinishReason" in found["Results"]
    assert found["Errors"][0] == "babelserve.errors.TranslationError"


def test_every_option_of_a_translation_has_a_meaning() -> None:
    assert list(meanings(TranslateOptions)) == list(TranslateOptions.__annotations__)
