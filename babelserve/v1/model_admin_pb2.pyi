from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from collections.abc import Iterable as _Iterable, Mapping as _Mapping
from typing import ClassVar as _ClassVar, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class ListVersionsRequest(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...

class ListVersionsResponse(_message.Message):
    __slots__ = ("models",)
    MODELS_FIELD_NUMBER: _ClassVar[int]
    models: _containers.RepeatedCompositeFieldContainer[ModelStatus]
    def __init__(self, models: _Optional[_Iterable[_Union[ModelStatus, _Mapping]]] = ...) -> None: ...

class ModelStatus(_message.Message):
    __slots__ = ("model", "follows_folder", "versions")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    FOLLOWS_FOLDER_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    model: str
    follows_folder: bool
    versions: _containers.RepeatedCompositeFieldContainer[VersionStatus]
    def __init__(self, model: _Optional[str] = ..., follows_folder: _Optional[bool] = ..., versions: _Optional[_Iterable[_Union[VersionStatus, _Mapping]]] = ...) -> None: ...

class VersionStatus(_message.Message):
    __slots__ = ("version", "state", "traffic_percent", "fault")
    class State(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        STATE_UNSPECIFIED: _ClassVar[VersionStatus.State]
        AVAILABLE: _ClassVar[VersionStatus.State]
        LOADED: _ClassVar[VersionStatus.State]
    STATE_UNSPECIFIED: VersionStatus.State
    AVAILABLE: VersionStatus.State
    LOADED: VersionStatus.State
    VERSION_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_PERCENT_FIELD_NUMBER: _ClassVar[int]
    FAULT_FIELD_NUMBER: _ClassVar[int]
    version: str
    state: VersionStatus.State
    traffic_percent: int
    fault: str
    def __init__(self, version: _Optional[str] = ..., state: _Optional[_Union[VersionStatus.State, str]] = ..., traffic_percent: _Optional[int] = ..., fault: _Optional[str] = ...) -> None: ...

class LoadRequest(_message.Message):
    __slots__ = ("model", "version")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class UnloadRequest(_message.Message):
    __slots__ = ("model", "version")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class RollbackRequest(_message.Message):
    __slots__ = ("model", "version")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    model: str
    version: str
    def __init__(self, model: _Optional[str] = ..., version: _Optional[str] = ...) -> None: ...

class SetTrafficRequest(_message.Message):
    __slots__ = ("model", "traffic")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    TRAFFIC_FIELD_NUMBER: _ClassVar[int]
    model: str
    traffic: _containers.RepeatedCompositeFieldContainer[TrafficShare]
    def __init__(self, model: _Optional[str] = ..., traffic: _Optional[_Iterable[_Union[TrafficShare, _Mapping]]] = ...) -> None: ...

class TrafficShare(_message.Message):
    __slots__ = ("version", "percent")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PERCENT_FIELD_NUMBER: _ClassVar[int]
    version: str
    percent: int
    def __init__(self, version: _Optional[str] = ..., percent: _Optional[int] = ...) -> None: ...
