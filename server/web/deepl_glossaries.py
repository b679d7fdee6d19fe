"""DeepL's paths for glossaries, of versions 2 and 3."""

from collections.abc import Callable

from starlette.responses import Response
from starlette.routing import Route

from babelserve.v1 import glossary_store_pb2 as pb
from server.errors import InvalidRequest, PreconditionFailed
from server.fronts.backend import Caller
from server.fronts.deepl import FRONT, optional, required
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
        fields, caller = await read(exchange)
        glossary = read_v2(fields, await self._pairs(caller))
        return json_response(write_v2(await self._put(glossary, caller)), 201)

    async def list_v2(self, exchange: Exchange) -> Response:
        """Answers with the glossaries of one direction."""
        _, caller = await read(exchange)
        return json_response(write_all_v2(await self._backend.list_kept_glossaries(caller)))

    async def get_v2(self, exchange: Exchange) -> Response:
        """Answers with the description of a glossary of one direction."""
        return json_response(write_v2(await self._read_and_get(exchange)))

    async def entries_v2(self, exchange: Exchange) -> Response:
        """Answers with the entries of a glossary of one direction, as TSV."""
        return Response(write_tsv(await self._read_and_get(exchange)), media_type="text/tab-separated-values")

    async def create_v3(self, exchange: Exchange) -> Response:
        """Keeps a glossary."""
        fields, caller = await read(exchange)
        glossary = read_v3(fields, await self._pairs(caller))
        return json_response(write_v3(await self._put(glossary, caller)), 201)

    async def list_v3(self, exchange: Exchange) -> Response:
        """Answers with all glossaries."""
        _, caller = await read(exchange)
        listed = await self._backend.list_kept_glossaries(caller)
        return json_response({"glossaries": [write_v3(each) for each in listed.glossaries]})

    async def get_v3(self, exchange: Exchange) -> Response:
        """Answers with the description of a glossary."""
        return json_response(write_v3(await self._read_and_get(exchange)))

    async def entries_v3(self, exchange: Exchange) -> Response:
        """Answers with the entries of a glossary's dictionary, or of all."""
        fields, caller = await read(exchange)
        return json_response(write_entries(await self._get(_id(exchange), caller), fields))

    async def patch(self, exchange: Exchange) -> Response:
        """Changes the name of a glossary, or adds entries to a dictionary."""
        fields, caller = await read(exchange)
        title = required(fields, "name") if "name" in fields else optional(fields, "name")
        dictionaries = read_dictionaries(fields, await self._pairs(caller))
        changed = await self._change(_id(exchange), caller, lambda kept: merged(kept, title, dictionaries))
        return json_response(write_v3(changed))

    async def put_dictionary(self, exchange: Exchange) -> Response:
        """Replaces a dictionary of a glossary, or adds one."""
        fields, caller = await read(exchange)
        dictionary = read_dictionary(fields, await self._pairs(caller))
        changed = await self._change(_id(exchange), caller, lambda kept: replaced(kept, dictionary))
        return json_response(write_dictionary_of(changed, read_pair(fields)))

    async def delete_dictionary(self, exchange: Exchange) -> Response:
        """Takes a dictionary out of a glossary."""
        fields, caller = await read(exchange)
        pair = read_pair(fields)
        await self._change(_id(exchange), caller, lambda kept: without(kept, pair))
        return Response(status_code=204)

    async def delete(self, exchange: Exchange) -> Response:
        """Forgets a glossary."""
        _, caller = await read(exchange)
        await self._backend.delete_glossary(pb.DeleteKeptGlossaryRequest(id=_id(exchange)), caller)
        return Response(status_code=204)

    async def _pairs(self, caller: Caller) -> Pairs:
        return glossary_pairs(await self._backend.list_models(caller))

    async def _read_and_get(self, exchange: Exchange) -> pb.KeptGlossary:
        """Returns the glossary that the path names."""
        _, caller = await read(exchange)
        return await self._get(_id(exchange), caller)

    async def _get(self, identity: str, caller: Caller) -> pb.KeptGlossary:
        return await self._backend.get_glossary(pb.GetKeptGlossaryRequest(id=identity), caller)

    async def _put(self, glossary: pb.KeptGlossary, caller: Caller) -> pb.KeptGlossary:
        try:
            return await self._backend.put_glossary(pb.PutKeptGlossaryRequest(glossary=glossary), caller)
        except InvalidRequest as error:
            raise refusal(error) from None

    async def _change(
        self, identity: str, caller: Caller, change: Callable[[pb.KeptGlossary], pb.KeptGlossary]
    ) -> pb.KeptGlossary:
        """Changes a glossary, and does so again if somebody else has changed it meanwhile."""
        for tries_left in reversed(range(_MOST_TRIES)):
            kept = await self._get(identity, caller)
            try:
                return await self._put(change(kept), caller)
            except PreconditionFailed:
                if not tries_left or (await self._get(identity, caller)).revision == kept.revision:
                    raise
        raise AssertionError("the last try returns or raises")


def _id(exchange: Exchange) -> str:
    return read_id(exchange.request.path_params["id"])
