"""What claims of a pod take of its node's own amounts, and the limits that bound it."""

from __future__ import annotations

from instance_catalog.kubernetes.quantity import Quantity
from tests.unit.kube.test_pod import container, parsed, pod

TAKEN = {
    "nodeAllocatableResourceClaimStatuses": [
        {
            "resourceClaimName": "one",
            "containers": ["a", "b"],
            "mapping": [{"name": "cpu", "quantity": "4"}, {"name": "memory", "quantity": "1Gi"}],
            "overhead": [{"name": "memory", "perPod": "100Mi", "perContainer": "50Mi"}],
        },
        {"resourceClaimName": "two", "overhead": [{"name": "cpu", "perContainer": "1"}]},
        {"resourceClaimName": "three", "containers": ["a"], "mapping": [{"name": "cpu", "quantity": "500m"}]},
    ]
}


def test_what_claims_of_a_bound_pod_take() -> None:
    found, problems = parsed(pod(nodeName="n") | {"status": TAKEN})
    assert problems == []
    assert found.claim_amounts == {"cpu": Quantity.parse("4500m"), "memory": Quantity.parse("1224Mi")}


def test_what_claims_took_in_an_attempt_before_does_not_count() -> None:
    found, _ = parsed(pod() | {"status": TAKEN})
    assert found.claim_amounts == {}


def test_what_claims_take_has_another_form_in_1_36() -> None:
    former = {"nodeAllocatableResourceClaimStatuses": [{"resourceClaimName": "one", "resources": {"cpu": "4"}}]}
    found, _ = parsed(pod(nodeName="n") | {"status": former})
    assert found.claim_amounts == {"cpu": Quantity.of(4)}


def test_limits() -> None:
    limits = {"limits": {"memory": "1Gi"}}
    found, _ = parsed(pod(containers=[container(resources=limits)], resources={"limits": {"memory": "2Gi"}}))
    assert found.containers[0].limits == {"memory": Quantity.parse("1Gi")}
    assert found.pod_limits == {"memory": Quantity.parse("2Gi")}
    assert found.pod_requests == {"memory": Quantity.parse("1Gi")}
