"""argos-translate's backend for LibreTranslate; run in its own environment, with the server's address."""

import sys
import urllib.error
from collections.abc import Callable

from argostranslate.apis import LibreTranslateAPI


def main(address: str) -> None:
    """Makes the calls. Raises AssertionError."""
    for url in (address, f"{address}/libretranslate/"):
        client = LibreTranslateAPI(url, api_key="any")
        assert client.translate("A dog runs.", "en", "de") == "Ein Hund läuft."
        assert client.translate("50 % & more: 1+1=2.\n\nA dog runs.", "en", "de").endswith("\n\nEin Hund läuft.")
        (found,) = client.detect("Der Hund läuft über das Feld.")
        assert found["language"] == "de"
    assert fails(lambda: client.translate("A dog.", "en", "zz")) == (400, b'{"error":"zz is not supported"}')
    # It asks for the languages by POST, which LibreTranslate's own tests want to be refused.
    assert fails(client.languages)[0] == 405


def fails(call: Callable[[], object]) -> tuple[int, bytes]:
    """Returns the status and the body of an error."""
    try:
        call()
    except urllib.error.HTTPError as error:
        return error.code, error.read()
    raise AssertionError


main(sys.argv[1])
