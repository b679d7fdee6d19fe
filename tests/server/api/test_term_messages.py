"""Glossaries in requests and terms in answers, through the service behind a real gRPC server; the engine echoes."""

import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest
import pytest_asyncio

from babelserve.v1 import translation_pb2 as pb
from server.models.glossaries import Glossaries
from server.models.model import Model
from server.telemetry.metrics import Metrics
from tests.server.conftest import Live
from tests.server.echo_engine import EchoEngine
from tests.server.rpc.parts import request, streamed, told
from tests.server.rpc.test_bulk import bulk, options, text


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
    assert (again.beam_size, again.with_scores, again.use_shortlist) == (6, True, False)
    assert again.terms is not None
    assert "Hund" in [model.tokenizer.decode(form) for form in again.terms.forms[0]]
    (used,) = response.translations[0].terms
    assert (used.target, used.status, used.source_begin) == ("", pb.TERM_STATUS_MISSED, 14), "the echo has no term"


async def test_a_target_may_have_endings_unless_its_term_is_exact(live: Live, engine: EchoEngine, model: Model) -> None:
    asked = request("A dog runs.", glossary=glossary(("dog", "Hund")))
    exact = request("A dog runs.", glossary=glossary(("dog", "Hund")))
    exact.glossary.terms[0].exact = True
    for each in (asked, exact):
        await live.stub.Translate(each)

    _, inflected, _, as_it_stands = (options.terms for options in engine.options)
    assert inflected is not None
    assert as_it_stands is not None
    assert [[model.tokenizer.decode(form) for form in terms.forms[0]] for terms in (inflected, as_it_stands)] == [
        ["Hund", "Hunds", "Hundes"],
        ["Hund"],
    ]


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


ANIMALS, FRENCH = b"en\tde\ndog\tdog\nman\tMann\n", b"en\tfr\ndog\tchien\n"
USED = pb.UsedGlossary(name="animals", version=hashlib.sha256(ANIMALS).hexdigest()[:12])


@pytest_asyncio.fixture
async def loaded(live: Live, tmp_path: Path, metrics: Metrics) -> AsyncIterator[Live]:
    """The server with two glossaries in a folder."""
    (tmp_path / "animals.tsv").write_bytes(ANIMALS)
    (tmp_path / "french.tsv").write_bytes(FRENCH)
    live.translator.glossaries = Glossaries(tmp_path, metrics.glossaries)
    async with live.translator.glossaries.followed():
        yield live


async def test_a_named_glossary_holds_beside_own_terms_and_the_answer_has_its_version(
    loaded: Live, metrics: Metrics
) -> None:
    asked = request("A man sits. A dog runs.", glossary=glossary(("man", "man")))
    asked.glossary.names.append("animals")
    response = await loaded.stub.Translate(asked)

    assert [(term.source, term.target) for term in response.translations[0].terms] == [("man", "man"), ("dog", "dog")]
    assert list(response.glossaries) == [USED]

    asked = request("A man sits. A dog runs.", glossary=pb.Glossary(names=["animals"]))
    response = await loaded.stub.Translate(asked)

    assert [(term.source, term.target) for term in response.translations[0].terms] == [("man", ""), ("dog", "dog")]
    counts = [
        metrics.registry.get_sample_value(
            "babelserve_terms_total", {"model": "echo", "version": "7", "outcome": outcome}
        )
        for outcome in ("applied", "missed")
    ]
    assert counts == [3, 1]
    assert list((await loaded.stub.Translate(request("A dog."))).glossaries) == []


async def test_streams_and_bulk_calls_have_the_version_too(loaded: Live) -> None:
    named = pb.Glossary(names=["animals"])

    responses = await streamed(loaded, "A dog runs. A dog sits.", glossary=named)
    answers = await bulk(loaded, options(glossary=named), text(1, "A dog runs."))

    assert {each.sentence_index: list(each.glossaries) for each in responses} == {0: [USED], 1: []}
    assert list(answers[1].glossaries) == [USED]


@pytest.mark.parametrize(
    ("names", "code", "message"),
    [
        (["animals", "none"], grpc.StatusCode.NOT_FOUND, "glossary.names[1]: none is no glossary here"),
        (
            ["animals", "french"],
            grpc.StatusCode.INVALID_ARGUMENT,
            "glossary.names: must be from en into de, not french, en into fr",
        ),
        (["animals"] * 17, grpc.StatusCode.INVALID_ARGUMENT, "glossary.names: must be from 0 to 16, not 17"),
    ],
)
async def test_names_of_glossaries_that_will_not_do_are_told(
    loaded: Live, names: list[str], code: grpc.StatusCode, message: str
) -> None:
    found, details = await told(loaded.stub.Translate(request("A dog.", glossary=pb.Glossary(names=names))))

    assert found is code
    assert message in details


async def test_glossaries_are_listed(loaded: Live) -> None:
    response = await loaded.stub.ListGlossaries(pb.ListGlossariesRequest())

    animals, french = response.glossaries
    assert animals == pb.GlossaryInfo(
        name="animals", source_language_code="en", target_language_code="de", num_terms=2, version=USED.version
    )
    assert (french.name, french.target_language_code, french.num_terms) == ("french", "fr", 1)


async def test_without_a_folder_there_are_none(live: Live) -> None:
    assert list((await live.stub.ListGlossaries(pb.ListGlossariesRequest())).glossaries) == []
    code, _ = await told(live.stub.Translate(request("A dog.", glossary=pb.Glossary(names=["animals"]))))
    assert code is grpc.StatusCode.NOT_FOUND
