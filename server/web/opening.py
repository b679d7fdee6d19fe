"""Opens the port of the API over HTTP in the server's own process."""

from collections.abc import Callable

from server.access.access import Access
from server.api.handlers import Api
from server.documents.documents import Documents
from server.fronts.in_process import InProcess
from server.settings.settings import Settings
from server.translation.calls import Calls
from server.translation.long_messages import LongMessages
from server.translation.translator import Translator
from server.web.app import create_app
from server.web.serving import HttpServer


def open_http(
    settings: Settings,
    translator: Translator,
    calls: Calls,
    access: Access,
    long_messages: LongMessages,
    max_connections: int,
    is_serving: Callable[[], bool],
) -> HttpServer:
    """Returns a server that is bound to its port, and does not serve yet.

    Args:
        settings: with `http_port`.
        translator: translates for all fronts.
        calls: runs the calls of all fronts.
        access: knows who may call, and the certificates.
        long_messages: says when a long body may be parsed.
        max_connections: more are answered 503 and closed.
        is_serving: says whether requests are welcome.

    Raises:
        OSError: the port cannot be had.
    """
    assert settings.http_port is not None
    backend = InProcess(Api(translator), calls, access, translator.memory, is_serving)
    documents = Documents(backend)
    return HttpServer(
        create_app(backend, long_messages, documents, settings.http_origins),
        settings.host,
        settings.http_port,
        max_connections,
        is_serving,
        lambda: access.certificates,
        documents.close,
    )
