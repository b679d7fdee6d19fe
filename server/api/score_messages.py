"""Reads the messages of `Score` into plain values, and writes its answers."""

import time

from babelserve.v1 import translation_pb2 as pb
from server.access.tenants import Tenant
from server.api.messages import read_priority, status_message
from server.api.sentence_messages import token_messages
from server.telemetry.log import request_id
from server.translation.answer import TextAnswer
from server.translation.job import Job
from server.translation.request import DecodingRequest, TranslationRequest
from server.translation.rules import check_texts


def read_score_request(message: pb.ScoreRequest, remaining: float | None, tenant: Tenant) -> TranslationRequest:
    """Returns what a message asks for; arguments and errors are those of `read_request`."""
    arrived = time.monotonic()
    check_texts(len(message.pairs), "pairs", "pairs")
    length_penalty = message.length_penalty if message.HasField("length_penalty") else None
    return TranslationRequest(
        contents=[pair.source for pair in message.pairs],
        targets=[pair.target for pair in message.pairs],
        source_language_code=message.source_language_code,
        target_language_code=message.target_language_code,
        model=message.model,
        decoding=DecodingRequest(beam_size=1, num_hypotheses=1, length_penalty=length_penalty),
        with_tokens=True,
        tenant=tenant,
        priority=read_priority(message.priority),
        traffic_key=message.traffic_key or request_id.get() or "",
        arrived=arrived,
        deadline=float("inf") if remaining is None else arrived + remaining,
    )


def score_response(job: Job) -> pb.ScoreResponse:
    """Returns the answer to a finished job of pairs."""
    manifest = job.routes[0][0].model.manifest
    scores = [_score(answer) for answer in job.answers]
    return pb.ScoreResponse(scores=scores, model=manifest.name, model_version=manifest.version)


def _score(answer: TextAnswer) -> pb.Score:
    if answer.error is not None:
        return pb.Score(status=status_message(answer.error))
    sentence = answer.sentences[0]
    return pb.Score(score=sentence.candidates[0].score, tokens=token_messages(sentence.tokens()))
