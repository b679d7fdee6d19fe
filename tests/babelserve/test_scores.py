import math

import grpc
import pytest

from babelserve import Client, InvalidRequest, ModelNotFound
from babelserve.scores import score_request, score_result
from babelserve.v1 import translation_pb2 as pb
from tests.babelserve.scripted_server import ScriptedServer, ScriptedService


def test_a_request_has_all_that_was_asked() -> None:
    request = score_request(
        [("Hi.", "Hallo."), ("Bye.", "Tschüss.")],
        "de",
        source="en",
        model="m",
        length_penalty=0.5,
        priority="high",
        traffic_key="k",
    )

    assert [(pair.source, pair.target) for pair in request.pairs] == [("Hi.", "Hallo."), ("Bye.", "Tschüss.")]
    assert (request.source_language_code, request.target_language_code, request.model) == ("en", "de", "m")
    assert (request.length_penalty, request.priority, request.traffic_key) == (0.5, pb.PRIORITY_HIGH, "k")
    assert not score_request([("Hi.", "Hallo.")], "de").HasField("length_penalty")


def test_what_cannot_be_sent_is_refused() -> None:
    with pytest.raises(TypeError, match=r"pairs\[0\]\.target must be a string, not int"):
        score_request([("Hi.", 3)], "de")  # type: ignore[list-item]
    with pytest.raises(InvalidRequest, match=r"pairs\[1\]\.source is not valid Unicode"):
        score_request([("Hi.", "Hallo."), ("\ud800", "")], "de")
    with pytest.raises(TypeError, match="unknown option: beam_size, lenght_penalty"):
        score_request([], "de", lenght_penalty=1.0, beam_size=2)  # type: ignore[call-arg]
    with pytest.raises(InvalidRequest, match="source is not valid Unicode"):
        score_request([], "de", source="\ud800")
    with pytest.raises(InvalidRequest, match="target is not valid Unicode"):
        score_request([], "\ud800")
    with pytest.raises(InvalidRequest, match="pairs: the request has"):
        score_request([("x" * 2**22, "")], "de")


def test_a_result_has_scores_and_errors() -> None:
    tokens = [pb.Token(text="\u2581Hallo", begin=0, end=5, log_prob=-0.5), pb.Token(log_prob=-math.inf)]
    scores = [pb.Score(score=-0.25, tokens=tokens), pb.Score(status=pb.Status(code=3, message="pairs[1].target: ..."))]

    result = score_result(pb.ScoreResponse(scores=scores, model="m", model_version="2"), len(scores))

    good, bad = result.scores
    assert (result.model, result.model_version, good.score, good.error) == ("m", "2", -0.25, None)
    assert [(token.text, token.begin, token.end, token.log_prob) for token in good.tokens] == [
        ("\u2581Hallo", 0, 5, -0.5),
        ("", 0, 0, -math.inf),
    ]
    assert bad.error is not None
    assert bad.error.code is grpc.StatusCode.INVALID_ARGUMENT


def test_the_client_asks_and_raises_its_errors(server: ScriptedServer, service: ScriptedService) -> None:
    with Client(server.address) as client:
        assert [score.score for score in client.score([("a", "xyz")], target="de").scores] == [-3.0]
        service.failures.append((grpc.StatusCode.NOT_FOUND, "no such model", ()))
        with pytest.raises(ModelNotFound, match="no such model"):
            client.score([("a", "xyz")], target="de")
