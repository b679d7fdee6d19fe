"""Every call of libretranslatepy that is served; run in its own environment, with the server's address."""

import sys
import urllib.error

from libretranslatepy import LibreTranslateAPI


def main(address: str) -> None:
    """Makes the calls. Raises AssertionError."""
    for url in (address, f"{address}/libretranslate"):
        client = LibreTranslateAPI(url, api_key="any")
        assert client.translate("A dog runs.", "en", "de") == "Ein Hund läuft."
        assert client.translate("A dog runs.\n\nA dog runs.", "en", "de") == "Ein Hund läuft.\n\nEin Hund läuft."
        assert "dog" in client.translate("Der Hund schläft.", "auto", "en").lower()
        assert client.translate("A dog runs.", "en", "de", timeout=30) == "Ein Hund läuft."
        (found,) = client.detect("Der Hund läuft über das Feld.")
        assert found["language"] == "de"
        assert 0 < found["confidence"] <= 100
        languages = {each["code"]: each for each in client.languages()}
        assert languages["en"] == {"code": "en", "name": "English", "targets": ["de"]}
        assert languages["de"] == {"code": "de", "name": "German", "targets": ["en"]}
    try:
        LibreTranslateAPI(address).translate("A dog.", "en", "zz")
    except urllib.error.HTTPError as error:
        assert (error.code, error.read()) == (400, b'{"error":"zz is not supported"}')
    else:
        raise AssertionError


main(sys.argv[1])
