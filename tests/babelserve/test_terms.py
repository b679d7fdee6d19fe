"""What both clients tell of the server's glossaries."""

from babelserve import AsyncClient, Client, GlossaryInfo, UsedGlossary
from babelserve.v1 import translation_pb2
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService

INFO = GlossaryInfo(name="it", source="en", target="de", num_terms=7, version="0123456789ab")
USED = (UsedGlossary(name="law", version="1"), UsedGlossary(name="it", version="1"))
NAMES = ["law", "it"]


def _add_glossary(service: ScriptedService) -> None:
    info = translation_pb2.GlossaryInfo(
        name="it", source_language_code="en", target_language_code="de", num_terms=7, version="0123456789ab"
    )
    service.glossaries.append(info)


def test_glossaries_are_listed_and_each_answer_names_those_that_it_was_made_with(
    client: Client, service: ScriptedService
) -> None:
    assert client.list_glossaries() == ()

    _add_glossary(service)

    assert client.list_glossaries() == (INFO,)
    assert client.translate(["a"], target="de", glossaries=NAMES).glossaries == USED
    assert [each.glossaries for each in client.translate_stream(["a"], target="de", glossaries=NAMES)] == [USED]
    assert [each.glossaries for each in client.translate_bulk(["a"], target="de", glossaries=NAMES)] == [USED]
    assert client.translate(["a"], target="de").glossaries == ()


async def test_so_it_is_with_asyncio(server: ScriptedServer, service: ScriptedService) -> None:
    _add_glossary(service)

    async with AsyncClient(server.address) as client:
        assert await client.list_glossaries() == (INFO,)
        assert (await client.translate(["a"], target="de", glossaries=NAMES)).glossaries == USED
        assert [each.glossaries async for each in client.translate_stream(["a"], target="de", glossaries=NAMES)] == [
            USED
        ]
        assert [each.glossaries async for each in client.translate_bulk(["a"], target="de", glossaries=NAMES)] == [USED]
