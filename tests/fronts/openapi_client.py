"""Asks every operation of /openapi.yaml and /spec for what its example says, and holds the answers against schemas."""

import json
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate


def main(address: str) -> None:
    for place in ("/openapi.yaml", "/spec", "/libretranslate/spec"):
        _check_description(address, place)
    document = yaml.safe_load(_ask(address, "GET", "/openapi.yaml")[1])
    _check_a_document_that_fails(address, document)
    _check_all_outputs(address, document)


def _check_description(address: str, place: str) -> None:
    """Asks every operation of a description, and for an error."""
    document = yaml.safe_load(_ask(address, "GET", place)[1])  # JSON is YAML
    validate(document)
    base = (address + place).rpartition("/")[0]
    given: dict[str, str] = {}  # parameters of paths, as answers have them
    for path, method, operation in _in_order(document):
        body, headers = _example(document, operation)
        status, answer, kind = _ask(base, method.upper(), path.format(**given), body, headers)
        assert status == 200, (path, status, answer)
        ((described, content),) = operation["responses"]["200"]["content"].items()
        assert described in (kind.partition(";")[0], "*/*"), (path, kind)
        values = _values(described, answer)
        assert values, path
        for value in values:
            _check(document, content["schema"], value)
            if "id" in value:
                given["id"] = value["id"]
            if "translatedFileUrl" in value:
                given["name"] = value["translatedFileUrl"].rpartition("/")[2]
        if described == "*/*":
            assert answer.startswith(b"Ein "), answer
    wrong = {"contents": ["A dog."], "targetLanguageCode": "xx", "q": "A dog.", "source": "en", "target": "xx"}
    status, answer, _ = _ask(
        base, "POST", next(path for path in document["paths"] if path.endswith("/translate")), wrong
    )
    assert status == 400
    _check(document, {"$ref": "#/components/schemas/Error"}, json.loads(answer))


def _in_order(document: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """Returns all operations. What deletes comes last, because others need it."""
    operations = [
        (path, method, operation) for path, each in document["paths"].items() for method, operation in each.items()
    ]
    return sorted(operations, key=lambda operation: operation[1] == "delete")


def _check_a_document_that_fails(address: str, document: dict[str, Any]) -> None:
    body, headers = _form({"file": "no archive", "filename": "a.docx", "targetLanguageCode": "de"})
    identity = json.loads(_ask(address, "POST", "/v1/documents", body, headers)[1])["id"]
    status, answer, _ = _ask(address, "GET", f"/v1/documents/{identity}/file")
    assert status == 400
    _check(document, {"$ref": "#/components/schemas/Error"}, json.loads(answer))
    status, shown, _ = _ask(address, "GET", f"/v1/documents/{identity}")
    assert (status, json.loads(shown)["error"]) == (200, json.loads(answer)["error"])
    _check(document, {"$ref": "#/components/schemas/Document"}, json.loads(shown))


def _check_all_outputs(address: str, document: dict[str, Any]) -> None:
    """Asks for everything that an answer may carry, and that what the description refuses is refused."""
    output = dict.fromkeys(
        ("includeSentences", "includeAlignment", "includeTokens", "includeConfidence", "includeSearch"), True
    )
    body = {
        "contents": ["A dog runs to https://a.example. 12", ""],
        "targetLanguageCode": "de",
        "output": output,
        "glossary": {"terms": [{"source": "dog", "target": "Köter"}]},
    }
    status, answer, _ = _ask(address, "POST", "/v1/translate", body)
    assert status == 200, answer
    _check(document, {"$ref": "#/components/schemas/TranslateRequest"}, body)
    _check(document, {"$ref": "#/components/schemas/TranslateResponse"}, json.loads(answer))
    unknown = body | {"unknown": 1}
    assert not _is_valid(document, {"$ref": "#/components/schemas/TranslateRequest"}, unknown)
    assert _ask(address, "POST", "/v1/translate", unknown)[0] == 400


def _example(document: dict[str, Any], operation: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """Returns the body and headers of an operation's example."""
    if "requestBody" not in operation:
        return None, {}
    ((kind, content),) = operation["requestBody"]["content"].items()
    _check(document, content["schema"], content["example"])
    return _form(content["example"]) if kind == "multipart/form-data" else (content["example"], {})


def _form(fields: dict[str, Any]) -> tuple[bytes, dict[str, str]]:
    """Returns a form of parts; a list is a part for each of its values."""
    pairs = [(name, each) for name, value in fields.items() for each in (value if isinstance(value, list) else [value])]
    parts = [f'--x\r\ncontent-disposition: form-data; name="{name}"\r\n\r\n{value}\r\n' for name, value in pairs]
    return ("".join(parts) + "--x--\r\n").encode(), {"content-type": "multipart/form-data; boundary=x"}


def _values(kind: str, answer: bytes) -> list[Any]:
    if kind == "application/json":
        return [json.loads(answer)]
    if kind == "*/*":
        return [answer.decode()]
    events = [event.split("\n") for event in answer.decode().strip().split("\n\n")]
    assert events[-1] == ["event: end", "data: {}"], events[-1]
    return [json.loads(lines[0].removeprefix("data: ")) for lines in events[:-1]]


def _check(document: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    Draft202012Validator(schema | {"components": document["components"]}).validate(value)


def _is_valid(document: dict[str, Any], schema: dict[str, Any], value: Any) -> bool:
    return bool(Draft202012Validator(schema | {"components": document["components"]}).is_valid(value))


def _ask(
    address: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] = MappingProxyType({})
) -> tuple[int, bytes, str]:
    """Returns status, body and media type of an answer. A body that is no bytes goes as JSON."""
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    own = {"content-type": "application/json"}
    request = urllib.request.Request(address + path, data, own | dict(headers), method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read(), answer.headers["content-type"]
    except urllib.error.HTTPError as error:
        return error.code, error.read(), error.headers["content-type"]


if __name__ == "__main__":
    main(sys.argv[1])
