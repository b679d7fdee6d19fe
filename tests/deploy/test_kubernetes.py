"""Kustomize and the chart make the same objects, and these are what Kubernetes and its extensions take.

The tools are those in the path: kubectl, helm, kubernetes-validate, checkov. The definitions of foreign kinds (KEDA,
Prometheus operator, Gateway API), as their projects publish them in YAML, are in the folder that BABELSERVE_CRDS names.
"""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
KUBERNETES = ROOT / "deploy" / "kubernetes"
OVERLAYS = {
    tuple(
        Path(each).name for each in yaml.safe_load(path.read_text(encoding="utf-8")).get("components", ())
    ): path.parent
    for path in sorted((KUBERNETES / "overlays").glob("*/kustomization.yaml"))
}
ALL = ("gpu", "keys", "gateway", "mtls", "keda", "monitoring", "models")
SETS = [
    *OVERLAYS,
    (*ALL, "models-image"),
    (*ALL, "models-init"),
]
NATIVE = {"v1", "apps/v1", "policy/v1", "networking.k8s.io/v1"}
MINORS = ("1.35", "1.36", "1.37")

Objects = dict[tuple[str, str], dict[str, Any]]

each_set = pytest.mark.parametrize("components", SETS, ids=lambda components: "+".join(components) or "cpu")


def needs(command: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(shutil.which(command) is None, reason=f"needs {command}")


def by_name(text: str) -> Objects:
    return {(made["kind"], made["metadata"]["name"]): made for made in yaml.safe_load_all(text) if made}


def output(*command: str, given: str = "") -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@cache
def kustomized(components: tuple[str, ...]) -> str:
    """What an overlay of ours makes, or, of several components, one that names them in this order."""
    if components in OVERLAYS:
        return output("kubectl", "kustomize", str(OVERLAYS[components]))
    with TemporaryDirectory() as made:
        ours = os.path.relpath(KUBERNETES, Path(made).resolve())
        kustomization = {
            "resources": [f"{ours}/base"],
            "components": [f"{ours}/components/{name}" for name in components],
        }
        (Path(made) / "kustomization.yaml").write_text(json.dumps(kustomization))
        return output("kubectl", "kustomize", made)


def charted(**values: object) -> Objects:
    return by_name(output("helm", "template", "any", str(KUBERNETES), "--values", "-", given=json.dumps(values)))


def in_order(value: Any) -> Any:
    """The same with lists of named things in the order of their names, which means nothing to Kubernetes."""
    if isinstance(value, dict):
        return {key: in_order(inner) for key, inner in value.items()}
    if not isinstance(value, list):
        return value
    inner = [in_order(item) for item in value]
    return sorted(inner, key=lambda item: str(item.get("name")) if isinstance(item, dict) else "")


@needs("kubectl")
@needs("helm")
@each_set
def test_the_chart_makes_what_kustomize_makes(components: tuple[str, ...]) -> None:
    assert in_order(charted(components=components)) == in_order(by_name(kustomized(components)))


def test_whoever_scales_by_metrics_lets_prometheus_read_them() -> None:
    (components,) = (components for components in OVERLAYS if "keda" in components)

    assert "monitoring" in components


@needs("helm")
def test_the_charts_values_reach_the_objects() -> None:
    image = "registry.example/babelserve@sha256:0"
    env = [{"name": "BABELSERVE_GLOSSARIES", "value": "/g"}, {"name": "BABELSERVE_LANES", "value": "1"}]
    pods = {"containers": [{"name": "babelserve", "env": env}], "terminationGracePeriodSeconds": None}
    patch = {"spec": {"replicas": 4, "template": {"spec": pods}}}

    made = charted(image=image, components=["gateway"], patches={"Deployment/babelserve": patch})

    server = made["Deployment", "babelserve"]["spec"]
    (container,) = server["template"]["spec"]["containers"]
    assert (server["replicas"], container["image"], container["env"]) == (4, image, env)
    assert [port["name"] for port in container["ports"]] == ["grpc", "health", "metrics"]
    assert "terminationGracePeriodSeconds" not in server["template"]["spec"]
    assert made["Deployment", "babelserve-gateway"]["spec"]["template"]["spec"]["containers"][0]["image"] == image


@needs("helm")
@pytest.mark.parametrize("values", [{"components": ["gpus"]}, {"patches": {"Deployment/other": {"spec": {}}}}])
def test_the_chart_refuses_a_part_that_is_not_there(values: dict[str, object]) -> None:
    with pytest.raises(AssertionError, match=r"(components|patches): there is no"):
        charted(**values)


@needs("kubectl")
@needs("kubernetes-validate")
@each_set
def test_kubernetes_takes_every_object(components: tuple[str, ...], tmp_path: Path) -> None:
    native = [made for made in by_name(kustomized(components)).values() if made["apiVersion"] in NATIVE]
    (tmp_path / "all.yaml").write_text(yaml.safe_dump_all(native))

    for minor in MINORS:
        output("kubernetes-validate", "--strict", "--kubernetes-version", minor, str(tmp_path / "all.yaml"))


def definitions() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path in Path(os.environ["BABELSERVE_CRDS"]).glob("*.yaml"):
        definition = yaml.safe_load(path.read_text(encoding="utf-8"))["spec"]
        for version in definition["versions"]:
            name = f"{definition['group']}/{version['name']}"
            yield name, definition["names"]["kind"], version["schema"]["openAPIV3Schema"]


def closed(schema: Any) -> Any:
    """The schema with every unlisted field forbidden, as the server prunes these without a word."""
    if isinstance(schema, str):
        return schema.replace("^(?i)", "(?i)^")  # what Go takes as a pattern, and Python
    if isinstance(schema, list):
        return [closed(inner) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    inner = {key: closed(value) for key, value in schema.items()}
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") or "additionalProperties" in schema
    return (
        inner if is_open or not isinstance(schema.get("properties"), dict) else inner | {"additionalProperties": False}
    )


@needs("kubectl")
@pytest.mark.skipif("BABELSERVE_CRDS" not in os.environ, reason="needs BABELSERVE_CRDS")
def test_the_extensions_take_every_object() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    schemas = {(version, kind): schema for version, kind, schema in definitions()}
    foreign = [made for made in by_name(kustomized(SETS[-1])).values() if made["apiVersion"] not in NATIVE]

    assert {made["kind"] for made in foreign} == {
        "GRPCRoute", "HTTPRoute", "PrometheusRule", "ScaledObject", "ServiceMonitor",
    }  # fmt: skip
    for made in foreign:
        schema = closed(schemas[made["apiVersion"], made["kind"]])
        schema["properties"]["metadata"] = {"type": "object"}
        jsonschema.validate(made, schema)
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(made | {"spec": {**made["spec"], "unheardOf": 1}}, schema)


@needs("kubectl")
@needs("checkov")
def test_checkov_finds_nothing_but_what_has_a_reason(tmp_path: Path) -> None:
    for components in SETS:
        (tmp_path / f"{'+'.join(components) or 'cpu'}.yaml").write_text(kustomized(components))
    config = str(ROOT / "deploy" / "checkov.yaml")

    output("checkov", "--config-file", config, "--skip-download", "--directory", str(tmp_path))
