"""Every public name of the client is in the reference."""

import re

import client
from client.messages import TranslateOptions
from docs.generate.fields import meanings
from docs.generate.python_client import client_page, documented


def test_every_public_name_is_there_once() -> None:
    shown = [name.rpartition(".")[2] for name in re.findall(r"^::: ([\w.]+)$", client_page(), re.MULTILINE)]

    assert sorted(shown) == sorted([*client.__all__, "TranslateOptions"])


def test_names_stand_with_their_like() -> None:
    found = documented()

    assert found["Clients"] == ["client.client.Client", "client.client.AsyncClient"]
    assert found["Options"] == ["client.channel.TlsOptions", "client.messages.TranslateOptions"]
    assert "client.results.FinishReason" in found["Results"]
    assert found["Errors"][0] == "client.errors.TranslationError"


def test_every_option_of_a_translation_has_a_meaning() -> None:
    assert list(meanings(TranslateOptions)) == list(TranslateOptions.__annotations__)
