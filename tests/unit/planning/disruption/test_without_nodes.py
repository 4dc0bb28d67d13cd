"""The cluster in which a move is planned: its nodes drain, and their pods are pending."""

from __future__ import annotations

import pytest

from autoscaler.model.provisioned_node import Phase
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer
from autoscaler.planning.disruption.without_nodes import without_nodes
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import DRAINING_TAINT
from tests.builders import claim
from tests.unit.planning.disruption.moving import claims_of, node, served, state


def test_what_is_out_of_sight() -> None:
    daemon = served("agent", owner="DaemonSet/agent")
    found = state(pods=[served(), daemon, served("b", "other")], nodes=[node(), node("other")])
    after = without_nodes(found, [found.provisioned[0]], [found.pods[0]])
    assert [(p.name, p.node_name) for p in after.pods] == [("web", None), ("b", "other")]
    assert [(n.name, [t.key for t in n.taints]) for n in after.nodes] == [("old", [DRAINING_TAINT]), ("other", [])]
    assert [n.phase for n in after.provisioned] == [Phase.DRAINING, Phase.READY]


def test_claims_that_nobody_else_uses_are_free() -> None:
    given = Allocation((AllocatedDevice("gpu", "gpu.nvidia.com", "old", "gpu-0"),))
    own, shared, implicit = (
        replace(claim(name), allocation=given, reserved_for=(Consumer("pods", "web", "uid-web"),))
        for name in ("own", "shared", "implicit")
    )
    other = replace(shared, reserved_for=(*shared.reserved_for, Consumer("pods", "b", "uid-b")))
    implicit = replace(implicit, controller="uid-web")
    pods = [
        replace(served(), claims=claims_of("own", "shared")),
        replace(served("b", "other"), claims=claims_of("shared")),
    ]
    found = state(pods, [node(), node("other")], claims=FrozenMap())
    found = replace(found, claims=FrozenMap({c.key: c for c in (own, other, implicit)}))
    after = without_nodes(found, [found.provisioned[0]], [found.pods[0]]).claims
    assert set(after) == {"default/own", "default/shared"}
    assert after["default/own"].allocation is None
    assert after["default/shared"].allocation == given
    assert [consumer.name for consumer in after["default/shared"].reserved_for] == ["b"]


@pytest.mark.parametrize(
    ("consumer", "freed"),
    [
        pytest.param(None, True, id="the pod alone"),
        pytest.param(Consumer("pods", "agent", "uid-agent"), False, id="a DaemonSet's pod, which stays there"),
        pytest.param(Consumer("widgets", "w", "uid-w", "example.com"), False, id="an object that is no pod"),
    ],
)
def test_a_claim_keeps_its_devices_for_its_other_consumers(consumer: Consumer | None, freed: bool) -> None:
    given = Allocation((AllocatedDevice("gpu", "gpu.nvidia.com", "old", "gpu-0"),))
    own = Consumer("pods", "web", "uid-web")
    held = replace(claim("held"), allocation=given, reserved_for=(own, consumer) if consumer else (own,))
    pods = [replace(served(), claims=claims_of("held"))]
    if consumer is not None and consumer.resource == "pods":
        pods.append(replace(served(consumer.name, owner="DaemonSet/agent"), claims=claims_of("held")))
    found = replace(state(pods), claims=FrozenMap({held.key: held}))
    after = without_nodes(found, found.provisioned, pods[:1]).claims[held.key]
    assert (after.allocation is None) is freed


def test_a_claim_of_a_running_pod_keeps_its_devices_whoever_owns_it() -> None:
    """The owner of a claim is whoever its author names: a pod that moves may own the claim of one that stays."""
    given = Allocation((AllocatedDevice("gpu", "gpu.nvidia.com", "other", "gpu-0"),))
    held = replace(
        claim("held"), allocation=given, reserved_for=(Consumer("pods", "b", "uid-b"),), controller="uid-web"
    )
    pods = [served(), replace(served("b", "other"), claims=claims_of("held"))]
    found = replace(state(pods), claims=FrozenMap({held.key: held}))
    assert without_nodes(found, found.provisioned, found.pods[:1]).claims[held.key] == held
