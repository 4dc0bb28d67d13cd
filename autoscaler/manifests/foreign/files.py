"""Files that hold no Kubernetes object, and what they are."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any, Final

from autoscaler.kube.problem import RENDER_OVERLAY, render_command

_JSON_PATCH: Final = frozenset({"op", "path", "value", "from"})  # RFC 6902
_PATCHES: Final = "JSON patches, which change an object of another file; give what Kustomize makes of it: "
# What `helm create` writes into values.yaml (helm.sh/docs/helm/helm_create), `global` and `enabled` of Helm's page on
# subcharts, and other spellings of the same (2026-11).
_OF_VALUES: Final = frozenset(
    {
        "affinity",
        "autoscaling",
        "enabled",
        "fullnameOverride",
        "global",
        "httpRoute",
        "image",
        "imagePullPolicy",
        "imagePullSecrets",
        "ingress",
        "livenessProbe",
        "nameOverride",
        "nodeSelector",
        "persistence",
        "podAnnotations",
        "podLabels",
        "podSecurityContext",
        "readinessProbe",
        "replicaCount",
        "replicas",
        "resources",
        "securityContext",
        "service",
        "serviceAccount",
        "tolerations",
        "volumeMounts",
        "volumes",
    }
)
# Fields of a task of SkyPilot beside `run` and `setup` (docs.skypilot.co, "SkyPilot YAML"), values of `type` in the
# configurations of dstack (its reference, ".dstack.yml"), and of an experiment of Determined `searcher` (all 2026-11).
_SKY: Final = frozenset({"resources", "num_nodes", "file_mounts", "workdir", "envs", "service"})
_DSTACK: Final = frozenset({"task", "service", "dev-environment", "fleet", "gateway", "volume"})
_NOT_OF_CLUSTER: Final = "give the pods that it makes (kubectl get pods -o yaml), or a Job whose pods ask for the same"


def other_file(file: str, value: dict[str, Any]) -> str:
    """The description of a document without apiVersion and kind that its name or its fields reveal; "" for all
    others."""
    name = PurePath(file).name
    if name in ("kustomization.yaml", "kustomization.yml"):
        return f"an instruction to kustomize; give what it renders: {render_command(file)}"
    if name in ("Chart.yaml", "Chart.lock") or (name.startswith("values") and "kind" not in value):
        return "part of a Helm chart; give the output of `helm template`"
    if "blueprint_name" in value:
        return "a blueprint of Cluster Toolkit; give the manifests that it applies"
    if {"op", "path"} <= value.keys() <= _JSON_PATCH:
        return _PATCHES + RENDER_OVERLAY
    if "NAME" in value and "STATUS" in value:
        return "what `helm install --dry-run` says beside the manifests"
    if program := _of_program(value):
        return f"{program}; {_NOT_OF_CLUSTER}"
    if value.keys().isdisjoint(("apiVersion", "kind", "metadata", "spec", "items")):
        if _looks_like_values(value):
            return "no Kubernetes object, but perhaps values of a Helm chart; give the output of `helm template`"
        return "no Kubernetes object; if a program makes manifests of it, give those"
    return ""


def _looks_like_values(value: dict[str, Any]) -> bool:
    """True if the outermost names, or those of an object directly below, as of a subchart, are names that charts use
    for their values."""
    inner = (name for one in value.values() if isinstance(one, dict) for name in one)
    return not _OF_VALUES.isdisjoint((*value, *inner))


def _of_program(value: dict[str, Any]) -> str:
    """The file of a program that makes pods, or machines, by itself; "" for others."""
    if {"run", "setup"} & value.keys() and _SKY & value.keys():
        asked = value.get("resources")
        devices = asked.get("accelerators") if isinstance(asked, dict) else None
        number = value.get("num_nodes", 1)
        more = f", which asks for {devices} on {number} node{'s' * (number != 1)}" if isinstance(devices, str) else ""
        return f"a task of SkyPilot{more}"
    kind = value.get("type")
    if isinstance(kind, str) and kind in _DSTACK and "kind" not in value:
        return f"a {kind} of dstack"
    if "searcher" in value and {"entrypoint", "resources"} & value.keys():
        return "an experiment of Determined"
    return ""
