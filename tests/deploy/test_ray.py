"""The RayJob: its command is one that is there, its pods are as narrow as the server's, and KubeRay knows its fields.

KubeRay's definition is in the folder that BABELSERVE_CRDS names, as for `test_kubernetes`.
"""

import os
import re
import shlex
from typing import Any

import pytest
import yaml

from server.bulk.command import build_parser
from server.settings.command_line import read_settings
from tests.deploy.test_kubernetes import KUBERNETES, closed, definitions

TEXT = (KUBERNETES / "rayjob.yaml").read_text(encoding="utf-8")
JOB = yaml.safe_load(TEXT)
HEAD, WORKERS = JOB["spec"]["rayClusterSpec"]["headGroupSpec"], JOB["spec"]["rayClusterSpec"]["workerGroupSpecs"][0]


def pod_of(group: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = group["template"]["spec"]
    return pod


def test_its_command_is_one_that_is_there_with_a_worker_for_each_pod_and_a_lane_for_each_processor() -> None:
    program, *words = shlex.split(JOB["spec"]["entrypoint"])
    cut = words.index("--")
    options = build_parser().parse_args(words[:cut])
    settings = read_settings(words[cut + 1 :], {}, "").settings

    (container,) = pod_of(WORKERS)["containers"]
    assert program == "babelserve-bulk"
    assert options.ray_workers == WORKERS["replicas"] == WORKERS["minReplicas"] == WORKERS["maxReplicas"]
    assert settings.lanes == int(container["resources"]["limits"]["cpu"])


def test_it_says_what_its_image_needs() -> None:
    says = " ".join(line.removeprefix("#").strip() for line in TEXT.splitlines() if line.startswith("#"))

    assert re.findall(r"`([^`]+)`", says) == ["babelserve[cpu,ray]", "ray[default]", "s3fs"]
    assert "s3://" in JOB["spec"]["entrypoint"]


def test_its_pods_may_do_no_more_than_the_servers() -> None:
    server = yaml.safe_load((KUBERNETES / "base" / "deployment.yaml").read_text(encoding="utf-8"))
    ours = server["spec"]["template"]["spec"]

    for pod in (pod_of(HEAD), pod_of(WORKERS)):
        assert pod["securityContext"] == ours["securityContext"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["containers"][0]["securityContext"] == ours["containers"][0]["securityContext"]


@pytest.mark.skipif("BABELSERVE_CRDS" not in os.environ, reason="needs BABELSERVE_CRDS")
def test_kuberay_takes_it() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schemas = {(version, kind): schema for version, kind, schema in definitions()}
    schema = closed(schemas[JOB["apiVersion"], JOB["kind"]])
    schema["properties"]["metadata"] = {"type": "object"}

    jsonschema.validate(JOB, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(JOB | {"spec": {**JOB["spec"], "unheardOf": 1}}, schema)
