"""NVIDIA Riva's text translation over gRPC: what `server.fronts.riva` reads and writes."""

import grpc

from babelserve.v1 import translation_pb2 as pb
from server.api.handlers import Api
from server.fronts import riva as front
from server.fronts.fields import fields_named
from server.fronts.v1 import riva_pb2 as riva
from server.rpc.front_service import FrontService
from server.rpc.intake import Intake
from server.rpc.parsed import parsed


class RivaHandlers:
    """Answers the messages of Riva's service. `seconds` is what the caller still waits; None for ever.

    Args:
        api: translates.
    """

    def __init__(self, api: Api) -> None:
        self._api = api

    async def translate_text(
        self, asked: riva.RivaTranslateTextRequest, seconds: float | None
    ) -> riva.RivaTranslateTextResponse:
        """Translates all texts. Raises TranslationError if one of them fails."""
        with fields_named(front.FIELDS):
            return front.write_translate(asked, await self._api.translate(front.read_translate(asked), seconds))

    async def list_languages(self, asked: riva.RivaLanguagesRequest, _: float | None) -> riva.RivaLanguagesResponse:
        """Lists the languages of each model. Raises TranslationError."""
        return front.write_languages(asked, await self._api.list_models(pb.ListModelsRequest()))


def riva_service(api: Api, intake: Intake) -> FrontService:
    """Returns the service that a gRPC server registers.

    Args:
        api: translates.
        intake: reads messages.
    """
    unary, handlers = grpc.stream_unary_rpc_method_handler, RivaHandlers(api)
    methods = {
        "TranslateText": unary(parsed(riva.RivaTranslateTextRequest, handlers.translate_text, intake, api.check_open)),
        "ListSupportedLanguagePairs": unary(parsed(riva.RivaLanguagesRequest, handlers.list_languages, intake)),
    }
    return FrontService(front.SERVICE_NAME, methods)
