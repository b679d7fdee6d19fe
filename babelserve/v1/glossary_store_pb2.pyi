from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class PutKeptGlossaryRequest(_message.Message):
    __slots__ = ("glossary",)
    GLOSSARY_FIELD_NUMBER: _ClassVar[int]
    glossary: KeptGlossary
    def __init__(self, glossary: _Optional[_Union[KeptGlossary, _Mapping]] = ...) -> None: ...

class KeptGlossary(_message.Message):
    __slots__ = ("id", "title", "create_time_ms", "revision", "dictionaries")
    ID_FIELD_NUMBER: _ClassVar[int]
    TITLE_FIELD_NUMBER: _ClassVar[int]
    CREATE_TIME_MS_FIELD_NUMBER: _ClassVar[int]
    REVISION_FIELD_NUMBER: _ClassVar[int]
    DICTIONARIES_FIELD_NUMBER: _ClassVar[int]
    id: str
    title: str
    create_time_ms: int
    revision: int
    dictionaries: _containers.RepeatedCompositeFieldContainer[Dictionary]
    def __init__(self, id: _Optional[str] = ..., title: _Optional[str] = ..., create_time_ms: _Optional[int] = ..., revision: _Optional[int] = ..., dictionaries: _Optional[_Iterable[_Union[Dictionary, _Mapping]]] = ...) -> None: ...

class Dictionary(_message.Message):
    __slots__ = ("source_language_code", "target_language_code", "terms", "num_terms", "glossary_name")
    SOURCE_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TARGET_LANGUAGE_CODE_FIELD_NUMBER: _ClassVar[int]
    TERMS_FIELD_NUMBER: _ClassVar[int]
    NUM_TERMS_FIELD_NUMBER: _ClassVar[int]
    GLOSSARY_NAME_FIELD_NUMBER: _ClassVar[int]
    source_language_code: str
    target_language_code: str
    terms: _containers.RepeatedCompositeFieldContainer[DictionaryTerm]
    num_terms: int
    glossary_name: str
    def __init__(self, source_language_code: _Optional[str] = ..., target_language_code: _Optional[str] = ..., terms: _Optional[_Iterable[_Union[DictionaryTerm, _Mapping]]] = ..., num_terms: _Optional[int] = ..., glossary_name: _Optional[str] = ...) -> None: ...

class DictionaryTerm(_message.Message):
    __slots__ = ("source", "target")
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    source: str
    target: str
    def __init__(self, source: _Optional[str] = ..., target: _Optional[str] = ...) -> None: ...

class GetKeptGlossaryRequest(_message.Message):
    __slots__ = ("id", "without_terms")
    ID_FIELD_NUMBER: _ClassVar[int]
    WITHOUT_TERMS_FIELD_NUMBER: _ClassVar[int]
    id: str
    without_terms: bool
    def __init__(self, id: _Optional[str] = ..., without_terms: _Optional[bool] = ...) -> None: ...

class ListKeptGlossariesRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListKeptGlossariesResponse(_message.Message):
    __slots__ = ("glossaries",)
    GLOSSARIES_FIELD_NUMBER: _ClassVar[int]
    glossaries: _containers.RepeatedCompositeFieldContainer[KeptGlossary]
    def __init__(self, glossaries: _Optional[_Iterable[_Union[KeptGlossary, _Mapping]]] = ...) -> None: ...

class DeleteKeptGlossaryRequest(_message.Message):
    __slots__ = ("id",)
    ID_FIELD_NUMBER: _ClassVar[int]
    id: str
    def __init__(self, id: _Optional[str] = ...) -> None: ...

class DeleteKeptGlossaryResponse(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
