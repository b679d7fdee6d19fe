"""DeepL's paths for glossaries, of versions 2 and 3."""

import asyncio
from collections.abc import Callable

from starlette.responses import Response
from starlette.routing import Route

from babelserve.v1 import glossary_store_pb2 as pb
from server.errors import InvalidRequest, PreconditionFailed
from server.fronts.backend import Caller
from server.fronts.deepl import FRONT, Fields, optional, required
from server.fronts.deepl_glossaries import (
    Pairs,
    merged,
    read_dictionaries,
    read_dictionary,
    read_id,
    read_pair,
    read_v2,
    read_v3,
    refusal,
    replaced,
    without,
    write_all_v2,
    write_dictionary_of,
    write_entries,
    write_tsv,
    write_v2,
    write_v3,
)
from server.fronts.deepl_languages import glossary_pairs
from server.web.deepl import PREFIXES, read
from server.web.exchange import Exchange, Handler, Site, json_response

_MOST_TRIES = 8  # to change a glossary that others change meanwhile


class DeepLGlossaries:
    """Handles the requests of DeepL's clients that concern glossaries.

    Args:
        site: has what endpoints share.
    """

    def __init__(self, site: Site) -> None:
        self._site = site
        self._backend = site.backend

    def routes(self) -> list[Route]:
        """Returns the routes that an application has for it."""
        handlers: dict[str, Handler] = {
            "POST /v2/glossaries": self.create_v2,
            "GET /v2/glossaries": self.list_v2,
            "GET /v2/glossaries/{id}": self.get_v2,
            "GET /v2/glossaries/{id}/entries": self.entries_v2,
            "DELETE /v2/glossaries/{id}": self.delete,
            "POST /v3/glossaries": self.create_v3,
            "GET /v3/glossaries": self.list_v3,
            "GET /v3/glossaries/{id}": self.get_v3,
            "GET /v3/glossaries/{id}/entries": self.entries_v3,
            "PATCH /v3/glossaries/{id}": self.patch,
            "DELETE /v3/glossaries/{id}": self.delete,
            "PUT /v3/glossaries/{id}/dictionaries": self.put_dictionary,
            "DELETE /v3/glossaries/{id}/dictionaries": self.delete_dictionary,
        }
        return self._site.routes(FRONT, handlers, PREFIXES)

    async def create_v2(self, exchange: Exchange) -> Response:
        """Keeps a glossary of one direction."""
        return json_response(write_v2(await self._create(exchange, read_v2)), 201)

    async def list_v2(self, exchange: Exchange) -> Response:
        """Answers with the glossaries of one direction."""
        _, caller = await read(exchange)
        return json_response(write_all_v2(await self._backend.list_kept_glossaries(caller)))

    async def get_v2(self, exchange: Exchange) -> Response:
        """Answers with the description of a glossary of one direction."""
        return json_response(write_v2(await self._describe(exchange)))

    async def entries_v2(self, exchange: Exchange) -> Response:
        """Answers with the entries of a glossary of one direction, as TSV."""
        _, caller = await read(exchange)
        return await self._backend.read_glossary(
            _named(exchange), caller, lambda kept: Response(write_tsv(kept), media_type="text/tab-separated-values")
        )

    async def create_v3(self, exchange: Exchange) -> Response:
        """Keeps a glossary."""
        return json_response(write_v3(await self._create(exchange, read_v3)), 201)

    async def list_v3(self, exchange: Exchange) -> Response:
        """Answers with all glossaries."""
        _, caller = await read(exchange)
        listed = await self._backend.list_kept_glossaries(caller)
        return json_response({"glossaries": [write_v3(each) for each in listed.glossaries]})

    async def get_v3(self, exchange: Exchange) -> Response:
        """Answers with the description of a glossary."""
        return json_response(write_v3(await self._describe(exchange)))

    async def entries_v3(self, exchange: Exchange) -> Response:
        """Answers with the entries of a glossary's dictionary, or of all."""
        fields, caller = await read(exchange)
        return await self._backend.read_glossary(
            _named(exchange), caller, lambda kept: json_response(write_entries(kept, fields))
        )

    async def patch(self, exchange: Exchange) -> Response:
        """Changes the name of a glossary, or adds entries to a dictionary."""
        fields, caller = await read(exchange)
        title = required(fields, "name") if "name" in fields else optional(fields, "name")
        dictionaries = await asyncio.to_thread(read_dictionaries, fields, await self._pairs(caller))
        changed = await self._change(_named(exchange), caller, lambda kept: merged(kept, title, dictionaries))
        return json_response(write_v3(changed))

    async def put_dictionary(self, exchange: Exchange) -> Response:
        """Replaces a dictionary of a glossary, or adds one."""
        fields, caller = await read(exchange)
        dictionary = await asyncio.to_thread(read_dictionary, fields, await self._pairs(caller))
        changed = await self._change(_named(exchange), caller, lambda kept: replaced(kept, dictionary))
        return json_response(write_dictionary_of(changed, read_pair(fields)))

    async def delete_dictionary(self, exchange: Exchange) -> Response:
        """Takes a dictionary out of a glossary."""
        fields, caller = await read(exchange)
        pair = read_pair(fields)
        await self._change(_named(exchange), caller, lambda kept: without(kept, pair))
        return Response(status_code=204)

    async def delete(self, exchange: Exchange) -> Response:
        """Forgets a glossary."""
        _, caller = await read(exchange)
        await self._backend.delete_glossary(pb.DeleteKeptGlossaryRequest(id=_id(exchange)), caller)
        return Response(status_code=204)

    async def _pairs(self, caller: Caller) -> Pairs:
        return glossary_pairs(await self._backend.list_models(caller))

    async def _describe(self, exchange: Exchange) -> pb.KeptGlossary:
        """Returns the glossary that the path names, without its terms."""
        _, caller = await read(exchange)
        return await self._backend.get_glossary(_named(exchange, without_terms=True), caller)

    async def _create(
        self, exchange: Exchange, read_glossary: Callable[[Fields, Pairs], pb.KeptGlossary]
    ) -> pb.KeptGlossary:
        fields, caller = await read(exchange)
        pairs = await self._pairs(caller)
        return await self._put(await asyncio.to_thread(lambda: _to_put(read_glossary(fields, pairs))), caller)

    async def _put(self, request: pb.PutKeptGlossaryRequest, caller: Caller) -> pb.KeptGlossary:
        try:
            return await self._backend.put_glossary(request, caller)
        except InvalidRequest as error:
            raise refusal(error) from None

    async def _change(
        self, named: pb.GetKeptGlossaryRequest, caller: Caller, change: Callable[[pb.KeptGlossary], pb.KeptGlossary]
    ) -> pb.KeptGlossary:
        """Changes a glossary, and does so again if somebody else has changed it meanwhile."""
        for tries_left in reversed(range(_MOST_TRIES)):
            request = await self._backend.read_glossary(named, caller, lambda kept: _to_put(change(kept)))
            try:
                return await self._put(request, caller)
            except PreconditionFailed:
                described = pb.GetKeptGlossaryRequest(id=named.id, without_terms=True)
                now = await self._backend.get_glossary(described, caller)
                if not tries_left or now.revision == request.glossary.revision:
                    raise
        raise AssertionError("the last try returns or raises")


def _named(exchange: Exchange, *, without_terms: bool = False) -> pb.GetKeptGlossaryRequest:
    return pb.GetKeptGlossaryRequest(id=_id(exchange), without_terms=without_terms)


def _to_put(glossary: pb.KeptGlossary) -> pb.PutKeptGlossaryRequest:
    return pb.PutKeptGlossaryRequest(glossary=glossary)


def _id(exchange: Exchange) -> str:
    return read_id(exchange.request.path_params["id"])
