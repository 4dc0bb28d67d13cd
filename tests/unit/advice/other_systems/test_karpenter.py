"""Pods that select a NodePool of Karpenter: who serves them, and what a CapacityPool would need to do it instead."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.model.capacity import CapacityPool
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from tests.builders import CATALOG, NOW, claim, pod, snapshot
from tests.one_line_advice import advice_lines

TRAINING = {labels.KARPENTER_NODE_POOL: "training"}
NEW = "create a CapacityPool with spec.limits.nodes 1 or more and "
GUESSED = "; this is the cheapest that fits, because only Karpenter's NodePool says which machines it means"
SERVED = (
    "; Karpenter serves such pods by its NodePool training: for Foreslice to launch for them instead, copy its "
    "requirements (`kubectl get nodepool training -o yaml`) into spec.requirements"
)
BOUGHT = " → 1 × s1 (on-demand), 1.00 $/h"


def first_advice(selected: dict[str, str], *pools: CapacityPool, affinity: NodeSelector | None = None) -> str:
    waiting = pod("p", "c", node_selector=FrozenMap(selected), affinity=affinity)
    given, policy = snapshot([waiting], [claim("c")], pools=pools), Policy(considered=1000)
    found = advise(waiting, given, CATALOG, plan_for(given, CATALOG, policy, NOW), policy, NOW)
    return advice_lines(found)[0].split("; the pod names no GPU")[0]


def labelled(name: str) -> CapacityPool:
    return CapacityPool("team", labels=FrozenMap({labels.KARPENTER_NODE_POOL: name}))


@pytest.mark.parametrize(
    ("selected", "pools", "expected"),
    [
        pytest.param(
            TRAINING,
            (),
            f"{NEW}karpenter.sh/nodepool=training in spec.labels{BOUGHT}{GUESSED}{SERVED}",
            id="no pool",
        ),
        pytest.param(
            TRAINING | {labels.INSTANCE_TYPE: "s1"},
            (),
            f"{NEW}karpenter.sh/nodepool=training in spec.labels{BOUGHT}{SERVED}",
            id="the pod names the machine",
        ),
        pytest.param(
            TRAINING,
            (labelled("inference"),),
            f"pool team: add karpenter.sh/nodepool=training to spec.labels{BOUGHT}{GUESSED}{SERVED}",
            id="a pool that is there",
        ),
        pytest.param(
            TRAINING | {"team": "search"},
            (labelled("training"),),
            f"pool team: add team=search to spec.labels{BOUGHT}; this is the cheapest that fits, because labels of "
            "your own do not say which machines they mean",
            id="a pool that has the label",
        ),
    ],
)
def test_a_node_pool_of_karpenter(selected: dict[str, str], pools: tuple[CapacityPool, ...], expected: str) -> None:
    assert first_advice(selected, *pools) == expected


def test_one_of_several_node_pools_of_karpenter() -> None:
    either = Requirement(labels.KARPENTER_NODE_POOL, "In", ("training", "research"))
    text = first_advice({}, affinity=NodeSelector((NodeSelectorTerm((either,)),)))
    assert "karpenter.sh/nodepool=training in spec.labels" in text
    assert "by its NodePool training or research: " in text
