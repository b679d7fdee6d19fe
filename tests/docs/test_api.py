"""Every message, field, value, method and comment of the protos is in the reference."""

import itertools
import re
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor, EnumDescriptor

from babelserve.v1 import model_admin_pb2, translation_pb2
from docs.generate.api import FILES, PROTOS, api_page
from docs.generate.markdown_text import prose

DESCRIPTORS = (translation_pb2.DESCRIPTOR, model_admin_pb2.DESCRIPTOR)


def sections() -> dict[str, str]:
    return dict(re.findall(r"^##+ (.*?)\n(.*?)(?=^##|\Z)", api_page(), re.MULTILINE | re.DOTALL))


def messages() -> Iterator[Descriptor]:
    for file in DESCRIPTORS:
        for message in file.message_types_by_name.values():
            yield message
            yield from message.nested_types


def enums() -> Iterator[EnumDescriptor]:
    for file in DESCRIPTORS:
        yield from file.enum_types_by_name.values()
    yield from itertools.chain.from_iterable(message.enum_types for message in messages())


def test_every_proto_is_read() -> None:
    assert sorted(FILES) == sorted(path.name for path in PROTOS.glob("*.proto"))


def test_every_message_has_a_section_with_all_its_fields() -> None:
    found = sections()

    for message in messages():
        name = message.full_name.removeprefix("babelserve.v1.")
        rows = re.findall(r"^\| `(\w+)` \|", found[name], re.MULTILINE)
        assert rows == [field.name for field in message.fields], name


def test_every_enum_has_a_section_with_all_its_values() -> None:
    found = sections()

    for enum in enums():
        name = enum.full_name.removeprefix("babelserve.v1.")
        rows = re.findall(r"^\| `(\w+)` \| (\d+) \|", found[name], re.MULTILINE)
        assert rows == [(value.name, str(value.number)) for value in enum.values], name


def test_every_method_has_a_section_with_what_it_takes_and_gives() -> None:
    found = sections()

    for file in DESCRIPTORS:
        for service in file.services_by_name.values():
            assert service.name in found
            for method in service.methods:
                said = found[f"{service.name}.{method.name}"]
                assert f"[{method.input_type.name}](#{method.input_type.name.lower()}) →" in said
                assert f"[{method.output_type.name}](#{method.output_type.name.lower()})" in said


def test_kinds_of_fields_are_told() -> None:
    page = api_page()

    assert "| `contents` | repeated string |" in page
    assert "| `beam_size` | optional uint32 |" in page
    assert "| `state` | [VersionStatus.State](#versionstatusstate) |" in page
    assert "→ stream of [TranslateStreamResponse]" in page


@pytest.mark.parametrize("name", FILES)
def test_every_comment_is_there(name: str) -> None:
    text = (PROTOS / name).read_text(encoding="utf-8").partition("\npackage")[2]  # what stands ahead is of the file
    comments = re.findall(r"(?:^ *// .*\n)+", text, re.MULTILINE)

    page = api_page()

    assert comments
    assert [
        comment for comment in comments if prose(re.sub(r"^ *// ", "", comment, flags=re.MULTILINE)) not in page
    ] == []
