"""Which language texts are in, of those that the models translate from."""

import dataclasses

import pytest

from server.access.tenants import ANONYMOUS, Tenant
from server.access.token_bucket import TokenBucket
from server.bundle.languages import LanguagePair
from server.errors import InvalidRequest, NotServing, Overloaded, PreconditionFailed
from server.models.model import Model
from server.translation.detection import DetectedLanguage
from server.translation.translator import Translator
from tests.server.echo_engine import catalogue_of

ENGLISH, GERMAN, SPANISH = "The dog runs over the field.", "Der Hund läuft über das Feld.", "El perro corre por aquí."


@pytest.fixture
def several(translator: Translator, model: Model) -> Translator:
    """A translator from two languages."""
    pairs = (LanguagePair(source="en", target="de"), LanguagePair(source="de", target="en"))
    manifest = dataclasses.replace(model.manifest, language_pairs=pairs)
    translator.catalogue = catalogue_of(dataclasses.replace(model, manifest=manifest))
    return translator


async def test_where_one_language_is_served_nothing_is_detected(translator: Translator) -> None:
    assert await translator.detect([GERMAN, ""], "", ANONYMOUS) == [DetectedLanguage("en", 0.0)] * 2


async def test_each_text_has_its_language_or_its_error(several: Translator) -> None:
    pytest.importorskip("py3langid", reason="it comes with the extra `detect`")

    english, german, digits, spanish = await several.detect([ENGLISH, GERMAN, "42", SPANISH], "", ANONYMOUS)
    (html,) = await several.detect([f"<p title='{ENGLISH * 3}'>{GERMAN}</p>"], "text/html", ANONYMOUS)

    assert isinstance(english, DetectedLanguage)
    assert isinstance(german, DetectedLanguage)
    assert isinstance(html, DetectedLanguage)
    assert (english.code, german.code, html.code) == ("en", "de", "de")
    assert digits == DetectedLanguage("en", 0.0)
    assert isinstance(spanish, InvalidRequest)


async def test_what_is_wrong_is_refused(several: Translator) -> None:
    bucket = TokenBucket(rate=1.0, burst=1.0)
    bucket.take(100.0)

    with pytest.raises(InvalidRequest, match="contents"):
        await several.detect([], "", ANONYMOUS)
    with pytest.raises(InvalidRequest, match="mime_type: must be one of"):
        await several.detect([ENGLISH], "text/none", ANONYMOUS)
    with pytest.raises(Overloaded, match="quota"):
        await several.detect([ENGLISH], "", Tenant(name="billing", bucket=bucket))
    several.detection.is_available = False
    with pytest.raises(PreconditionFailed, match=r"babelserve\[detect\]"):
        await several.detect([ENGLISH], "", ANONYMOUS)


async def test_without_a_model_nothing_is_detected(translator: Translator) -> None:
    translator.catalogue = catalogue_of()

    with pytest.raises(NotServing):
        await translator.detect([ENGLISH], "", ANONYMOUS)
