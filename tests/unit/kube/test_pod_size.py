"""A pod that is too large to be compared with every instance type is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.kube.pod import MOST_REQUIREMENTS, parse_pod


def _either(count: int) -> dict[str, Any]:
    return {"nodeSelectorTerms": [{"matchExpressions": [{"key": f"k{i}", "operator": "Exists"}]} for i in range(count)]}


@pytest.mark.parametrize(
    ("keys", "terms", "preferred", "known"),
    [
        (MOST_REQUIREMENTS, 0, 0, True),
        (MOST_REQUIREMENTS + 1, 0, 0, False),
        (1, MOST_REQUIREMENTS, 0, False),
        (0, 0, MOST_REQUIREMENTS + 1, False),
    ],
)
def test_one_pod_cannot_keep_the_planner_busy_with_its_requirements(
    keys: int, terms: int, preferred: int, *, known: bool
) -> None:
    wishes = [{"weight": 1, "preference": term} for term in _either(preferred)["nodeSelectorTerms"]]
    affinity: dict[str, Any] = {"preferredDuringSchedulingIgnoredDuringExecution": wishes}
    if terms:
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = _either(terms)
    selector = {f"k{i}": "v" for i in range(keys)}
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], "nodeSelector": selector, "affinity": {"nodeAffinity": affinity}}
    found = parse_pod({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})
    assert [text.startswith("a node selector and affinity of 1001 requirements") for text in found.unsupported] == (
        [] if known else [True]
    )


LARGE = {
    "containers": {"containers": [{"name": f"c{number}"} for number in range(1_001)]},
    "ports": {"containers": [{"name": "c", "ports": [{"containerPort": n, "hostPort": n} for n in range(1, 1_001)]}]},
    "resources": {"containers": [{"name": "c", "resources": {"requests": {f"x.io/{n}": "1" for n in range(1_001)}}}]},
    "tolerations": {"containers": [{"name": "c"}], "tolerations": [{"key": f"k{n}"} for n in range(1_001)]},
}


@pytest.mark.parametrize("spec", LARGE.values(), ids=LARGE)
def test_one_pod_cannot_keep_the_planner_busy_with_its_parts(spec: dict[str, Any]) -> None:
    """300 pods with 1,500 host ports each took 17 seconds."""
    found = parse_pod({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec})
    assert [text.endswith("ports and tolerations, more than 1000,") for text in found.unsupported] == [True]
