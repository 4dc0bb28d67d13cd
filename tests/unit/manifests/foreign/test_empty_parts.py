"""Roles without pods, in each of many groups, are counted: they cost as much as those with pods."""

from __future__ import annotations

import json

import pytest

from autoscaler.kube.workloads import stamping
from tests.unit.manifests.texts import loaded, messages

POD = {"spec": {"containers": [{"name": "c", "image": "i"}]}}
TOO_MANY = "the files have too many roles without pods, counted in each of their groups"


def group_set(replicas: int, roles: int, name: str = "s") -> str:
    empty = [{"name": f"r{index}", "replicas": 0, "template": POD} for index in range(roles)]
    spec = {"replicas": replicas, "template": {"roles": [{"name": "full", "template": POD}, *empty]}}
    head = {"apiVersion": "workloads.x-k8s.io/v1alpha1", "kind": "RoleBasedGroupSet", "metadata": {"name": name}}
    return json.dumps({**head, "spec": spec})


def test_all_workloads_share_what_they_read_beyond_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamping, "_MOST", 20)
    assert loaded(group_set(10, 3)).ok
    found = loaded(group_set(10, 2, "a"), group_set(10, 2, "b"), group_set(10, 2, "c"))
    assert sum(TOO_MANY in one for one in messages(found)) == 1
    assert not found.ok
    assert loaded(*(group_set(1, 8, f"s{index}") for index in range(20))).ok
