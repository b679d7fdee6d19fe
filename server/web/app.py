"""The application that serves all fronts over HTTP."""

from collections.abc import Sequence

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp

from server.fronts.backend import Backend
from server.translation.long_messages import LongMessages
from server.web.bodies import Bodies
from server.web.exchange import REQUEST_ID_HEADER, Site
from server.web.libretranslate import LibreTranslateApi
from server.web.own import OwnApi


def create_app(backend: Backend, long_messages: LongMessages, origins: Sequence[str] = ()) -> ASGIApp:
    """Returns the application.

    Args:
        backend: answers.
        long_messages: says when a long body may be parsed.
        origins: of web pages that may call, or "*"; none by default.
    """
    site = Site(backend, Bodies(long_messages))
    routes = [*OwnApi(site).routes(), *LibreTranslateApi(site).routes()]
    cors = Middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=["GET", "POST"],
        allow_headers=["*"],
        expose_headers=[REQUEST_ID_HEADER, "retry-after"],
    )
    app = Starlette(routes=routes, middleware=[cors] if origins else [])
    app.router.redirect_slashes = False  # it would send callers to whatever host their request names
    return app
