"""Asks every operation of /openapi.yaml for what its example says, and holds the answers against its schemas."""

import json
import sys
import urllib.error
import urllib.request
from typing import Any

import yaml
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate


def main(address: str) -> None:
    document = yaml.safe_load(_ask(address, "GET", "/openapi.yaml")[1])
    validate(document)
    num_checked = 0
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            body = _example(document, operation)
            status, answer = _ask(address, method.upper(), path, body)
            assert status == 200, (path, status, answer)
            ((kind, content),) = operation["responses"]["200"]["content"].items()
            for value in _values(kind, answer):
                _check(document, content["schema"], value)
                num_checked += 1
    refused = _ask(address, "POST", "/v1/translate", {"contents": ["A dog."], "targetLanguageCode": "xx"})
    assert refused[0] == 400
    _check(document, {"$ref": "#/components/schemas/Error"}, json.loads(refused[1]))
    _check_all_outputs(address, document)
    assert num_checked >= len(document["paths"])


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
    status, answer = _ask(address, "POST", "/v1/translate", body)
    assert status == 200, answer
    _check(document, {"$ref": "#/components/schemas/TranslateRequest"}, body)
    _check(document, {"$ref": "#/components/schemas/TranslateResponse"}, json.loads(answer))
    unknown = body | {"unknown": 1}
    assert not _is_valid(document, {"$ref": "#/components/schemas/TranslateRequest"}, unknown)
    assert _ask(address, "POST", "/v1/translate", unknown)[0] == 400


def _example(document: dict[str, Any], operation: dict[str, Any]) -> Any:
    if "requestBody" not in operation:
        return None
    content = operation["requestBody"]["content"]["application/json"]
    _check(document, content["schema"], content["example"])
    return content["example"]


def _values(kind: str, answer: bytes) -> list[Any]:
    if kind == "application/json":
        return [json.loads(answer)]
    events = [event.split("\n") for event in answer.decode().strip().split("\n\n")]
    assert events[-1] == ["event: end", "data: {}"], events[-1]
    return [json.loads(lines[0].removeprefix("data: ")) for lines in events[:-1]]


def _check(document: dict[str, Any], schema: dict[str, Any], value: Any) -> None:
    Draft202012Validator(schema | {"components": document["components"]}).validate(value)


def _is_valid(document: dict[str, Any], schema: dict[str, Any], value: Any) -> bool:
    return bool(Draft202012Validator(schema | {"components": document["components"]}).is_valid(value))


def _ask(address: str, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(address + path, data, {"content-type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


if __name__ == "__main__":
    main(sys.argv[1])
