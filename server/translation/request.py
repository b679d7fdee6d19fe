"""What a request asks, whatever protocol brought it. Fields and errors have the names of `translation.proto`."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from server.access.tenants import ANONYMOUS, Priority, Tenant
from server.decoding.options import Sampling
from server.text.formality import Formality
from server.text.glossary import Glossary, NamedGlossary
from server.text.markup.tag_rules import NO_RULES, TagRules

_OF_LAST = (  # options of the last of two models
    "num_hypotheses",
    "max_output_tokens",
    "min_output_tokens",
    "max_length_ratio",
    "min_length_ratio",
    "sampling",
    "return_alternatives",
    "min_alternative_expansion_prob",
    "prefix_bias_beta",
    "exact_tokens",
    "ratio",
)


def transit_seconds(seconds: float) -> float:
    """Returns by how many seconds a deadline may be later here than at the caller, for a call that came `seconds` ago.

    The call spent time on the network, and gRPC rounds the deadline that it sends up, by 1 % at most.
    """
    return 0.02 + 0.01 * seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodingRequest:
    """How a translation is searched for. None leaves a choice to the server. See `DecodingOptions`.

    Attributes:
        suppress: words and phrases that no translation has.
    """

    beam_size: int | None = None
    return_alternatives: bool | None = None
    min_alternative_expansion_prob: float | None = None
    prefix_bias_beta: float | None = None
    min_length_ratio: float | None = None
    max_length_ratio: float | None = None
    coverage_penalty: float | None = None
    num_hypotheses: int | None = None
    length_penalty: float | None = None
    max_output_tokens: int | None = None
    with_scores: bool | None = None
    use_shortlist: bool | None = None
    repetition_penalty: float | None = None
    no_repeat_ngram_size: int | None = None
    min_output_tokens: int | None = None
    patience: float | None = None
    sampling: Sampling | None = None
    end_loops: bool | None = None
    exact_tokens: int | None = None
    ratio: float | None = None
    suppress: Sequence[str] = ()

    def passed_on(self) -> "DecodingRequest":
        """Returns what the first of two models is asked: for one translation, the best, as long as it is."""
        return replace(self, **dict.fromkeys(_OF_LAST), suppress=())


@dataclass(frozen=True, slots=True, kw_only=True)
class TextOptions:
    """How texts are read.

    Attributes:
        refuse_unknown_scripts: whether a text fails that has a sentence in a script that its model does not know.
        translate_attributes: whether attributes of HTML that people read are translated.
        adapt_quantities: whether numbers, currencies, units and dates are written as the target language writes them.
        join_lines: whether a line break in plain text is a blank.
        tags: which elements are read in another way than by default.
        keep: what texts keep: literals, and pairs of an opening and a closing. See `server.text.own_parts.OwnParts`.
    """

    refuse_unknown_scripts: bool = False
    translate_attributes: bool = False
    adapt_quantities: bool = False
    join_lines: bool = False
    tags: TagRules = NO_RULES
    keep: Sequence[str | tuple[str, str]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslationRequest:
    """Texts to translate, as a client gave them: nothing is checked yet.

    Attributes:
        source_language_code: BCP-47; empty or "auto" leaves it open, see `server.translation.routes`.
        target_language_code: BCP-47.
        model: its name; empty leaves the choice to the server.
        mime_type: empty for plain text.
        with_alignment: whether the answer says which words belong together (`output.include_alignment`).
        with_tokens: whether it has the tokens of translations (`output.include_tokens`).
        with_search: whether it says which beams were kept (`output.include_search`).
        with_confidence: whether it says how sure the model was (`output.include_confidence`).
        target_prefixes: what the translation of each text begins with, or of all; empty for the models to choose.
        with_partial_text: whether a stream tells what unfinished sentences have so far (`include_partial_text`).
        targets: a translation for each of the contents, to be scored; None to translate them.
        tenant: the tenant that the caller belongs to.
        priority: among the tenant's own requests.
        glossary: what words must become; None without one.
        houses: glossaries of the operator that hold where terms can; behind those of the caller.
        formality: how translations speak to their reader; None for the model to choose.
        traffic_key: decides which version of the model serves the request; at most 256 characters.
        is_bulk: whether it is one text of a bulk call. It is of the tenant's flow of bulk calls, has no deadline but
            the caller's, and is tried again when it is refused, so that its refusals are not counted as such.
        is_paid: whether the tenant has paid for it already: it is a text of a bulk call that is accepted again.
        arrived: instant of `time.monotonic`.
        deadline: instant of the same clock when the caller stops waiting; infinite for none.
    """

    contents: Sequence[str]
    source_language_code: str = ""
    target_language_code: str = ""
    model: str = ""
    mime_type: str = ""
    decoding: DecodingRequest = field(default_factory=DecodingRequest)
    text: TextOptions = field(default_factory=TextOptions)
    with_alignment: bool = False
    with_tokens: bool = False
    with_search: bool = False
    with_confidence: bool = False
    target_prefixes: Sequence[str] = ()
    with_partial_text: bool = False
    targets: Sequence[str] | None = None
    tenant: Tenant = ANONYMOUS
    priority: Priority = Priority.NORMAL
    glossary: Glossary | None = None
    houses: Sequence[NamedGlossary] = ()
    formality: Formality | None = None
    traffic_key: str = ""
    is_bulk: bool = False
    is_paid: bool = False
    arrived: float
    deadline: float
