"""The application that serves all fronts over HTTP."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from server.documents.documents import Documents
from server.fronts.backend import Backend
from server.translation.long_messages import LongMessages
from server.web.azure import AzureApi
from server.web.bodies import Bodies
from server.web.deepl import DeepLApi
from server.web.deepl_documents import DeepLDocuments
from server.web.deepl_glossaries import DeepLGlossaries
from server.web.documents import DocumentsApi
from server.web.exchange import REQUEST_ID_HEADER, Site
from server.web.google import GoogleApi
from server.web.kserve import KserveApi
from server.web.libretranslate import LibreTranslateApi
from server.web.libretranslate_files import LibreTranslateFiles
from server.web.own import OwnApi
from server.web.page_files import page_routes


def create_app(
    backend: Backend, long_messages: LongMessages, documents: Documents, origins: Sequence[str] = ()
) -> ASGIApp:
    """Returns the application.

    Args:
        backend: answers.
        long_messages: says when a long body may be parsed.
        documents: translates files.
        origins: of web pages that may call, or "*"; none by default.
    """
    site = Site(backend, Bodies(long_messages))
    plain = (OwnApi, AzureApi, LibreTranslateApi, DeepLApi, DeepLGlossaries, KserveApi, GoogleApi)
    with_files = (DocumentsApi, LibreTranslateFiles, DeepLDocuments)
    fronts = [*(front(site) for front in plain), *(front(site, documents) for front in with_files)]
    routes = [*(route for front in fronts for route in front.routes()), *page_routes(site)]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
        allow_headers=["*"],
        expose_headers=[REQUEST_ID_HEADER, "retry-after"],
    )
    app = Starlette(routes=routes, middleware=[cors] if origins else [])
    app.router.redirect_slashes = False  # it would send callers to whatever host their request names
    return app
