"""The volumes and claims that an object makes for its pods are limited, before any of them is made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.unit.manifests.texts import TEMPLATE, loaded, messages

CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
TOO_MANY = "5000 pods with 3 volumes of their own each are more than 10000 volumes"


def claimed(number: int) -> list[dict[str, Any]]:
    return [{"metadata": {"name": f"v{index}"}, "spec": CLAIM} for index in range(number)]


def stateful(replicas: int, volumes: int) -> str:
    labels = {"matchLabels": {"a": "b"}}
    pod = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"replicas": replicas, "selector": labels, "template": pod, "volumeClaimTemplates": claimed(volumes)}
    return json.dumps({"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "s"}, "spec": spec})


def node_set(replicas: int, volumes: int) -> str:
    spec = {"replicas": replicas, "slurmd": {"image": "i"}, "volumeClaimTemplates": claimed(volumes)}
    head = {"apiVersion": "slinky.slurm.net/v1beta1", "kind": "NodeSet", "metadata": {"name": "s"}}
    return json.dumps({**head, "spec": spec})


def ephemeral(replicas: int, volumes: int) -> str:
    own = [{"name": f"v{index}", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}} for index in range(volumes)]
    pod = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}], "volumes": own}
    spec = {"parallelism": replicas, "template": {"spec": pod}}
    return json.dumps({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "s"}, "spec": spec})


@pytest.mark.parametrize("made", [stateful, node_set, ephemeral])
def test_more_volumes_than_pods_of_the_largest_object_are_an_error(made: Any) -> None:
    found = loaded(made(5_000, 3))
    assert any(TOO_MANY in one for one in messages(found))
    assert not found.ok
    assert not found.snapshot.volume_claims
    small = loaded(made(20, 3))
    assert small.ok, messages(small)
    assert len(small.snapshot.volume_claims) == 60


def claiming(replicas: int, claims: int, name: str = "s") -> str:
    own = [{"name": f"c{index}", "resourceClaimTemplateName": "gpu"} for index in range(claims)]
    pod = {"containers": [{"name": "c", "image": "i"}], "resourceClaims": own}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return json.dumps({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": spec})


def test_more_claims_than_a_plan_can_have_are_an_error() -> None:
    found = loaded(claiming(10_000, 6))
    told = "10000 pods with 6 claims of their own each are more than 50000 claims"
    assert any(told in one and "spec.template.spec.resourceClaims" in one for one in messages(found))
    assert not found.ok
    assert not found.snapshot.pods
    few = loaded(claiming(10, 6), TEMPLATE)
    assert few.ok, messages(few)
    assert len(few.snapshot.claims) == 60


def test_so_are_those_of_all_files_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoscaler.manifests.load.MOST_CLAIMS", 100)
    found = loaded(*(claiming(10, 6, name) for name in ("a", "b")))
    assert any("the pods of all files have more than 100 claims" in one for one in messages(found))
    assert not found.ok
    assert not any("more than" in one for one in messages(loaded(claiming(10, 6))))
