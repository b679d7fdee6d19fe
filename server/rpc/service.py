"""`babelserve.v1.TranslationService` and `GlossaryStore` over gRPC: what `server.api` answers, and `TranslateBulk`.

Other vendors' services stand beside it.

It lets errors pass: `server.rpc.interceptors` answers them.
"""

from collections.abc import Callable
from typing import Any

import grpc

from babelserve.v1 import glossary_store_pb2 as store_pb
from babelserve.v1 import translation_pb2 as pb
from server.api.handlers import Api
from server.rpc.bulk import BulkHandler
from server.rpc.front_service import FrontService
from server.rpc.google import google_services
from server.rpc.intake import Intake
from server.rpc.kserve import KserveHandlers
from server.rpc.parsed import parsed, parsed_stream
from server.rpc.riva import riva_service
from server.translation.running_calls import RunningCalls
from server.translation.translator import Translator

SERVICE_NAME = "babelserve.v1.TranslationService"
STORE_NAME = "babelserve.v1.GlossaryStore"
BULK_METHOD = "TranslateBulk"


class TranslationService:
    """The handlers of all methods.

    Args:
        translator: accepts requests.
        intake: reads messages.
        running: says when the server shuts down.
    """

    def __init__(self, translator: Translator, intake: Intake, running: RunningCalls) -> None:
        self._api = Api(translator)
        self._translator = translator
        self._intake = intake
        self._running = running
        self._bulk = BulkHandler(self._api, intake, translator.memory, running)

    def handler(self) -> "grpc.GenericRpcHandler[Any, Any]":
        """Returns the handlers that a gRPC server registers."""
        # Clients of the other methods send one message, which `server.rpc.intake` reads when it is its turn.
        unary, stream = grpc.stream_unary_rpc_method_handler, grpc.stream_stream_rpc_method_handler
        api, intake = self._api, self._intake
        stream_request = pb.TranslateStreamRequest
        methods = {
            "Translate": unary(parsed(pb.TranslateRequest, api.translate, intake, api.check_open)),
            "TranslateStream": stream(parsed_stream(stream_request, api.translate_stream, intake, api.check_open)),
            "Score": unary(parsed(pb.ScoreRequest, api.score, intake, api.check_open)),
            BULK_METHOD: stream(self._bulk.handle),
            "ListModels": unary(parsed(pb.ListModelsRequest, api.list_models, intake)),
            "ListGlossaries": unary(parsed(pb.ListGlossariesRequest, api.list_glossaries, intake)),
            "DetectLanguages": unary(parsed(pb.DetectLanguagesRequest, api.detect_languages, intake, api.check_open)),
        }
        return grpc.method_handlers_generic_handler(SERVICE_NAME, methods)

    def store_handler(self) -> "grpc.GenericRpcHandler[Any, Any]":
        """Returns the handlers of `babelserve.v1.GlossaryStore`."""
        unary, store, intake = grpc.stream_unary_rpc_method_handler, self._api.glossary_store, self._intake
        methods = {
            "PutKeptGlossary": unary(parsed(store_pb.PutKeptGlossaryRequest, store.put, intake, self._api.check_open)),
            "GetKeptGlossary": unary(parsed(store_pb.GetKeptGlossaryRequest, store.get, intake, self._api.check_open)),
            "ListKeptGlossaries": unary(parsed(store_pb.ListKeptGlossariesRequest, store.list, intake)),
            "DeleteKeptGlossary": unary(parsed(store_pb.DeleteKeptGlossaryRequest, store.delete, intake)),
        }
        return grpc.method_handlers_generic_handler(STORE_NAME, methods)

    def front_handlers(self, is_ready: Callable[[str], bool]) -> tuple[FrontService, ...]:
        """Returns the handlers of other vendors' services.

        Args:
            is_ready: says whether requests for a model are welcome; with an empty name, whether any are.
        """
        api, intake = self._api, self._intake
        return (
            *google_services(api, intake),
            riva_service(api, intake),
            KserveHandlers(api, self._translator, intake, self._running, is_ready).service(),
        )
