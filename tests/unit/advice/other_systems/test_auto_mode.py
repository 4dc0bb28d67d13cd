"""Labels that only nodes of EKS Auto Mode have: the machine that they mean is not given up."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

KEY = "eks.amazonaws.com/instance-family"
CATALOG = shipped("g4dn.xlarge", "g6.xlarge")


@pytest.mark.parametrize("selected", [True, False])
def test_the_label_of_auto_mode_is_renamed_to_that_of_karpenter(*, selected: bool) -> None:
    wanted = NodeSelector((NodeSelectorTerm((Requirement(KEY, "In", ("g6",)),)),))
    asking = pod("p", "c", node_selector=FrozenMap({KEY: "g6"} if selected else {}))
    given = snapshot([asking if selected else replace(asking, affinity=wanted)], [claim("c", gpus())])
    policy = Policy(considered=10_000)
    found = advise(given.pods[0], given, CATALOG, plan_for(given, CATALOG, policy, NOW), policy, NOW)
    assert [entry.change.kind for entry in found] == [ChangeKind.RENAME_LABELS]
    assert advice_lines(found) == [
        f"pod default/p: select karpenter.k8s.aws/instance-family instead of {KEY}, which only nodes of EKS Auto Mode "
        "have (it launches them itself: leave the pod to it there) → 1 × g6.xlarge (on-demand), 0.80 $/h"
    ]


POLICY = Policy(considered=10_000)


def lines(value: str) -> list[str]:
    asking = pod("p", "c", node_selector=FrozenMap({labels.ACCELERATOR: value}))
    state = snapshot([asking], [claim("c", gpus())])
    catalog = shipped("g4dn.xlarge", "g6.xlarge")
    plan = plan_for(state, catalog, POLICY, NOW)
    return advice_lines(advise(asking, state, catalog, plan, POLICY, NOW))


def test_the_value_that_it_abbreviates_is_written_and_the_label_is_not_dropped() -> None:
    (found,) = lines("l4")
    assert found.startswith(f"pod default/p: write nvidia-l4 instead of l4 for {labels.ACCELERATOR} → 1 × g6.xlarge")


def test_an_accelerator_that_no_type_comes_near_to_is_not_given_up() -> None:
    assert all("drop" not in line for line in lines("tenstorrent-wormhole"))
