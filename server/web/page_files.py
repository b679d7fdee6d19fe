"""The page for people, the page of the API, and its description: files of this package, as they are."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.responses import Response
from starlette.routing import Route

from server.fronts.own import FRONT
from server.web.exchange import Exchange, Handler, Site

_FOLDER = Path(__file__).parent
_KINDS = {
    ".css": "text/css",
    ".html": "text/html",
    ".json": "application/json",
    ".mjs": "text/javascript",
    ".svg": "image/svg+xml",
    ".yaml": "application/yaml",
}
_HEADERS = {
    # Scripts, styles and requests of this server alone; and no text can become markup.
    "content-security-policy": "default-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # a browser asks whether a file is still the same
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file that browsers get.

    Attributes:
        content: in UTF-8.
        kind: the media type.
        tag: changes with the content.
    """

    content: bytes
    kind: str
    tag: str

    @classmethod
    def read(cls, path: Path) -> "PageFile":
        """Reads a file whose name ends like one of `_KINDS`."""
        content = path.read_bytes()
        return cls(content, _KINDS[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:16]}"')

    async def answer(self, exchange: Exchange) -> Response:
        """Returns the answer to a request: without the content if the browser has it."""
        headers = _HEADERS | {"etag": self.tag}
        if exchange.request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, headers=headers, media_type=self.kind)


def page_routes(site: Site) -> list[Route]:
    """Returns the routes of the page on which people translate, of the page that shows the API, and of their files.

    Args:
        site: has what endpoints share.
    """
    files = {path.name: PageFile.read(path) for path in (_FOLDER / "page").iterdir()}
    handlers: dict[str, Handler] = {f"GET /page/{name}": file.answer for name, file in files.items()}
    handlers["GET /"] = files["index.html"].answer
    handlers["GET /docs"] = files["docs.html"].answer
    handlers["GET /openapi.yaml"] = PageFile.read(_FOLDER / "openapi.yaml").answer
    return site.routes(FRONT, handlers)
