"""HTML through the service behind a real gRPC server; the engine echoes, so that every tag has one right place."""

import grpc
import pytest

from babelserve.v1 import translation_pb2 as pb
from server.models.model import Model
from tests.server.conftest import Live
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import request, streamed

PAGE = (
    "<!DOCTYPE html>\n<html><head><title>A dog</title><style>p { color: red }</style></head>\n"
    '<body class="x">\n  <p>A <b>red</b> dog runs. <i>Two dogs run.</i></p>\n'
    "<ul>\n<li>A dog runs &amp; sits.<li><a href='?a=1&b=2'>Three</a></ul>\n<!-- <p>Four</p> -->\n"
    "<pre>A  dog</pre><p>A dog runs <code>x &lt; 1</code> now.<br>A man sits.</body></html>\n"
)


async def test_a_page_comes_back_whole(live: Live) -> None:
    response = await live.stub.Translate(request(PAGE, mime_type="text/html"))

    assert response.translations[0].text == PAGE


async def test_the_engine_is_shown_what_it_would_be_shown_without_tags(live: Live, engine: EchoEngine) -> None:
    plain = await live.stub.Translate(request("A red dog runs.", output=pb.OutputOptions(include_sentences=True)))
    marked = await live.stub.Translate(
        request(
            "<p>A <b>red</b> <i>dog</i> runs.</p>",
            mime_type="text/html",
            output=pb.OutputOptions(include_sentences=True),
        )
    )

    (sentence,) = marked.translations[0].sentences
    assert sentence.source_text == plain.translations[0].sentences[0].source_text
    assert sentence.source_tokens == plain.translations[0].sentences[0].source_tokens
    assert (sentence.text, sentence.separator) == ("A <b>red</b> <i>dog</i> runs.", "</p>")


async def test_a_stream_of_a_document_joins_to_the_same(live: Live) -> None:
    whole = await live.stub.Translate(request(PAGE, mime_type="text/html"))

    responses = await streamed(live, PAGE, mime_type="text/html")

    parts = sorted(responses, key=lambda response: response.sentence_index)
    text = parts[0].leading + "".join(part.sentence.text + part.sentence.separator for part in parts)
    assert text == whole.translations[0].text


async def test_only_sentences_with_tags_in_them_are_aligned(live: Live, engine: EchoEngine, model: Model) -> None:
    assert model.manifest.alignment is None
    await live.stub.Translate(request("<p>A <b>red</b> dog.", mime_type="text/html"))
    assert [options.with_alignment for options in engine.options] == [False]


async def test_a_kept_element_is_told_as_it_stands_in_the_document(live: Live) -> None:
    response = await live.stub.Translate(request("<p>Press <kbd>F1</kbd> now.", mime_type="text/html"))

    assert [part.text for part in response.translations[0].kept] == ["<kbd>F1</kbd>"]


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        (
            {"decoding": pb.DecodingOptions(num_hypotheses=2)},
            "decoding.num_hypotheses: must be 1 with text/html, not 2",
        ),
        (
            {"output": pb.OutputOptions(include_alignment=True)},
            "output.include_alignment: must be false with text/html",
        ),
    ],
)
async def test_what_markup_excludes_is_refused(live: Live, fields: dict[str, object], named: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await live.stub.Translate(request("A dog.", mime_type="text/html", **fields))

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert named in str(caught.value.details())


async def test_a_document_of_too_many_sentences_is_refused_by_its_number(
    live: Live, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("server.text.splitter.MAX_SENTENCES", 1000)
    response = await live.stub.Translate(request("<p>One.", "<p>A.</p>" * 1000, mime_type="text/html"))

    assert response.translations[0].text == "<p>One."
    assert "contents[1]: makes more than 999 sentences" in response.translations[1].status.message


async def test_a_broken_document_fails_alone_and_is_named(live: Live) -> None:
    response = await live.stub.Translate(request("<a>", "<xliff>A dog.</xliff>", mime_type="application/xliff+xml"))

    assert response.translations[0].status.message.startswith("contents[0]: must be well-formed XML, but at character ")
    assert response.translations[1].text == "<xliff>A dog.</xliff>"
