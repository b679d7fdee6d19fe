from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Formality(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FORMALITY_UNSPECIFIED: _ClassVar[Formality]
    FORMALITY_LESS: _ClassVar[Formality]
    FORMALITY_MORE: _ClassVar[Formality]
    FORMALITY_PREFER_LESS: _ClassVar[Formality]
    FORMALITY_PREFER_MORE: _ClassVar[Formality]

class Priority(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PRIORITY_UNSPECIFIED: _ClassVar[Priority]
    PRIORITY_HIGH: _ClassVar[Priority]
    PRIORITY_NORMAL: _ClassVar[Priority]
    PRIORITY_LOW: _ClassVar[Priority]

class TermStatus(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    TERM_STATUS_UNSPECIFIED: _ClassVar[TermStatus]
    TERM_STATUS_APPLIED: _ClassVar[TermStatus]
    TERM_STATUS_MISSED: _ClassVar[TermStatus]

class Placement(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PLACEMENT_UNSPECIFIED: _ClassVar[Placement]
    PLACEMENT_BY_MODEL: _ClassVar[Placement]
    PLACEMENT_BY_POSITION: _ClassVar[Placement]
    PLACEMENT_MISSING: _ClassVar[Placement]

class FinishReason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    FINISH_REASON_UNSPECIFIED: _ClassVar[FinishReason]
    FINISH_REASON_STOP: _ClassVar[FinishReason]
    FINISH_REASON_LENGTH: _ClassVar[FinishReason]
    FINISH_REASON_COPIED: _ClassVar[FinishReason]
    FINISH_REASON_REPETITION: _ClassVar[FinishReason]
FORMALITY_UNSPECIFIED: Formality
FORMALITY_LESS: Formality
FORMALITY_MORE: Formality
FORMALITY_PREFER_LESS: Formality
FORMALITY_PREFER_MORE: Formality
PRIORITY_UNSPECIFIED: Priority
PRIORITY_HIGH: Priority
PRIORITY_NORMAL: Priority
PRIORITY_LOW: Priority
TERM_STATUS_UNSPECIFIED: TermStatus
TERM_STATUS_APPLIED: TermStatus
TERM_STATUS_MISSED: TermStatus
PLACEMENT_UNSPECIFIED: Placement
PLACEMENT_BY_MODEL: Placement
PLACEMENT_BY_POSITION: Placement
PLACEMENT_MISSING: Placement
FINISH_REASON_UNSPECIFIED: FinishReason
FINISH_REASON_STOP: FinishReason
FINISH_REASON_LENGTH: FinishReason
FINISH_REASON_COPIED: FinishReason
FINISH_REASON_REPETITION: FinishReason

class TranslateRequest(_message.Message):
    __slots__ = ("contents", "source_language_code", "target_language_code", "model", "mime_type", "decoding", "output", "priority", "traffic_key", "text", "glossary", "target_prefixes", "formality")
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    DECODING_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_KEY_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    TARGET_PREFIXES_FIELD_NUMBER: _ClassVar[int]
    FORMALITY_FIELD_NUMBER: _ClassVar[int]
    contents: _containers.RepeatedScalarFieldContainer[str]
    source_language_code: str
    target_language_code: str
    model: str
    mime_type: str
    decoding: DecodingOptions
    output: OutputOptions
    priority: Priority
    traffic_key: str
    text: TextOptions
    glossary: Glossary
    target_prefixes: _containers.RepeatedScalarFieldContainer[str]
    formality: Formality
    def __init__(self, contents: _Optional[_Iterable[str]] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., mime_type: _Optional[str] = ..., decoding: _Optional[_Union[DecodingOptions, _Mapping]] = ..., output: _Optional[_Union[OutputOptions, _Mapping]] = ..., priority: _Optional[_Union[Priority, str]] = ..., traffic_key: _Optional[str] = ..., text: _Optional[_Union[TextOptions, _Mapping]] = ..., glossary: _Optional[_Union[Glossary, _Mapping]] = ..., target_prefixes: _Optional[_Iterable[str]] = ..., formality: _Optional[_Union[Formality, str]] = ...) -> None: ...

class Glossary(_message.Message):
    __slots__ = ("terms", "ignore_case", "names")
    TERMS_FIELD_NUMBER: _ClassVar[int]
    IGNORE_CASE_FIELD_NUMBER: _ClassVar[int]
    NAMES_FIELD_NUMBER: _ClassVar[int]
    terms: _containers.RepeatedCompositeFieldContainer[Term]
    ignore_case: bool
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, terms: _Optional[_Iterable[_Union[Term, _Mapping]]] = ..., ignore_case: _Optional[bool] = ..., names: _Optional[_Iterable[str]] = ...) -> None: ...

class UsedGlossary(_message.Message):
    __slots__ = ("name", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class Term(_message.Message):
    __slots__ = ("source", "target", "target_forms", "source_forms", "exact")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    TARGET_FORMS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FORMS_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    target_forms: _containers.RepeatedScalarFieldContainer[str]
    source_forms: _containers.RepeatedScalarFieldContainer[str]
    exact: bool
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ..., target_forms: _Optional[_Iterable[str]] = ..., source_forms: _Optional[_Iterable[str]] = ..., exact: _Optional[bool] = ...) -> None: ...

class TextOptions(_message.Message):
    __slots__ = ("refuse_unknown_scripts", "translate_attributes", "keep", "adapt_quantities", "tags", "join_lines")
    REFUSE_UNKNOWN_SCRIPTS_FIELD_NUMBER: _ClassVar[int]
    TRANSLATE_ATTRIBUTES_FIELD_NUMBER: _ClassVar[int]
    KEEP_FIELD_NUMBER: _ClassVar[int]
    ADAPT_QUANTITIES_FIELD_NUMBER: _ClassVar[int]
    TAGS_FIELD_NUMBER: _ClassVar[int]
    JOIN_LINES_FIELD_NUMBER: _ClassVar[int]
    refuse_unknown_scripts: bool
    translate_attributes: bool
    keep: _containers.RepeatedCompositeFieldContainer[KeepRule]
    adapt_quantities: bool
    tags: TagRules
    join_lines: bool
    def __init__(self, refuse_unknown_scripts: _Optional[bool] = ..., translate_attributes: _Optional[bool] = ..., keep: _Optional[_Iterable[_Union[KeepRule, _Mapping]]] = ..., adapt_quantities: _Optional[bool] = ..., tags: _Optional[_Union[TagRules, _Mapping]] = ..., join_lines: _Optional[bool] = ...) -> None: ...

class TagRules(_message.Message):
    __slots__ = ("ignored", "splitting", "non_splitting", "only_named_split", "repair")
    IGNORED_FIELD_NUMBER: _ClassVar[int]
    SPLITTING_FIELD_NUMBER: _ClassVar[int]
    NON_SPLITTING_FIELD_NUMBER: _ClassVar[int]
    ONLY_NAMED_SPLIT_FIELD_NUMBER: _ClassVar[int]
    REPAIR_FIELD_NUMBER: _ClassVar[int]
    ignored: _containers.RepeatedScalarFieldContainer[str]
    splitting: _containers.RepeatedScalarFieldContainer[str]
    non_splitting: _containers.RepeatedScalarFieldContainer[str]
    only_named_split: bool
    repair: bool
    def __init__(self, ignored: _Optional[_Iterable[str]] = ..., splitting: _Optional[_Iterable[str]] = ..., non_splitting: _Optional[_Iterable[str]] = ..., only_named_split: _Optional[bool] = ..., repair: _Optional[bool] = ...) -> None: ...

class KeepRule(_message.Message):
    __slots__ = ("literal", "opening", "closing")
    LITERAL_FIELD_NUMBER: _ClassVar[int]
    OPENING_FIELD_NUMBER: _ClassVar[int]
    CLOSING_FIELD_NUMBER: _ClassVar[int]
    literal: str
    opening: str
    closing: str
    def __init__(self, literal: _Optional[str] = ..., opening: _Optional[str] = ..., closing: _Optional[str] = ...) -> None: ...

class DecodingOptions(_message.Message):
    __slots__ = ("beam_size", "num_hypotheses", "length_penalty", "max_output_tokens", "with_scores", "use_shortlist", "repetition_penalty", "no_repeat_ngram_size", "min_output_tokens", "suppress", "patience", "sampling", "end_loops", "return_alternatives", "min_alternative_expansion_prob", "prefix_bias_beta", "min_length_ratio", "max_length_ratio", "coverage_penalty", "exact_tokens", "ratio")
    BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    NUM_HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    MAX_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    WITH_SCORES_FIELD_NUMBER: _ClassVar[int]
    USE_SHORTLIST_FIELD_NUMBER: _ClassVar[int]
    REPETITION_PENALTY_FIELD_NUMBER: _ClassVar[int]
    NO_REPEAT_NGRAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    MIN_OUTPUT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    SUPPRESS_FIELD_NUMBER: _ClassVar[int]
    PATIENCE_FIELD_NUMBER: _ClassVar[int]
    SAMPLING_FIELD_NUMBER: _ClassVar[int]
    END_LOOPS_FIELD_NUMBER: _ClassVar[int]
    RETURN_ALTERNATIVES_FIELD_NUMBER: _ClassVar[int]
    MIN_ALTERNATIVE_EXPANSION_PROB_FIELD_NUMBER: _ClassVar[int]
    PREFIX_BIAS_BETA_FIELD_NUMBER: _ClassVar[int]
    MIN_LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    COVERAGE_PENALTY_FIELD_NUMBER: _ClassVar[int]
    EXACT_TOKENS_FIELD_NUMBER: _ClassVar[int]
    RATIO_FIELD_NUMBER: _ClassVar[int]
    beam_size: int
    num_hypotheses: int
    length_penalty: float
    max_output_tokens: int
    with_scores: bool
    use_shortlist: bool
    repetition_penalty: float
    no_repeat_ngram_size: int
    min_output_tokens: int
    suppress: _containers.RepeatedScalarFieldContainer[str]
    patience: float
    sampling: Sampling
    end_loops: bool
    return_alternatives: bool
    min_alternative_expansion_prob: float
    prefix_bias_beta: float
    min_length_ratio: float
    max_length_ratio: float
    coverage_penalty: float
    exact_tokens: int
    ratio: float
    def __init__(self, beam_size: _Optional[int] = ..., num_hypotheses: _Optional[int] = ..., length_penalty: _Optional[float] = ..., max_output_tokens: _Optional[int] = ..., with_scores: _Optional[bool] = ..., use_shortlist: _Optional[bool] = ..., repetition_penalty: _Optional[float] = ..., no_repeat_ngram_size: _Optional[int] = ..., min_output_tokens: _Optional[int] = ..., suppress: _Optional[_Iterable[str]] = ..., patience: _Optional[float] = ..., sampling: _Optional[_Union[Sampling, _Mapping]] = ..., end_loops: _Optional[bool] = ..., return_alternatives: _Optional[bool] = ..., min_alternative_expansion_prob: _Optional[float] = ..., prefix_bias_beta: _Optional[float] = ..., min_length_ratio: _Optional[float] = ..., max_length_ratio: _Optional[float] = ..., coverage_penalty: _Optional[float] = ..., exact_tokens: _Optional[int] = ..., ratio: _Optional[float] = ...) -> None: ...

class Sampling(_message.Message):
    __slots__ = ("top_k", "top_p", "temperature", "seed")
    TOP_K_FIELD_NUMBER: _ClassVar[int]
    TOP_P_FIELD_NUMBER: _ClassVar[int]
    TEMPERATURE_FIELD_NUMBER: _ClassVar[int]
    SEED_FIELD_NUMBER: _ClassVar[int]
    top_k: int
    top_p: float
    temperature: float
    seed: int
    def __init__(self, top_k: _Optional[int] = ..., top_p: _Optional[float] = ..., temperature: _Optional[float] = ..., seed: _Optional[int] = ...) -> None: ...

class OutputOptions(_message.Message):
    __slots__ = ("include_sentences", "include_alignment", "include_tokens", "include_confidence", "text_once", "include_search")
    INCLUDE_SENTENCES_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TEXT_ONCE_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_SEARCH_FIELD_NUMBER: _ClassVar[int]
    include_sentences: bool
    include_alignment: bool
    include_tokens: bool
    include_confidence: bool
    text_once: bool
    include_search: bool
    def __init__(self, include_sentences: _Optional[bool] = ..., include_alignment: _Optional[bool] = ..., include_tokens: _Optional[bool] = ..., include_confidence: _Optional[bool] = ..., text_once: _Optional[bool] = ..., include_search: _Optional[bool] = ...) -> None: ...

class TranslateResponse(_message.Message):
    __slots__ = ("translations", "model", "model_version", "timings", "source_language_code", "target_language_code", "glossaries")
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    TIMINGS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[Translation]
    model: str
    model_version: str
    timings: Timings
    source_language_code: str
    target_language_code: str
    glossaries: _containers.RepeatedCompositeFieldContainer[UsedGlossary]
    def __init__(self, translations: _Optional[_Iterable[_Union[Translation, _Mapping]]] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ..., timings: _Optional[_Union[Timings, _Mapping]] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., glossaries: _Optional[_Iterable[_Union[UsedGlossary, _Mapping]]] = ...) -> None: ...

class Translation(_message.Message):
    __slots__ = ("text", "score", "finish_reason", "hypotheses", "sentences", "source_tokens", "target_tokens", "status", "detected_language_code", "detection_confidence", "route", "kept", "confidence", "terms")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    HYPOTHESES_FIELD_NUMBER: _ClassVar[int]
    SENTENCES_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    DETECTED_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    DETECTION_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    text: str
    score: float
    finish_reason: FinishReason
    hypotheses: _containers.RepeatedCompositeFieldContainer[Hypothesis]
    sentences: _containers.RepeatedCompositeFieldContainer[Sentence]
    source_tokens: int
    target_tokens: int
    status: Status
    detected_language_code: str
    detection_confidence: float
    route: _containers.RepeatedCompositeFieldContainer[RouteLeg]
    kept: _containers.RepeatedCompositeFieldContainer[KeptPart]
    confidence: float
    terms: _containers.RepeatedCompositeFieldContainer[UsedTerm]
    def __init__(self, text: _Optional[str] = ..., score: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., hypotheses: _Optional[_Iterable[_Union[Hypothesis, _Mapping]]] = ..., sentences: _Optional[_Iterable[_Union[Sentence, _Mapping]]] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., status: _Optional[_Union[Status, _Mapping]] = ..., detected_language_code: _Optional[str] = ..., detection_confidence: _Optional[float] = ..., route: _Optional[_Iterable[_Union[RouteLeg, _Mapping]]] = ..., kept: _Optional[_Iterable[_Union[KeptPart, _Mapping]]] = ..., confidence: _Optional[float] = ..., terms: _Optional[_Iterable[_Union[UsedTerm, _Mapping]]] = ...) -> None: ...

class UsedTerm(_message.Message):
    __slots__ = ("source", "target", "source_begin", "source_end", "begin", "end", "status")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    SOURCE_BEGIN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    source_begin: int
    source_end: int
    begin: int
    end: int
    status: TermStatus
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ..., source_begin: _Optional[int] = ..., source_end: _Optional[int] = ..., begin: _Optional[int] = ..., end: _Optional[int] = ..., status: _Optional[_Union[TermStatus, str]] = ...) -> None: ...

class KeptPart(_message.Message):
    __slots__ = ("text", "placement")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    PLACEMENT_FIELD_NUMBER: _ClassVar[int]
    text: str
    placement: Placement
    def __init__(self, text: _Optional[str] = ..., placement: _Optional[_Union[Placement, str]] = ...) -> None: ...

class RouteLeg(_message.Message):
    __slots__ = ("model", "model_version", "source_language_code", "target_language_code")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    model: str
    model_version: str
    source_language_code: str
    target_language_code: str
    def __init__(self, model: _Optional[str] = ..., model_version: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ...) -> None: ...

class Status(_message.Message):
    __slots__ = ("code", "message")
    CODE_FIELD_NUMBER: _ClassVar[int]
    MESSAGE_FIELD_NUMBER: _ClassVar[int]
    code: int
    message: str
    def __init__(self, code: _Optional[int] = ..., message: _Optional[str] = ...) -> None: ...

class Hypothesis(_message.Message):
    __slots__ = ("text", "score")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    text: str
    score: float
    def __init__(self, text: _Optional[str] = ..., score: _Optional[float] = ...) -> None: ...

class Sentence(_message.Message):
    __slots__ = ("source_text", "text", "separator", "score", "finish_reason", "source_tokens", "target_tokens", "kept", "links", "source_begin", "source_end", "begin", "end", "tokens", "confidence", "terms", "search")
    SOURCE_TEXT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    SEPARATOR_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    KEPT_FIELD_NUMBER: _ClassVar[int]
    LINKS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_BEGIN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    SEARCH_FIELD_NUMBER: _ClassVar[int]
    source_text: str
    text: str
    separator: str
    score: float
    finish_reason: FinishReason
    source_tokens: int
    target_tokens: int
    kept: _containers.RepeatedCompositeFieldContainer[KeptPart]
    links: _containers.RepeatedCompositeFieldContainer[Link]
    source_begin: int
    source_end: int
    begin: int
    end: int
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    confidence: float
    terms: _containers.RepeatedCompositeFieldContainer[UsedTerm]
    search: _containers.RepeatedCompositeFieldContainer[SearchNode]
    def __init__(self, source_text: _Optional[str] = ..., text: _Optional[str] = ..., separator: _Optional[str] = ..., score: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., source_tokens: _Optional[int] = ..., target_tokens: _Optional[int] = ..., kept: _Optional[_Iterable[_Union[KeptPart, _Mapping]]] = ..., links: _Optional[_Iterable[_Union[Link, _Mapping]]] = ..., source_begin: _Optional[int] = ..., source_end: _Optional[int] = ..., begin: _Optional[int] = ..., end: _Optional[int] = ..., tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., confidence: _Optional[float] = ..., terms: _Optional[_Iterable[_Union[UsedTerm, _Mapping]]] = ..., search: _Optional[_Iterable[_Union[SearchNode, _Mapping]]] = ...) -> None: ...

class SearchNode(_message.Message):
    __slots__ = ("parent", "text", "log_prob", "score", "finish_reason", "is_chosen")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    SCORE_FIELD_NUMBER: _ClassVar[int]
    FINISH_REASON_FIELD_NUMBER: _ClassVar[int]
    IS_CHOSEN_FIELD_NUMBER: _ClassVar[int]
    parent: int
    text: str
    log_prob: float
    score: float
    finish_reason: FinishReason
    is_chosen: bool
    def __init__(self, parent: _Optional[int] = ..., text: _Optional[str] = ..., log_prob: _Optional[float] = ..., score: _Optional[float] = ..., finish_reason: _Optional[_Union[FinishReason, str]] = ..., is_chosen: _Optional[bool] = ...) -> None: ...

class Token(_message.Message):
    __slots__ = ("text", "begin", "end", "log_prob")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    BEGIN_FIELD_NUMBER: _ClassVar[int]
    END_FIELD_NUMBER: _ClassVar[int]
    LOG_PROB_FIELD_NUMBER: _ClassVar[int]
    text: str
    begin: int
    end: int
    log_prob: float
    def __init__(self, text: _Optional[str] = ..., begin: _Optional[int] = ..., end: _Optional[int] = ..., log_prob: _Optional[float] = ...) -> None: ...

class Link(_message.Message):
    __slots__ = ("source_begin", "source_end", "target_begin", "target_end", "weight")
    SOURCE_BEGIN_FIELD_NUMBER: _ClassVar[int]
    SOURCE_END_FIELD_NUMBER: _ClassVar[int]
    TARGET_BEGIN_FIELD_NUMBER: _ClassVar[int]
    TARGET_END_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    source_begin: int
    source_end: int
    target_begin: int
    target_end: int
    weight: float
    def __init__(self, source_begin: _Optional[int] = ..., source_end: _Optional[int] = ..., target_begin: _Optional[int] = ..., target_end: _Optional[int] = ..., weight: _Optional[float] = ...) -> None: ...

class Timings(_message.Message):
    __slots__ = ("total_seconds", "queue_seconds", "encode_seconds", "decode_seconds")
    TOTAL_SECONDS_FIELD_NUMBER: _ClassVar[int]
    QUEUE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    ENCODE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    DECODE_SECONDS_FIELD_NUMBER: _ClassVar[int]
    total_seconds: float
    queue_seconds: float
    encode_seconds: float
    decode_seconds: float
    def __init__(self, total_seconds: _Optional[float] = ..., queue_seconds: _Optional[float] = ..., encode_seconds: _Optional[float] = ..., decode_seconds: _Optional[float] = ...) -> None: ...

class TranslateStreamRequest(_message.Message):
    __slots__ = ("request", "include_partial_text")
    REQUEST_FIELD_NUMBER: _ClassVar[int]
    INCLUDE_PARTIAL_TEXT_FIELD_NUMBER: _ClassVar[int]
    request: TranslateRequest
    include_partial_text: bool
    def __init__(self, request: _Optional[_Union[TranslateRequest, _Mapping]] = ..., include_partial_text: _Optional[bool] = ...) -> None: ...

class TranslateStreamResponse(_message.Message):
    __slots__ = ("content_index", "sentence_index", "sentence_count", "leading", "sentence", "status", "model", "model_version", "detected_language_code", "detection_confidence", "route", "glossaries", "partial_text")
    CONTENT_INDEX_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_INDEX_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_COUNT_FIELD_NUMBER: _ClassVar[int]
    LEADING_FIELD_NUMBER: _ClassVar[int]
    SENTENCE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    DETECTED_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    DETECTION_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    ROUTE_FIELD_NUMBER: _ClassVar[int]
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    PARTIAL_TEXT_FIELD_NUMBER: _ClassVar[int]
    content_index: int
    sentence_index: int
    sentence_count: int
    leading: str
    sentence: Sentence
    status: Status
    model: str
    model_version: str
    detected_language_code: str
    detection_confidence: float
    route: _containers.RepeatedCompositeFieldContainer[RouteLeg]
    glossaries: _containers.RepeatedCompositeFieldContainer[UsedGlossary]
    partial_text: str
    def __init__(self, content_index: _Optional[int] = ..., sentence_index: _Optional[int] = ..., sentence_count: _Optional[int] = ..., leading: _Optional[str] = ..., sentence: _Optional[_Union[Sentence, _Mapping]] = ..., status: _Optional[_Union[Status, _Mapping]] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ..., detected_language_code: _Optional[str] = ..., detection_confidence: _Optional[float] = ..., route: _Optional[_Iterable[_Union[RouteLeg, _Mapping]]] = ..., glossaries: _Optional[_Iterable[_Union[UsedGlossary, _Mapping]]] = ..., partial_text: _Optional[str] = ...) -> None: ...

class ScoreRequest(_message.Message):
    __slots__ = ("pairs", "source_language_code", "target_language_code", "model", "length_penalty", "priority", "traffic_key")
    PAIRS_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    LENGTH_PENALTY_FIELD_NUMBER: _ClassVar[int]
    PRIORITY_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_KEY_FIELD_NUMBER: _ClassVar[int]
    pairs: _containers.RepeatedCompositeFieldContainer[ScorePair]
    source_language_code: str
    target_language_code: str
    model: str
    length_penalty: float
    priority: Priority
    traffic_key: str
    def __init__(self, pairs: _Optional[_Iterable[_Union[ScorePair, _Mapping]]] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., model: _Optional[str] = ..., length_penalty: _Optional[float] = ..., priority: _Optional[_Union[Priority, str]] = ..., traffic_key: _Optional[str] = ...) -> None: ...

class ScorePair(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class ScoreResponse(_message.Message):
    __slots__ = ("scores", "model", "model_version")
    SCORES_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    scores: _containers.RepeatedCompositeFieldContainer[Score]
    model: str
    model_version: str
    def __init__(self, scores: _Optional[_Iterable[_Union[Score, _Mapping]]] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ...) -> None: ...

class Score(_message.Message):
    __slots__ = ("score", "tokens", "status")
    SCORE_FIELD_NUMBER: _ClassVar[int]
    TOKENS_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    score: float
    tokens: _containers.RepeatedCompositeFieldContainer[Token]
    status: Status
    def __init__(self, score: _Optional[float] = ..., tokens: _Optional[_Iterable[_Union[Token, _Mapping]]] = ..., status: _Optional[_Union[Status, _Mapping]] = ...) -> None: ...

class ListModelsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListModelsResponse(_message.Message):
    __slots__ = ("models", "pivot_language_codes")
    MODELS_FIELD_NUMBER: _ClassVar[int]
    PIVOT_LANGUAGE_CODES_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[ModelInfo]
    pivot_language_codes: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, models: _Optional[_Iterable[_Union[ModelInfo, _Mapping]]] = ..., pivot_language_codes: _Optional[_Iterable[str]] = ...) -> None: ...

class ModelInfo(_message.Message):
    __slots__ = ("name", "version", "variant", "language_pairs", "max_beam_size", "max_source_tokens", "max_target_tokens", "has_shortlist", "source_language_codes", "target_language_codes", "has_alignment", "has_confidence", "family", "has_length_control", "max_length_ratio")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VARIANT_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_PAIRS_FIELD_NUMBER: _ClassVar[int]
    MAX_BEAM_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_SOURCE_TOKENS_FIELD_NUMBER: _ClassVar[int]
    MAX_TARGET_TOKENS_FIELD_NUMBER: _ClassVar[int]
    HAS_SHORTLIST_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODES_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODES_FIELD_NUMBER: _ClassVar[int]
    HAS_ALIGNMENT_FIELD_NUMBER: _ClassVar[int]
    HAS_CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    FAMILY_FIELD_NUMBER: _ClassVar[int]
    HAS_LENGTH_CONTROL_FIELD_NUMBER: _ClassVar[int]
    MAX_LENGTH_RATIO_FIELD_NUMBER: _ClassVar[int]
    name: str
    version: str
    variant: str
    language_pairs: _containers.RepeatedCompositeFieldContainer[LanguagePair]
    max_beam_size: int
    max_source_tokens: int
    max_target_tokens: int
    has_shortlist: bool
    source_language_codes: _containers.RepeatedScalarFieldContainer[str]
    target_language_codes: _containers.RepeatedScalarFieldContainer[str]
    has_alignment: bool
    has_confidence: bool
    family: str
    has_length_control: bool
    max_length_ratio: float
    def __init__(self, name: _Optional[str] = ..., version: _Optional[str] = ..., variant: _Optional[str] = ..., language_pairs: _Optional[_Iterable[_Union[LanguagePair, _Mapping]]] = ..., max_beam_size: _Optional[int] = ..., max_source_tokens: _Optional[int] = ..., max_target_tokens: _Optional[int] = ..., has_shortlist: _Optional[bool] = ..., source_language_codes: _Optional[_Iterable[str]] = ..., target_language_codes: _Optional[_Iterable[str]] = ..., has_alignment: _Optional[bool] = ..., has_confidence: _Optional[bool] = ..., family: _Optional[str] = ..., has_length_control: _Optional[bool] = ..., max_length_ratio: _Optional[float] = ...) -> None: ...

class DetectLanguagesRequest(_message.Message):
    __slots__ = ("contents", "mime_type")
    CONTENTS_FIELD_NUMBER: _ClassVar[int]
    MIME_TYPE_FIELD_NUMBER: _ClassVar[int]
    contents: _containers.RepeatedScalarFieldContainer[str]
    mime_type: str
    def __init__(self, contents: _Optional[_Iterable[str]] = ..., mime_type: _Optional[str] = ...) -> None: ...

class DetectLanguagesResponse(_message.Message):
    __slots__ = ("detections",)
    DETECTIONS_FIELD_NUMBER: _ClassVar[int]
    detections: _containers.RepeatedCompositeFieldContainer[Detection]
    def __init__(self, detections: _Optional[_Iterable[_Union[Detection, _Mapping]]] = ...) -> None: ...

class Detection(_message.Message):
    __slots__ = ("language_code", "confidence", "status")
    LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    CONFIDENCE_FIELD_NUMBER: _ClassVar[int]
    STATUS_FIELD_NUMBER: _ClassVar[int]
    language_code: str
    confidence: float
    status: Status
    def __init__(self, language_code: _Optional[str] = ..., confidence: _Optional[float] = ..., status: _Optional[_Union[Status, _Mapping]] = ...) -> None: ...

class ListGlossariesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListGlossariesResponse(_message.Message):
    __slots__ = ("glossaries",)
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    glossaries: _containers.RepeatedCompositeFieldContainer[GlossaryInfo]
    def __init__(self, glossaries: _Optional[_Iterable[_Union[GlossaryInfo, _Mapping]]] = ...) -> None: ...

class GlossaryInfo(_message.Message):
    __slots__ = ("name", "source_language_code", "target_language_code", "num_terms", "version")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    NUM_TERMS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    name: str
    source_language_code: str
    target_language_code: str
    num_terms: int
    version: str
    def __init__(self, name: _Optional[str] = ..., source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., num_terms: _Optional[int] = ..., version: _Optional[str] = ...) -> None: ...

class LanguagePair(_message.Message):
    __slots__ = ("source_language_code", "target_language_code")
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    source_language_code: str
    target_language_code: str
    def __init__(self, source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ...) -> None: ...

class TranslateBulkRequest(_message.Message):
    __slots__ = ("options", "text")
    OPTIONS_FIELD_NUMBER: _ClassVar[int]
    TEXT_FIELD_NUMBER: _ClassVar[int]
    options: TranslateRequest
    text: BulkText
    def __init__(self, options: _Optional[_Union[TranslateRequest, _Mapping]] = ..., text: _Optional[_Union[BulkText, _Mapping]] = ...) -> None: ...

class BulkText(_message.Message):
    __slots__ = ("id", "content")
    ID_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    id: int
    content: str
    def __init__(self, id: _Optional[int] = ..., content: _Optional[str] = ...) -> None: ...

class TranslateBulkResponse(_message.Message):
    __slots__ = ("id", "translation", "model", "model_version", "glossaries")
    ID_FIELD_NUMBER: _ClassVar[int]
    TRANSLATION_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    id: int
    translation: Translation
    model: str
    model_version: str
    glossaries: _containers.RepeatedCompositeFieldContainer[UsedGlossary]
    def __init__(self, id: _Optional[int] = ..., translation: _Optional[_Union[Translation, _Mapping]] = ..., model: _Optional[str] = ..., model_version: _Optional[str] = ..., glossaries: _Optional[_Iterable[_Union[UsedGlossary, _Mapping]]] = ...) -> None: ...
