"""The API over HTTP in OpenAPI's form, of `openapi.yaml` beside this file and the protos; and its page."""

import json
import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

import yaml
from google.protobuf.descriptor_pb2 import DescriptorProto, EnumDescriptorProto, FieldDescriptorProto

from docs.generate.api import Comments, read_protos

_HEAD = Path(__file__).with_name("openapi.yaml")
_REFERENCE = "#/components/schemas/"
_TYPES: dict[int, dict[str, Any]] = {
    FieldDescriptorProto.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptorProto.TYPE_FLOAT: {"$ref": _REFERENCE + "Number"},
    FieldDescriptorProto.TYPE_INT32: {"type": "integer"},
    FieldDescriptorProto.TYPE_STRING: {"type": "string"},
    FieldDescriptorProto.TYPE_UINT32: {"type": "integer", "minimum": 0},
    FieldDescriptorProto.TYPE_UINT64: {"type": ["string", "integer"], "pattern": "^[0-9]+$"},
}


def description_file() -> str:
    """Returns `server/web/openapi.yaml`."""
    written: str = yaml.dump(description(), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=92)
    return "# Made by docs.generate of docs/generate/openapi.yaml and the protos.\n" + written


def description() -> dict[str, Any]:
    """Returns the description, with the schemas of all messages that its paths lead to."""
    document: dict[str, Any] = yaml.safe_load(_HEAD.read_text(encoding="utf-8"))
    own = document["components"]["schemas"]
    known = _schemas()
    todo = list(_references(document))
    schemas: dict[str, Any] = {}
    while todo:
        name = todo.pop(0)
        if name not in schemas and name not in own:
            schemas[name] = known[name]
            todo += _references(known[name])
    document["components"]["schemas"] = schemas | own
    return document


def documentation_file() -> str:
    """Returns `server/web/page/docs.html`."""
    document = description()
    operations = [
        _operation(method.upper(), path, operation)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]
    schemas = [_schema(name, schema) for name, schema in document["components"]["schemas"].items()]
    return _PAGE.format(
        about=escape(document["info"]["description"]),
        operations="\n".join(operations),
        schemas="\n".join(schemas),
        error=_link("Error"),
    )


class _Dumper(yaml.SafeDumper):  # type: ignore[misc] # a library without types
    """Writes everything out: no anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 # as the library calls it
        return True


def _schemas() -> dict[str, Any]:
    """Returns the schemas of all messages and enums of `translation.proto`, by name."""
    file = read_protos()[0]
    comments = Comments(file)
    messages = {each.name: _message(each, comments.of_fields(i)) for i, each in enumerate(file.message_type)}
    return messages | {each.name: _enum(each, comments.of_values(i)) for i, each in enumerate(file.enum_type)}


def _message(message: DescriptorProto, said: list[str]) -> dict[str, Any]:
    properties = {field.json_name: _field(field, words) for field, words in zip(message.field, said[1:], strict=True)}
    return _described(said[0], {"type": "object", "additionalProperties": False, "properties": properties})


def _field(field: FieldDescriptorProto, words: str) -> dict[str, Any]:
    name = field.type_name.rpartition(".")[2]
    kind = {"$ref": _REFERENCE + name} if name else _TYPES[field.type]
    is_repeated = field.label == FieldDescriptorProto.LABEL_REPEATED
    return _described(words, {"type": "array", "items": kind} if is_repeated else kind)


def _enum(enum: EnumDescriptorProto, said: list[str]) -> dict[str, Any]:
    values = [f"{value.name}: {words}" for value, words in zip(enum.value, said[1:], strict=True)]
    return _described(" ".join([said[0], *values]), {"type": "string", "enum": [value.name for value in enum.value]})


def _described(words: str, schema: dict[str, Any]) -> dict[str, Any]:
    """Puts a comment before a schema, with names of fields as JSON has them. What is quoted is a value, and stays."""
    names = r'(?<!")\b[a-z]+(?:_[a-z]+)+\b'
    words = re.sub(names, lambda found: _camel(found[0]), " ".join(words.replace("`", "").split()))
    return {"description": words} | schema if words else schema


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _references(value: Any) -> Iterator[str]:
    """Yields the names of all schemas that a part of the description refers to."""
    if isinstance(value, dict):
        reference = value.get("$ref", "")
        if isinstance(reference, str) and reference.startswith(_REFERENCE):
            yield reference.removeprefix(_REFERENCE)
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from _references(each)


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [f'<section id="{operation["operationId"]}">', f"<h2><code>{method} {escape(path)}</code></h2>"]
    parts.append(f"<p>{escape(operation['summary'])}. {escape(operation.get('description', ''))}</p>")
    parts += [
        f"<p>The {each['in']} has <code>{each['name']}</code>: {escape(each['description'])}.</p>"
        for each in operation.get("parameters", ())
    ]
    if body := operation.get("requestBody"):
        ((kind, content),) = body["content"].items()
        form = "" if kind == "application/json" else f" as <code>{kind}</code>"
        parts.append(f"<p>Takes {_kind(content['schema'])}{form}, such as</p>")
        example = json.dumps(content["example"], ensure_ascii=False)
        parts.append(f'<pre tabindex="0"><code>{escape(example)}</code></pre>')
    ((kind, content),) = operation["responses"]["200"]["content"].items()
    answer = _kind(content["schema"]) or "the bytes of the file"
    parts.append(f"<p>Answers <code>{escape(kind)}</code>: {answer}.</p>")
    return "\n".join([*parts, "</section>"])


def _schema(name: str, schema: dict[str, Any]) -> str:
    parts = [f'<section id="{name}">', f"<h2>{name}</h2>", f"<p>{escape(schema.get('description', ''))}</p>"]
    rows = [
        f"<tr><td><code>{field}</code></td><td>{_kind(each)}</td><td>{escape(each.get('description', ''))}</td></tr>"
        for field, each in schema.get("properties", {}).items()
    ]
    if rows:
        head = "<thead><tr><th>Field</th><th>Type</th><th>Meaning</th></tr></thead>"
        parts.append(
            f'<div class="scroll" tabindex="0"><table>{head}<tbody>\n{chr(10).join(rows)}\n</tbody></table></div>'
        )
    return "\n".join([*parts, "</section>"])


def _kind(schema: dict[str, Any]) -> str:
    """Returns what a value is, as HTML."""
    if "$ref" in schema:
        return _link(schema["$ref"].removeprefix(_REFERENCE))
    if schema.get("type") == "array":
        return f"list of {_kind(schema['items'])}"
    kind = schema.get("type", "")
    return " or ".join(kind) if isinstance(kind, list) else kind


def _link(name: str) -> str:
    return f'<a href="#{name}">{name}</a>'


_PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>API · babelserve</title>
  <link rel="icon" href="page/icon.svg" type="image/svg+xml">
  <link rel="stylesheet" href="page/style.css">
  <link rel="stylesheet" href="page/docs.css">
</head>
<body>
<header>
  <p class="name"><img src="page/icon.svg" alt="" width="22" height="22">babelserve</p>
  <nav aria-label="More"><a href="./">Translate</a></nav>
</header>
<main class="api">
<h1>API</h1>
<p>{about} <a href="openapi.yaml">openapi.yaml</a> has all of this for programs. Each error is an {error}.</p>
{operations}
{schemas}
</main>
</body>
</html>
"""
