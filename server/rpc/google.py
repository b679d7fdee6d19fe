"""Google's Cloud Translation API v3 over gRPC: what `server.fronts.google` reads and writes."""

import grpc

from babelserve.v1 import translation_pb2 as pb
from server.api.handlers import Api
from server.fronts import google as front
from server.fronts.fields import fields_named
from server.fronts.v1 import google_pb2 as google
from server.rpc.front_service import FrontService
from server.rpc.intake import Intake
from server.rpc.parsed import parsed


class GoogleHandlers:
    """Answers the messages of Google's service. `seconds` is what the caller still waits; None for ever.

    Args:
        api: translates.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    async def translate_text(
        self, asked: google.TranslateTextRequest, seconds: float | None
    ) -> google.TranslateTextResponse:
        """Translates all texts. Raises TranslationError if one of them fails."""
        with fields_named(front.FIELDS):
            return front.write_translate(asked, await self._api.translate(front.read_translate(asked), seconds))

    async def detect_language(
        self, asked: google.DetectLanguageRequest, seconds: float | None
    ) -> google.DetectLanguageResponse:
        """Detects the language of a text. Raises TranslationError."""
        with fields_named(front.DETECT_FIELDS):
            return front.write_detect(await self._api.detect_languages(front.read_detect(asked), seconds))

    async def get_supported_languages(
        self, asked: google.GetSupportedLanguagesRequest, _: float | None
    ) -> google.SupportedLanguages:
        """Lists languages. Raises TranslationError."""
        return front.write_languages(asked, await self._api.list_models(pb.ListModelsRequest()))

    async def list_glossaries(
        self, asked: google.ListGlossariesRequest, _: float | None
    ) -> google.ListGlossariesResponse:
        """Lists glossaries. Raises TranslationError."""
        return front.write_glossaries(asked, await self._api.list_glossaries(pb.ListGlossariesRequest()))

    async def get_glossary(self, asked: google.GetGlossaryRequest, _: float | None) -> google.Glossary:
        """Describes a glossary. Raises TranslationError."""
        return front.write_glossary(asked, await self._api.list_glossaries(pb.ListGlossariesRequest()))


def google_services(api: Api, intake: Intake) -> list[FrontService]:
    """Returns the services that a gRPC server registers.

    Args:
        api: translates.
        intake: reads messages.
    """
    unary, handlers = grpc.stream_unary_rpc_method_handler, GoogleHandlers(api)
    methods = {
        "TranslateText": unary(parsed(google.TranslateTextRequest, handlers.translate_text, intake, api.check_open)),
        "DetectLanguage": unary(parsed(google.DetectLanguageRequest, handlers.detect_language, intake, api.check_open)),
        "GetSupportedLanguages": unary(
            parsed(google.GetSupportedLanguagesRequest, handlers.get_supported_languages, intake)
        ),
        "ListGlossaries": unary(parsed(google.ListGlossariesRequest, handlers.list_glossaries, intake)),
        "GetGlossary": unary(parsed(google.GetGlossaryRequest, handlers.get_glossary, intake)),
    }
    return [FrontService(name, methods) for name in front.SERVICE_NAMES]
