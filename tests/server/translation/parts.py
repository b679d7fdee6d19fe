"""Requests as a front hands them over, their jobs, sentences that are translated or copied, and models of languages."""

import dataclasses
import time
from collections.abc import Sequence
from typing import Any

from server.access.tenants import Tenant
from server.access.token_bucket import TokenBucket
from server.bundle.languages import LanguagePair
from server.bundle.manifest import Manifest
from server.engine.flow import ANYONE
from server.models.model import Model
from server.text.source import SourceSentence
from server.translation.answer import TextAnswer
from server.translation.job import Job
from server.translation.mailbox import Doorbell
from server.translation.request import DecodingRequest, TranslationRequest
from server.translation.submission import submit_first
from tests.server.echo_engine import idle_supervisor

DOG, STARS = SourceSentence("A dog runs.", " ", (5, 3)), SourceSentence("***", " ", None)


def request(*contents: str, seconds: float = 30.0, model: str = "", **decoding: Any) -> TranslationRequest:
    now = time.monotonic()
    return TranslationRequest(
        contents=contents,
        target_language_code="de",
        model=model,
        decoding=DecodingRequest(**decoding),
        arrived=now,
        deadline=now + seconds,
    )


def of_tenant(bucket: TokenBucket, *contents: str) -> TranslationRequest:
    return dataclasses.replace(request(*contents), tenant=Tenant(name="billing", weight=2.5, bucket=bucket))


def of_pairs(model: Model, name: str, *pairs: str) -> Model:
    """The model by another name, of pairs such as "en-de"."""
    directions = tuple(LanguagePair(source=pair[:2], target=pair[3:]) for pair in pairs)
    return with_manifest(model, dataclasses.replace(model.manifest, name=name, language_pairs=directions))


def with_manifest(model: Model, manifest: Manifest) -> Model:
    """The model as another manifest describes it."""
    return dataclasses.replace(model, manifest=manifest, supervisor=idle_supervisor(manifest))


async def start_job(answers: Sequence[TextAnswer], seconds: float = 60.0) -> Job:
    """A job of texts, with this time, whose sentences the engines have."""
    now = time.monotonic()
    parts = await submit_first(answers, now + seconds, ANYONE)
    return Job(answers, parts, now + seconds, now, ANYONE, Doorbell())
