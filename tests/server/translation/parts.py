"""Requests as a front hands them over, and sentences that are translated or copied."""

import dataclasses
import time
from typing import Any

from server.access.tenants import Tenant
from server.access.token_bucket import TokenBucket
from server.text.sentences import SourceSentence
from server.translation.request import DecodingRequest, TranslationRequest

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
