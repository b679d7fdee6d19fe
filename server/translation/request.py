"""What is asked, whatever protocol brought it. Fields and errors have the names of `translation.proto`."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from server.access.tenants import ANONYMOUS, Priority, Tenant


def transit_seconds(seconds: float) -> float:
    """Returns how much later than the caller's a deadline may be here, of a call that came so many seconds ago.

    It was on its way for a while, and gRPC rounds what it says of a deadline up, by 1 % at most.
    """
    return 0.02 + 0.01 * seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingRequest:
    """How a translation is to be searched for; None leaves a choice to the server. See `DecodingOptions`."""

    beam_size: int | None = None
    num_hypotheses: int | None = None
    length_penalty: float | None = None
    max_output_tokens: int | None = None
    with_scores: bool | None = None
    use_shortlist: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    """How texts are read: whether one fails that has a sentence in a script that its model does not know."""

    refuse_unknown_scripts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationRequest:
    """Texts to translate, as a client gave them: nothing is checked yet.

    Attributes:
        contents: the texts.
        source_language_code: BCP-47; empty or "auto" for one that is left open, see `server.translation.routes`.
        target_language_code: BCP-47.
        model: name; empty for the server's choice.
        mime_type: empty for plain text.
        decoding: how to search.
        text: how to read the texts.
        tenant: who asks.
        priority: among the tenant's own.
        traffic_key: by which it goes to one of the versions that share a model's requests.
        arrived: instant of `time.monotonic`.
        deadline: the same, when the caller stops waiting; infinite for never.
    """

    contents: Sequence[str]
    source_language_code: str = ""
    target_language_code: str = ""
    model: str = ""
    mime_type: str = ""
    decoding: DecodingRequest = field(default_factory=DecodingRequest)
    text: TextOptions = field(default_factory=TextOptions)
    tenant: Tenant = ANONYMOUS
    priority: Priority = Priority.NORMAL
    traffic_key: str = ""
    arrived: float
    deadline: float
