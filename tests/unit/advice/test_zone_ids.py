"""Pods that select a zone by its id, a label that the cloud alone writes."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.change import ChangeKind
from autoscaler.advice.trial import Advice
from autoscaler.model.pod import Pod
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy, Where
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import region_of_zone_id
from tests.builders import NOW, claim, gpus, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

_KEY = "topology.k8s.aws/zone-id"
_CATALOG = shipped("g6.xlarge", "g2-standard-4")
_TEAM = {"team": "research"}


def _advice(asking: Pod, where: Where | None = None, catalog: Catalog = _CATALOG) -> tuple[Advice, ...]:
    given, policy = snapshot([asking], [claim("c", gpus())]), Policy(considered=1000, where=where or Where())
    return advise(asking, given, catalog, plan_for(given, catalog, policy, NOW), policy, NOW, most=1)


def _selecting(**also: str) -> Pod:
    return pod("p", "c", node_selector=FrozenMap({_KEY: "use2-az3", **also}))


@pytest.mark.parametrize(
    ("zone_id", "region"),
    [
        ("use2-az3", "us-east-2"),
        ("apne1-az4", "ap-northeast-1"),
        ("euc1-az1", "eu-central-1"),
        pytest.param("use1-atl2-az1", "", id="a Local Zone"),
        pytest.param("zzz9-az1", "", id="of no region that is known"),
    ],
)
def test_the_id_of_a_zone_says_its_region(zone_id: str, region: str) -> None:
    assert region_of_zone_id(zone_id) == region


def test_the_zone_is_named_in_a_pool_of_its_region() -> None:
    """No pool has the id as a label, and the price is that of the region."""
    (found,) = _advice(_selecting(**_TEAM))
    (line,) = advice_lines([found])
    assert "topology.kubernetes.io/region In [us-east-2] in spec.requirements and team=research in spec.labels" in line
    named = "select topology.kubernetes.io/zone with the name of zone use2-az3 instead of topology.k8s.aws/zone-id"
    assert named in line
    assert "(`aws ec2 describe-availability-zones --region us-east-2` says the name" in line
    assert "price.us-east-2=DOLLARS" in line
    assert [(ref.instance_type, ref.region) for ref, _ in found.result.launches] == [("g6.xlarge", "us-east-2")]
    (pool,) = found.change.edit(snapshot([_selecting(**_TEAM)])).pools
    assert pool.labels == FrozenMap(_TEAM)


def test_a_plan_for_the_region_gets_the_same_change() -> None:
    """What it names is all that a reason of the plan itself would say about the price."""
    (found,) = _advice(_selecting(**_TEAM), Where(clouds=("aws",), regions=("us-east-2",)))
    kinds = {part.kind for part in found.change.parts}
    assert kinds >= {ChangeKind.NAME_ZONE, ChangeKind.ADD_LABELS, ChangeKind.SET_PRICE}


def test_without_other_labels_no_pool_is_needed() -> None:
    term = NodeSelectorTerm((Requirement(_KEY, "In", ("use2-az1", "use2-az3")),))
    for asking in (_selecting(), replace(pod("p", "c"), affinity=NodeSelector((term,)))):
        (line,) = advice_lines(_advice(asking))
        assert "with the name of zone use2-az" in line
        assert "CapacityPool" not in line
        assert "g6.xlarge" in line


def test_the_region_of_an_unknown_id_is_said_to_be_unknown() -> None:
    asking = pod("p", "c", node_selector=FrozenMap({_KEY: "zzz9-az1", **_TEAM}))
    (line,) = advice_lines(_advice(asking))
    assert "from the id zzz9-az1 the region is not known here: tried in any, so name it with --region" in line
    assert f"{labels.REGION} In" not in line
