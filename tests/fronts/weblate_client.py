"""Weblate's backend for LibreTranslate, with little of Django; run in its environment, with the server's address."""

import sys

import django
from django.conf import settings
from requests.exceptions import HTTPError

settings.configure(
    AUTOFIX_LIST=(),
    CACHES={"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}},
    CHECK_LIST=(),
    ENABLE_HTTPS=False,
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "weblate.checks", "weblate.lang"],
    SITE_DOMAIN="weblate.example",
)
django.setup()

from weblate.lang.models import Language  # noqa: E402 # Django must be set up
from weblate.machinery.base import UnsupportedLanguageError  # noqa: E402
from weblate.machinery.libretranslate import LibreTranslateTranslation  # noqa: E402

PLACEHOLDERS = "Hello [X6X], a dog runs over [X20X] fields."  # as Weblate hides what must stay


def main(address: str) -> None:
    """Makes the calls that Weblate makes. Raises AssertionError."""
    machine = LibreTranslateTranslation({"url": f"{address}/", "key": ""})
    machine.validate_settings()
    assert machine.supported_languages == {"en", "de"}
    english, german, spanish = Language(code="en"), Language(code="de"), Language(code="es")
    assert machine.get_languages(english, german) == ("en", "de")
    assert machine.get_languages(Language(code="en_US"), Language(code="de_AT")) == ("en", "de")
    try:
        machine.get_languages(english, spanish)
    except UnsupportedLanguageError:
        pass
    else:
        raise AssertionError
    texts = ["A dog runs.", PLACEHOLDERS, "A man sits."]
    found = machine.download_multiple_translations("en", "de", [(text, None) for text in texts])
    assert [found[text][0]["text"] for text in texts] == [
        "Ein Hund läuft.",
        "Hallo [X6X], ein Hund läuft über [X20X] Felder.",
        "Ein Mann sitzt.",
    ]
    assert machine.uncleanup_text({"[X6X]": "%s", "[X20X]": "%d"}, found[PLACEHOLDERS][0]["text"]) == (
        "Hallo %s, ein Hund läuft über %d Felder."
    )
    try:
        machine.download_multiple_translations("en", "es", [("A dog.", None)])
    except HTTPError as error:
        assert error.response.status_code == 400
        assert str(error).endswith("es is not supported")
    else:
        raise AssertionError


main(sys.argv[1])
