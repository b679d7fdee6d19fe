"""The first example of docs/guides/deploy.md makes what the page says."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.docs.reader import ROOT, blocks

PAGE = (ROOT / "docs" / "guides" / "deploy.md").read_text(encoding="utf-8")
((_, KUSTOMIZATION),) = [block for block in blocks(PAGE) if block[0] == "yaml"]


def objects_of(kustomization: str, folder: Path) -> dict[tuple[str, str], Any]:
    shutil.copytree(ROOT / "deploy" / "kubernetes", folder / "deploy" / "kubernetes")
    (folder / "kustomization.yaml").write_text(kustomization)
    made = subprocess.run(["kubectl", "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return {
        (each["kind"], each["metadata"]["name"]): each["spec"]
        for each in yaml.safe_load_all(made.stdout)
        if "spec" in each
    }


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_with_gpus_the_servers_keep_the_image_for_gpus(tmp_path: Path) -> None:
    gpus = KUSTOMIZATION.replace("components: [", "components: [deploy/kubernetes/components/gpu, ")

    objects = objects_of(gpus, tmp_path)

    (server,) = objects["Deployment", "babelserve"]["template"]["spec"]["containers"]
    assert server["image"] == "registry.example/babelserve:0.2.0-cuda"


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="needs kubectl")
def test_its_file_makes_two_servers_and_one_gateway_of_the_readers_image_and_names(tmp_path: Path) -> None:
    objects = objects_of(KUSTOMIZATION, tmp_path)
    deployments = {name: spec for (kind, name), spec in objects.items() if kind == "Deployment"}
    assert {name: spec["replicas"] for name, spec in deployments.items()} == {"babelserve": 2, "babelserve-gateway": 1}
    images = {spec["template"]["spec"]["containers"][0]["image"] for spec in deployments.values()}
    assert images == {"registry.example/babelserve:0.2.0"}
    (server,) = deployments["babelserve"]["template"]["spec"]["containers"]
    assert {"name": "BABELSERVE_KEYS", "value": "/etc/babelserve/keys/keys.toml"} in server["env"]
    assert objects["HTTPRoute", "babelserve"]["hostnames"] == ["translate.example.com"]
    assert objects["GRPCRoute", "babelserve"]["hostnames"] == ["grpc.translate.example.com"]


def test_the_servers_speak_no_http_as_the_page_says() -> None:
    base = ROOT / "deploy" / "kubernetes" / "base"
    (deployment,) = yaml.safe_load_all((base / "deployment.yaml").read_text())
    pod = deployment["spec"]["template"]["spec"]
    policies = [
        each for each in yaml.safe_load_all((base / "others.yaml").read_text()) if each["kind"] == "NetworkPolicy"
    ]

    assert "http" not in {port["name"] for port in pod["containers"][0]["ports"]}
    assert [rule["ports"] for each in policies for rule in each["spec"]["ingress"]] == [[{"port": 50051}]]
    assert {"name": "tmp", "emptyDir": {"sizeLimit": "16Mi"}} in pod["volumes"]
    assert "16 MiB" in PAGE
