"""Glossaries in requests and terms in answers, through the service behind a real gRPC server; the engine echoes."""

import grpc
import pytest

from babelserve.v1 import translation_pb2 as pb
from server.models.model import Model
from tests.server.conftest import Live
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import request, streamed


def glossary(*terms: tuple[str, str], ignore_case: bool = False) -> pb.Glossary:
    return pb.Glossary(terms=[pb.Term(source=a, target=b) for a, b in terms], ignore_case=ignore_case)


async def test_a_term_that_a_translation_has_is_told_with_its_places(live: Live, engine: EchoEngine) -> None:
    asked = request("A man sits. A dog runs.", glossary=glossary(("dog", "dog"), ("cat", "Katze")))
    response = await live.stub.Translate(asked)

    (translation,) = response.translations
    assert list(translation.terms) == [
        pb.UsedTerm(
            source="dog",
            target="dog",
            source_begin=14,
            source_end=17,
            begin=14,
            end=17,
            status=pb.TERM_STATUS_APPLIED,
        )
    ]
    assert len(engine.options) == 1, "it is asked once"


async def test_a_sentence_that_lacks_a_term_is_searched_again_with_a_wide_beam(
    live: Live, engine: EchoEngine, model: Model
) -> None:
    asked = request("A man sits. A dog runs.", glossary=glossary(("dog", "Hund")))
    asked.decoding.beam_size = 1
    asked.decoding.with_scores = False
    response = await live.stub.Translate(asked)

    first, again = engine.options
    assert (first.beam_size, first.terms) == (1, None)
    assert (again.beam_size, again.with_scores, again.use_shortlist) == (8, True, False)
    assert again.terms is not None
    assert [model.tokenizer.decode(form) for forms in again.terms.forms for form in forms] == ["Hund"]
    (used,) = response.translations[0].terms
    assert (used.target, used.status, used.source_begin) == ("", pb.TERM_STATUS_MISSED, 14), "the echo has no term"


async def test_sentences_have_their_terms_and_those_of_markup_have_no_places(live: Live) -> None:
    asked = request(
        "<p>A <b>dog</b> runs.</p>",
        glossary=glossary(("dog", "dog")),
        mime_type="text/html",
        output=pb.OutputOptions(include_sentences=True),
    )
    response = await live.stub.Translate(asked)

    (translation,) = response.translations
    expected = [pb.UsedTerm(source="dog", target="dog", status=pb.TERM_STATUS_APPLIED)]
    assert list(translation.terms) == expected
    assert list(translation.sentences[0].terms) == expected


async def test_a_stream_tells_of_terms_by_sentence(live: Live) -> None:
    responses = await streamed(live, "A man sits. A dog runs.", glossary=glossary(("dog", "dog")))

    dog = pb.UsedTerm(source="dog", target="dog", status=pb.TERM_STATUS_APPLIED)
    dog.source_begin, dog.source_end, dog.begin, dog.end = 2, 5, 2, 5
    in_order = sorted(responses, key=lambda each: each.sentence_index)
    assert [list(each.sentence.terms) for each in in_order] == [[], [dog]]


async def test_a_glossary_that_breaks_a_rule_names_its_field(live: Live) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await live.stub.Translate(request("A dog.", glossary=glossary(("dog", "Hund"), ("", "Katze"))))

    assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert "glossary.terms[1].source: must have 1 to 200 characters" in str(caught.value.details())
