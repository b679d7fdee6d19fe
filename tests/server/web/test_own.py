"""Our own API over a real socket."""

import asyncio
import json

import pytest

from server.errors import EngineFailed, Overloaded
from tests.server.echo_engine import EchoEngine
from tests.server.web.client import head
from tests.server.web.conftest import Connect, Site

TEXT = "A dog runs. A man sits."
REQUEST = {"contents": [TEXT], "targetLanguageCode": "de"}


def events_of(body: bytes) -> list[tuple[str, dict[str, object]]]:
    """The name and the data of each event."""
    events = []
    for event in body.decode().strip().split("\n\n"):
        lines = dict(line.split(": ", 1) for line in event.split("\n"))
        events.append((lines.get("event", ""), json.loads(lines["data"])))
    return events


async def test_texts_are_translated(site: Site) -> None:
    answer = await site.call("POST", "/v1/translate", REQUEST)

    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json["translations"][0]["text"] == TEXT
    assert (answer.json["model"], answer.json["sourceLanguageCode"]) == ("echo", "en")


async def test_a_stream_has_an_event_for_each_sentence_and_an_end(site: Site) -> None:
    answer = await site.call("POST", "/v1/translate/stream", REQUEST)

    *sentences, end = events_of(answer.body)
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert {data["sentence"]["text"] for _, data in sentences} == {"A dog runs.", "A man sits."}  # type: ignore[index]
    assert end == ("end", {})


async def test_a_stream_has_what_unfinished_sentences_have_so_far_on_request(
    site: Site, connect: Connect, engine: EchoEngine
) -> None:
    engine.is_holding = True
    reader, writer = await connect(site.port)
    body = json.dumps({**REQUEST, "contents": ["A dog runs."], "decoding": {"beamSize": 1}}).encode()
    path = "/v1/translate/stream?include_partial_text=true"
    writer.write(head("POST", path, {"content-length": str(len(body)), "connection": "close"}) + body)
    await engine.submitted.wait()
    beginning = await reader.readuntil(b"partialText")
    engine.release(0)
    rest = await reader.read()

    assert b'"sentence":' not in beginning
    assert rest.index(b'"sentence":') < rest.index(b"event: end")


@pytest.mark.parametrize(("query", "status"), [("", 200), ("false", 200), ("true", 400), ("1", 400), ("x" * 999, 400)])
async def test_partial_text_is_asked_for_by_true_with_greedy_search(site: Site, query: str, status: int) -> None:
    path = "/v1/translate/stream" + (f"?include_partial_text={query}" if query else "")

    answer = await site.call("POST", path, {**REQUEST, "decoding": {"beamSize": 4}})

    assert answer.status == status
    assert status == 200 or answer.json["error"]["message"].startswith("include_partial_text: ")
    assert len(answer.body) < 999


async def test_an_error_before_the_first_sentence_has_its_status(site: Site, engine: EchoEngine) -> None:
    engine.refuses = Overloaded("queue is full", "sentences", retry_after_seconds=1.2)

    answer = await site.call("POST", "/v1/translate/stream", REQUEST)

    assert (answer.status, answer.headers["retry-after"]) == (429, "2")


async def begun_stream(site: Site, connect: Connect, engine: EchoEngine) -> asyncio.StreamReader:
    """A stream of two sentences whose first one has come."""
    engine.is_holding = True
    reader, writer = await connect(site.port)
    body = json.dumps(REQUEST).encode()
    writer.write(head("POST", "/v1/translate/stream", {"content-length": str(len(body)), "connection": "close"}) + body)
    await engine.submitted.wait()
    engine.release(0)
    await reader.readuntil(b"A dog runs.")
    return reader


async def test_an_error_amid_a_stream_is_its_last_event(site: Site, connect: Connect, engine: EchoEngine) -> None:
    reader = await begun_stream(site, connect, engine)
    site.running.refuse()
    engine.fails = lambda _: EngineFailed("translation failed")
    engine.release(1)

    rest = await reader.read()

    assert b"translation failed" in rest


async def test_a_stream_that_the_server_cuts_off_at_its_end_says_so(
    site: Site, connect: Connect, engine: EchoEngine, caplog: pytest.LogCaptureFixture
) -> None:
    reader = await begun_stream(site, connect, engine)
    await site.server.stop()

    rest = await reader.read()

    assert b"event: error" in rest
    assert b"the server is shutting down" in rest
    assert rest.endswith(b"0\r\n\r\n")
    assert not [record for record in caplog.records if record.exc_info]


async def test_pairs_are_scored_and_models_and_glossaries_are_listed(site: Site) -> None:
    pairs = {"pairs": [{"source": "A dog.", "target": "A dog."}], "targetLanguageCode": "de"}

    assert len((await site.call("POST", "/v1/score", pairs)).json["scores"]) == 1
    assert (await site.call("GET", "/v1/models")).json["models"][0]["name"] == "echo"
    assert (await site.call("GET", "/v1/glossaries")).json == {}
    detected = await site.call("POST", "/v1/detect", {"contents": ["A dog."]})
    assert detected.json == {"detections": [{"languageCode": "en"}]}


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ({"contents": ["a"], "targetLanguageCode": "xx"}, 400, "target_language_code: must be one of de, not xx"),
        ({"contents": ["a"], "targetLanguageCode": "de", "model": "none"}, 404, "model: none is not served here"),
        ({"contents": "a"}, 400, "body: must be the JSON form of babelserve.v1.TranslateRequest, not so: "),
        (b"{", 400, "body: must be JSON in UTF-8"),
        (b"", 400, "body: must be JSON in UTF-8"),
        ([], 400, "contents"),
    ],
)
async def test_errors_have_their_status_and_words(site: Site, body: object, status: int, words: str) -> None:
    answer = await site.call("POST", "/v1/translate", body)

    assert (answer.status, answer.json["error"]["code"]) == (status, status)
    assert words in answer.json["error"]["message"]


async def test_health_is_that_of_the_server(site: Site) -> None:
    assert (await site.call("GET", "/healthz")).json == {"status": "ok"}
    site.running.refuse()

    assert (await site.call("GET", "/healthz")).status == 503
    assert (await site.call("POST", "/v1/translate", REQUEST)).json["error"]["status"] == "UNAVAILABLE"
