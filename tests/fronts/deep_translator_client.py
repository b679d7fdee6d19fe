"""deep-translator's class for LibreTranslate; run in its own environment, with the server's address."""

import sys
import tempfile
from pathlib import Path

from deep_translator import LibreTranslator
from deep_translator.exceptions import ServerException


def main(address: str) -> None:
    """Makes the calls. Raises AssertionError."""
    for url in (f"{address}/", f"{address}/libretranslate/"):
        client = LibreTranslator(source="en", target="de", api_key="any", custom_url=url)
        assert client.translate("A dog runs.") == "Ein Hund läuft."
        assert client.translate_batch(["A dog runs.", "A man sits."]) == ["Ein Hund läuft.", "Ein Mann sitzt."]
        detecting = LibreTranslator(source="auto", target="de", api_key="any", custom_url=url)
        assert detecting.translate("A dog runs.") == "Ein Hund läuft."
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder, "a.txt")
            file.write_text("A dog runs.\n\nA man sits.", encoding="utf-8")
            assert client.translate_file(str(file)) == "Ein Hund läuft.\n\nEin Mann sitzt."
    try:
        LibreTranslator(source="en", target="es", api_key="any", custom_url=f"{address}/").translate("A dog.")
    except ServerException:
        pass
    else:
        raise AssertionError


main(sys.argv[1])
