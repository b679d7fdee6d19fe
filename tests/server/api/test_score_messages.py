"""Messages of Score, read and written without a server."""

import dataclasses

import pytest

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import ANONYMOUS, Priority
from server.api.score_messages import read_score_request, score_response
from server.errors import InvalidRequest
from server.translation.request import DecodingRequest
from server.translation.translator import Translator

PAIRS = [pb.ScorePair(source="A dog runs.", target="A dog."), pb.ScorePair(source="dog " * 90, target="A dog.")]


def test_a_request_is_a_greedy_search_that_is_given_its_targets() -> None:
    message = pb.ScoreRequest(
        pairs=PAIRS,
        source_language_code="en",
        target_language_code="de",
        model="m",
        length_penalty=0.5,
        priority=pb.PRIORITY_LOW,
        traffic_key="document 7",
    )

    request = read_score_request(message, 5.0, ANONYMOUS)

    assert request.contents == ["A dog runs.", "dog " * 90]
    assert request.targets == ["A dog.", "A dog."]
    assert (request.source_language_code, request.target_language_code, request.model) == ("en", "de", "m")
    assert request.decoding == DecodingRequest(beam_size=1, num_hypotheses=1, length_penalty=0.5)
    assert (request.priority, request.traffic_key) == (Priority.LOW, "document 7")
    assert request.deadline == request.arrived + 5.0


def test_what_is_left_open_is_the_models() -> None:
    request = read_score_request(pb.ScoreRequest(pairs=PAIRS), None, ANONYMOUS)

    assert request.decoding.length_penalty is None
    assert request.deadline == float("inf")
    with pytest.raises(InvalidRequest, match="priority"):
        read_score_request(pb.ScoreRequest(pairs=PAIRS, priority=9), None, ANONYMOUS)  # type: ignore[arg-type]


async def test_a_response_has_a_score_or_an_error_for_each_pair(translator: Translator) -> None:
    request = read_score_request(pb.ScoreRequest(pairs=PAIRS, target_language_code="de"), None, ANONYMOUS)
    with await translator.accept(request) as job:
        await job.finish()
    (sentence,) = job.answers[0].sentences.values()
    log_probs = tuple(-0.5 for _ in sentence.source.given.ids) if sentence.source.given else ()
    pieces = tuple("x" for _ in log_probs[1:])
    job.answers[0].sentences[0] = dataclasses.replace(sentence, pieces=pieces, log_probs=log_probs)

    response = score_response(job)

    good, bad = response.scores
    assert (response.model, response.model_version) == ("echo", "7")
    assert good.score == -1.0
    assert [token.log_prob for token in good.tokens] == list(log_probs)
    assert not good.HasField("status")
    assert bad.status.message.startswith("pairs[1].source: must be from 2 to 64 tokens")
    assert not bad.tokens


def test_too_many_pairs_are_refused_before_they_are_read() -> None:
    with pytest.raises(InvalidRequest, match=r"^pairs: must be from 1 to 1024 pairs, not 1025"):
        read_score_request(pb.ScoreRequest(pairs=[pb.ScorePair()] * 1025), None, ANONYMOUS)
