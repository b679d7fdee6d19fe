"""The page of the gRPC API: the protos' services and messages with their comments."""

import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

from docs.generate.markdown_text import code, page, prose, table

PROTOS = Path(__file__).parents[2] / "protos" / "babelserve" / "v1"
FILES = ("translation.proto", "glossary_store.proto", "model_admin.proto")

# Numbers of descriptor.proto, of which a comment's path is made.
_MESSAGES, _ENUMS, _SERVICES = 4, 5, 6
_FIELDS, _NESTED_MESSAGES, _NESTED_ENUMS = 2, 3, 4
_METHODS = _VALUES = 2

_Path = tuple[int, ...]


@cache
def read_protos() -> tuple[FileDescriptorProto, ...]:
    """Returns the descriptors of `FILES`, with comments. Raises ValueError if protoc cannot read them."""
    with tempfile.TemporaryDirectory() as directory:
        out = Path(directory) / "descriptors"
        arguments = [f"-I{PROTOS}", "--include_source_info", f"--descriptor_set_out={out}", *FILES]
        if protoc.main(["protoc", *arguments]):
            raise ValueError(f"protoc cannot read {', '.join(FILES)}")
        return tuple(FileDescriptorSet.FromString(out.read_bytes()).file)


def api_page() -> str:
    """All services, messages and enums."""
    blocks = [block for file in read_protos() for block in _File(file).blocks()]
    return page(
        "# gRPC API",
        "What [`translation.proto`](../../protos/babelserve/v1/translation.proto),"
        " [`glossary_store.proto`](../../protos/babelserve/v1/glossary_store.proto) and, for operators,"
        " [`model_admin.proto`](../../protos/babelserve/v1/model_admin.proto), all in `protos/babelserve/v1`,"
        f" say: package {code(read_protos()[0].package)}, proto3.",
        *blocks,
    )


class Comments:
    """What a file says of its parts.

    Args:
        file: with its source's comments.
    """

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._comments = {
            tuple(location.path): location.leading_comments or location.trailing_comments
            for location in file.source_code_info.location
        }

    def at(self, path: _Path) -> str:
        """Returns the comment of what a path of descriptor.proto leads to; empty if it has none."""
        return self._comments.get(path, "")

    def of_fields(self, index: int) -> list[str]:
        """Returns the comments of a message and of its fields."""
        fields = range(len(self._file.message_type[index].field))
        return [self.at((_MESSAGES, index)), *(self.at((_MESSAGES, index, _FIELDS, i)) for i in fields)]

    def of_values(self, index: int) -> list[str]:
        """Returns the comments of an enum and of its values."""
        values = range(len(self._file.enum_type[index].value))
        return [self.at((_ENUMS, index)), *(self.at((_ENUMS, index, _VALUES, i)) for i in values)]


class _File:
    """Renders one file."""

    def __init__(self, file: FileDescriptorProto) -> None:
        self._file = file
        self._comments = Comments(file)

    def blocks(self) -> Iterator[str]:
        for i, service in enumerate(self._file.service):
            yield from self._service(service, (_SERVICES, i))
        for i, message in enumerate(self._file.message_type):
            yield from self._message(message, (_MESSAGES, i), message.name)
        for i, enum in enumerate(self._file.enum_type):
            yield from self._enum(enum, (_ENUMS, i), enum.name)

    def _said(self, path: _Path) -> str:
        return prose(self._comments.at(path))

    def _service(self, service: ServiceDescriptorProto, path: _Path) -> Iterator[str]:
        yield f"## {service.name}"
        yield self._said(path)
        for i, method in enumerate(service.method):
            stream = "stream of " if method.server_streaming else ""
            yield f"### {service.name}.{method.name}"
            yield f"{_link(method.input_type)} → {stream}{_link(method.output_type)}"
            yield self._said((*path, _METHODS, i))

    def _message(self, message: DescriptorProto, path: _Path, name: str) -> Iterator[str]:
        rows = [
            (code(field.name), _kind(field), self._said((*path, _FIELDS, i))) for i, field in enumerate(message.field)
        ]
        yield f"## {name}"
        yield self._said(path)
        yield table(("Field", "Type", "Meaning"), rows) if rows else "It has no fields."
        for i, nested in enumerate(message.nested_type):
            yield from self._message(nested, (*path, _NESTED_MESSAGES, i), f"{name}.{nested.name}")
        for i, enum in enumerate(message.enum_type):
            yield from self._enum(enum, (*path, _NESTED_ENUMS, i), f"{name}.{enum.name}")

    def _enum(self, enum: EnumDescriptorProto, path: _Path, name: str) -> Iterator[str]:
        rows = [
            (code(value.name), str(value.number), self._said((*path, _VALUES, i))) for i, value in enumerate(enum.value)
        ]
        yield f"## {name}"
        yield self._said(path)
        yield table(("Value", "Number", "Meaning"), rows)


def _kind(field: FieldDescriptorProto) -> str:
    if field.type_name:
        kind = _link(field.type_name)
    else:
        kind = FieldDescriptorProto.Type.Name(field.type).removeprefix("TYPE_").lower()
    is_repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    return f"{'repeated ' if is_repeated else ''}{'optional ' if field.proto3_optional else ''}{kind}"


def _link(type_name: str) -> str:
    """Links to the heading of ".package.Message.Nested", whose anchor has no dots."""
    package = read_protos()[0].package
    name = type_name.removeprefix(f".{package}.")
    return f"[{name}](#{name.replace('.', '').lower()})"
