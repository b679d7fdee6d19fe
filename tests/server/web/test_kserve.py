"""KServe's protocol over a real socket; the engine echoes."""

import gzip
import json
import struct
import zlib
from typing import Any

import pytest

from server.telemetry.metrics import Metrics
from server.web.bodies import MAX_BODY_BYTES
from tests.server.web.conftest import Site

ASKED = {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["A dog runs."]}], "id": "7"}
OUTPUT = {"name": "translation", "datatype": "BYTES", "shape": [1], "data": ["A dog runs."]}


async def name_of(site: Site) -> str:
    return str((await site.call("POST", "/v2/repository/index")).json[0]["name"])


@pytest.mark.parametrize("prefix", ["", "/kserve"])
async def test_a_tensor_of_texts_is_translated(site: Site, metrics: Metrics, prefix: str) -> None:
    name = await name_of(site)
    answer = await site.call("POST", f"{prefix}/v2/models/{name}/infer", ASKED)

    assert answer.status == 200
    assert (answer.json["id"], answer.json["outputs"]) == ("7", [OUTPUT])
    labels = {"front": "kserve", "code": "OK"}
    assert metrics.registry.get_sample_value("babelserve_front_requests_total", labels) == 3  # each with ListModels


async def test_bytes_come_and_go_behind_the_json(site: Site) -> None:
    name = await name_of(site)
    tail = struct.pack("<I", 6) + b"A dog."
    inputs = [{"name": "text", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": len(tail)}}]
    head = json.dumps({"inputs": inputs, "parameters": {"binary_data_output": True}}).encode()
    for encoding, body in (
        ("", head + tail),
        ("gzip", gzip.compress(head + tail)),
        ("deflate", zlib.compress(head + tail)),
    ):
        headers = {"inference_header_content_length": str(len(head)), "content_encoding": encoding}
        answer = await site.call("POST", f"/v2/models/{name}/infer", body, **headers)

        length = int(answer.headers["inference-header-content-length"])
        assert json.loads(answer.body[:length])["outputs"][0]["parameters"] == {"binary_data_size": len(tail)}
        assert answer.body[length:] == tail


async def test_health_has_no_body(site: Site) -> None:
    name = await name_of(site)
    paths = ("/v2/health/live", "/v2/health/ready", f"/v2/models/{name}/ready")

    assert [(await site.call("GET", path)).status for path in paths] == [200, 200, 200]
    site.running.refuse()
    assert [(await site.call("GET", path)).status for path in paths[:2]] == [200, 400]
    assert (await site.call("GET", paths[1])).body == b""


async def test_models_are_described(site: Site) -> None:
    (found,) = (await site.call("POST", "/v2/repository/index", {"ready": True})).json
    path = f"/v2/models/{found['name']}"
    metadata = (await site.call("GET", f"{path}/versions/{found['version']}")).json

    assert found["state"] == "READY"
    assert metadata["name"] == found["name"]
    assert (await site.call("GET", f"{path}/config")).json["platform"] == "babelserve"
    assert (await site.call("GET", "/v2")).json["name"] == "babelserve"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v2/models/stats", None, 501),
        ("GET", "/v2/models/a/versions/1/stats", None, 501),
        ("POST", "/v2/repository/models/a/load", {}, 501),
        ("GET", "/v2/systemsharedmemory/status", None, 501),
        ("POST", "/v2/cudasharedmemory/region/a/register", {}, 501),
        ("GET", "/v2/logging", None, 501),
        ("GET", "/v2/trace/setting", None, 501),
        ("GET", "/v2/models/no", None, 400),
        ("GET", "/v2/models/no/ready", None, 400),
        ("POST", "/v2/models/no/infer", ASKED, 400),
        ("POST", "/v2/models/no/infer", b"{", 400),
        ("POST", "/v2/repository/index", [], 400),
    ],
)
async def test_the_rest_is_refused_with_words(site: Site, method: str, path: str, body: Any, status: int) -> None:
    answer = await site.call(method, path, body)

    assert answer.status == status
    assert answer.json["error"]


@pytest.mark.parametrize(
    ("encoding", "body", "status"),
    [
        ("gzip", b"no gzip", 400),
        ("gzip", gzip.compress(b"{}")[:-1], 400),
        ("br", b"{}", 400),
        ("gzip", gzip.compress(b" " * (MAX_BODY_BYTES + 1)), 413),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_refused(site: Site, encoding: str, body: bytes, status: int) -> None:
    answer = await site.call("POST", "/v2/models/a/infer", body, content_encoding=encoding)

    assert answer.status == status
