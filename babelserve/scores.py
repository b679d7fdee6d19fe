"""The request of `score` from arguments, and its result from the answer; both clients share them."""

from collections.abc import Iterable
from typing import TypedDict, Unpack

from babelserve.answers import check_count
from babelserve.messages import check_options, check_size
from babelserve.results import Score, ScoreResult
from babelserve.rules import check_text, priority_of
from babelserve.sentences import read_text_error, read_tokens
from babelserve.v1 import translation_pb2

Pairs = Iterable[tuple[str, str]]


class ScoreOptions(TypedDict, total=False):
    """What else a score can be asked for; None or absent: the server's default.

    Attributes:
        source: Code of the sentences' language; needed where the target has several.
        model: Name of the model as `list_models` gives it.
        length_penalty: 0 to 10, see `Score`.
        priority: "high", "normal" or "low", among the caller's own requests.
        traffic_key: As in `TranslateOptions`.
    """

    source: str | None
    model: str | None
    length_penalty: float | None
    priority: str | None
    traffic_key: str | None


def score_request(pairs: Pairs, target: str, **options: Unpack[ScoreOptions]) -> translation_pb2.ScoreRequest:
    """Builds the request.

    Raises:
        TypeError: a pair is not of texts, or an option is unknown, or of another type than its own.
        ValueError: a pair is not of two.
        InvalidRequest: a text is not valid Unicode (a lone surrogate), the priority is none, or all is longer than a
            message may be.
    """
    check_text("target", target)
    check_options(options, ScoreOptions.__annotations__)
    request = translation_pb2.ScoreRequest(
        source_language_code=options.get("source"),
        target_language_code=target,
        model=options.get("model"),
        length_penalty=options.get("length_penalty"),
        priority=priority_of(options.get("priority")),
        traffic_key=options.get("traffic_key"),
    )
    for index, (source, text) in enumerate(pairs):
        check_text(f"pairs[{index}].source", source)
        check_text(f"pairs[{index}].target", text)
        request.pairs.add(source=source, target=text)
    check_size("pairs", request)
    return request


def score_result(response: translation_pb2.ScoreResponse, num_pairs: int) -> ScoreResult:
    """Reads the answer. Raises ServerFailed if it does not have as many scores as were asked for."""
    check_count(len(response.scores), num_pairs)
    return ScoreResult(
        scores=tuple(_score(message) for message in response.scores),
        model=response.model,
        model_version=response.model_version,
    )


def _score(message: translation_pb2.Score) -> Score:
    error = read_text_error(message.status) if message.HasField("status") else None
    return Score(score=message.score, tokens=read_tokens(message), error=error)
