"""The Ray cluster for Kubernetes: fields that KubeRay documents, our image, our command."""

import re
import tomllib
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

from gta_bench.cli import app
from tests.conftest import REPOSITORY

# What KubeRay's API reference (ray.io/v1) has; those that are always needed come first.
SPEC = (
    {"headGroupSpec"},
    {"workerGroupSpecs", "rayVersion", "enableInTreeAutoscaling", "authOptions"}
    | {"autoscalerOptions", "gcsFaultToleranceOptions", "headServiceAnnotations", "suspend"},
)
HEAD = ({"rayStartParams", "template"}, {"serviceType", "headService", "enableIngress"})
GROUP = (
    {"groupName", "minReplicas", "maxReplicas", "rayStartParams", "template"},
    {"replicas", "numOfHosts", "idleTimeoutSeconds", "scaleStrategy", "suspend"},
)
OPERATIONS = (REPOSITORY / "docs" / "operations.md").read_text(encoding="utf-8")
IMAGE = (REPOSITORY / "docker" / "Dockerfile").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def documents() -> list[dict[str, Any]]:
    text = (REPOSITORY / "deploy" / "kuberay.yaml").read_text(encoding="utf-8")
    return list(yaml.safe_load_all(text))


@pytest.fixture(scope="module")
def spec(documents: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = documents[1]["spec"]
    return found


def check(given: dict[str, Any], fields: tuple[set[str], set[str]]) -> None:
    needed, others = fields
    assert needed <= given.keys() <= needed | others


def pods(spec: dict[str, Any]) -> list[dict[str, Any]]:
    return [group["template"]["spec"] for group in (spec["headGroupSpec"], *groups(spec))]


def groups(spec: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = spec["workerGroupSpecs"]
    return found


def test_every_field_is_one_that_kuberay_knows(documents: list[dict[str, Any]]) -> None:
    _, cluster = documents
    assert (cluster["apiVersion"], cluster["kind"]) == ("ray.io/v1", "RayCluster")
    spec = cluster["spec"]
    check(spec, SPEC)
    check(spec["headGroupSpec"], HEAD)
    assert spec["authOptions"] == {"mode": "token"}
    for group in groups(spec):
        check(group, GROUP)
        assert 0 <= group["minReplicas"] <= group["replicas"] <= group["maxReplicas"]
    for group in (spec["headGroupSpec"], *groups(spec)):
        # A number without quotes is refused: these become options of `ray start`.
        assert all(isinstance(value, str) for value in group["rayStartParams"].values())


def test_every_pod_has_our_image_the_keys_and_the_folder_that_all_share(
    documents: list[dict[str, Any]], spec: dict[str, Any]
) -> None:
    claim = documents[0]
    assert (claim["apiVersion"], claim["kind"]) == ("v1", "PersistentVolumeClaim")
    assert claim["spec"]["accessModes"] == ["ReadWriteMany"]
    for pod in pods(spec):
        (container,) = pod["containers"]
        assert container["image"] == "gta-bench:latest"
        assert container["envFrom"] == [{"secretRef": {"name": "gta-keys"}}]
        assert container["resources"]["requests"] == container["resources"]["limits"]
        (mount,), (volume,) = container["volumeMounts"], pod["volumes"]
        assert mount == {"mountPath": "/gta", "name": volume["name"]}
        assert volume["persistentVolumeClaim"]["claimName"] == claim["metadata"]["name"]
        assert f"USER {pod['securityContext']['fsGroup']}\n" in IMAGE


def test_shards_run_on_their_group_only(spec: dict[str, Any]) -> None:
    """A shard takes a core of Ray's count, and the head and the GPU group have none."""
    shards, tools = groups(spec)
    assert spec["headGroupSpec"]["rayStartParams"]["num-cpus"] == "0"
    assert tools["rayStartParams"]["num-cpus"] == "0"
    assert "num-cpus" not in shards["rayStartParams"]


def test_the_ray_of_the_cluster_is_the_one_that_is_installed(spec: dict[str, Any]) -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))
    cluster = project["project"]["optional-dependencies"]["cluster"]
    assert f"ray[default,serve]=={spec['rayVersion']}" in cluster


def test_the_commands_of_the_operations_page_are_ours() -> None:
    block = next(part for part in OPERATIONS.split("```") if "kubectl apply" in part)
    extras = re.search(r"--build-arg EXTRAS=([\w,-]+)", block)
    default = re.search(r"^ARG EXTRAS=([\w,-]+)$", IMAGE, re.MULTILINE)
    assert extras and default and extras[1] == f"{default[1]},cluster"
    assert "--tag gta-bench:latest" in block
    assert "create secret generic gta-keys" in block
    command = block.replace("\\\n", " ").partition("-- gta run workflow")[2].splitlines()[0]
    known = CliRunner().invoke(app, ["run", "workflow", "--help"]).output
    options = re.findall(r"--[\w-]+", command)
    assert "--cluster" in options
    assert all(option in known for option in options)
    assert "--out /gta/" in command and "--data /gta/" in command
