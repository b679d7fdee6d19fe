from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class RivaTranslateTextRequest(_message.Message):
    __slots__ = ("texts", "model", "source_language", "target_language", "dnt_phrases", "max_len_variation", "id")
    TEXTS_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SOURCE_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    DNT_PHRASES_FIELD_NUMBER: _ClassVar[int]
    MAX_LEN_VARIATION_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    texts: _containers.RepeatedScalarFieldContainer[str]
    model: str
    source_language: str
    target_language: str
    dnt_phrases: _containers.RepeatedScalarFieldContainer[str]
    max_len_variation: str
    id: RivaRequestId
    def __init__(self, texts: _Optional[_Iterable[str]] = ..., model: _Optional[str] = ..., source_language: _Optional[str] = ..., target_language: _Optional[str] = ..., dnt_phrases: _Optional[_Iterable[str]] = ..., max_len_variation: _Optional[str] = ..., id: _Optional[_Union[RivaRequestId, _Mapping]] = ...) -> None: ...

class RivaTranslateTextResponse(_message.Message):
    __slots__ = ("translations", "id")
    TRANSLATIONS_FIELD_NUMBER: _ClassVar[int]
    ID_FIELD_NUMBER: _ClassVar[int]
    translations: _containers.RepeatedCompositeFieldContainer[RivaTranslation]
    id: RivaRequestId
    def __init__(self, translations: _Optional[_Iterable[_Union[RivaTranslation, _Mapping]]] = ..., id: _Optional[_Union[RivaRequestId, _Mapping]] = ...) -> None: ...

class RivaTranslation(_message.Message):
    __slots__ = ("text", "language")
    TEXT_FIELD_NUMBER: _ClassVar[int]
    LANGUAGE_FIELD_NUMBER: _ClassVar[int]
    text: str
    language: str
    def __init__(self, text: _Optional[str] = ..., language: _Optional[str] = ...) -> None: ...

class RivaRequestId(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: str
    def __init__(self, value: _Optional[str] = ...) -> None: ...

class RivaLanguagesRequest(_message.Message):
    __slots__ = ("model",)
    MODEL_FIELD_NUMBER: _ClassVar[int]
    model: str
    def __init__(self, model: _Optional[str] = ...) -> None: ...

class RivaLanguagesResponse(_message.Message):
    __slots__ = ("languages",)
    class LanguagesEntry(_message.Message):
        __slots__ = ("key", "value")
        KEY_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        key: str
        value: RivaLanguagesResponse.LanguagePair
        def __init__(self, key: _Optional[str] = ..., value: _Optional[_Union[RivaLanguagesResponse.LanguagePair, _Mapping]] = ...) -> None: ...
    class LanguagePair(_message.Message):
        __slots__ = ("src_lang", "tgt_lang")
        SRC_LANG_FIELD_NUMBER: _ClassVar[int]
        TGT_LANG_FIELD_NUMBER: _ClassVar[int]
        src_lang: _containers.RepeatedScalarFieldContainer[str]
        tgt_lang: _containers.RepeatedScalarFieldContainer[str]
        def __init__(self, src_lang: _Optional[_Iterable[str]] = ..., tgt_lang: _Optional[_Iterable[str]] = ...) -> None: ...
    LANGUAGES_FIELD_NUMBER: _ClassVar[int]
    languages: _containers.MessageMap[str, RivaLanguagesResponse.LanguagePair]
    def __init__(self, languages: _Optional[_Mapping[str, RivaLanguagesResponse.LanguagePair]] = ...) -> None: ...
