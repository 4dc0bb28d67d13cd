"""Networks that a plan does not count: RDMA devices that pods mount and do not ask for, and networks of Multus."""

from __future__ import annotations

import pytest

from autoscaler.advice.advise import advise
from autoscaler.lint.pods.multus import attached_networks
from autoscaler.lint.pods.rdma_cards import rdma_of
from autoscaler.lint.supply_advice import advised_assumptions, supply_advice
from autoscaler.model.pod import Container, Pod
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import MULTUS_NETWORKS
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, NOW, claim, gpus, plan, pod, shipped, snapshot
from tests.one_line_advice import advice_lines

MACHINES = [
    (
        "g6.8xlarge",
        "for RDMA request vpc.amazonaws.com/efa instead, of which g6.8xlarge has 1: one such pod a node",
    ),
    ("a3-ultragpu-8g", "for RDMA claim cards of a3-ultragpu-8g through DRANET (driver dra.net): it has 8"),
    ("g4dn.xlarge", "g4dn.xlarge has no RDMA: the pods have its plain network"),
]


WITHOUT_READ = [
    (
        ("g4dn.metal", "g6.12xlarge", "g6.48xlarge", "p4d.24xlarge", "a3-ultragpu-8g"),
        "the EFA of g4dn.metal has no RDMA read: for RDMA select node.kubernetes.io/instance-type g6.48xlarge "
        "(13.35 $/h each, the cheapest with RDMA and no less of anything), and request vpc.amazonaws.com/efa, of which "
        "it has 1",
    ),
    (("g5.48xlarge", "g4dn.metal", "trn1.32xlarge"), "the EFA of g5.48xlarge has no RDMA read"),
    (
        ("p4d.24xlarge",),
        "for RDMA request vpc.amazonaws.com/efa instead, of which p4d.24xlarge has 4: at most 4 such pods a node",
    ),
]


@pytest.mark.parametrize(("machines", "said"), WITHOUT_READ)
def test_a_machine_whose_efa_has_no_rdma_read_gives_way_to_one_that_has(machines: tuple[str, ...], said: str) -> None:
    catalog = shipped(*machines)
    assert rdma_of(catalog.types[machines[0]], catalog) == said


def using(**selector: str) -> Pod:
    return replace(pod("p", "c", node_selector=FrozenMap(selector)), rdma="/dev/infiniband")


@pytest.mark.parametrize(("machine", "said"), MACHINES)
def test_a_plan_says_what_its_machine_has(machine: str, said: str) -> None:
    catalog, asking = shipped(machine), {"vpc.amazonaws.com/efa": Quantity.of(1)}
    given = snapshot([using()], [claim("c", gpus())])
    found = plan(given, catalog=catalog)
    assert rdma_of(catalog.types[machine], catalog) == said  # a3-ultragpu-8g is never sold on demand
    told = [one for one in supply_advice(given, found, catalog) if "RDMA cards of its node" in one.message]
    assert [one.next_step for one in told] == [said] * len(found.launches)
    efa = replace(given, pods=(replace(using(), containers=(Container("c", FrozenMap(asking)),)),))
    assert not [one for one in supply_advice(efa, found, catalog) if "RDMA cards of its node" in one.message]


@pytest.mark.parametrize(
    ("machines", "step"),
    [
        (("g4dn.metal", "g6.48xlarge"), "for RDMA select node.kubernetes.io/instance-type g6.48xlarge (13.35 $/h each"),
        (("g4dn.metal",), "if it needs RDMA, select a machine whose EFA has it, such as p4d.24xlarge"),
        (("p4d.24xlarge",), None),
    ],
)
def test_a_pod_that_asks_for_efa_is_told_that_it_has_no_rdma_read(machines: tuple[str, ...], step: str | None) -> None:
    catalog, asking = shipped(*machines), {"vpc.amazonaws.com/efa": Quantity.of(1)}
    selector = FrozenMap({"node.kubernetes.io/instance-type": machines[0]})
    asked = replace(pod("p", "c", node_selector=selector), containers=(Container("c", FrozenMap(asking)),))
    given = snapshot([asked], [claim("c", gpus())])
    found = plan(given, catalog=catalog)
    assert [node.offering.instance_type for node in found.launches] == [machines[0]]
    told = [one for one in supply_advice(given, found, catalog) if "whose EFA has no RDMA read" in one.message]
    assert [one.next_step.startswith(step or "-") for one in told] == ([True] if step else [])


@pytest.mark.parametrize("uses", [True, False])
def test_a_change_says_it_of_the_machine_that_it_buys(uses: bool) -> None:
    one = using(team="a")
    given = snapshot([one if uses else replace(one, rdma="")], [claim("c", gpus())])
    catalog = shipped("g6.8xlarge")
    (line,) = advice_lines(advise(given.pods[0], given, catalog, plan(given, catalog=catalog), Policy(), NOW, most=1))
    assert (MACHINES[0][1] in line) is uses


def attaching(name: str, networks: str) -> Pod:
    return replace(pod(name, "c"), annotations=FrozenMap({MULTUS_NETWORKS: networks}))


@pytest.mark.parametrize(("networks", "told"), [("a,b", True), ('[{"name": "a"}]', True), (" ", False)])
def test_a_pod_on_a_new_node_that_names_networks(networks: str, told: bool) -> None:
    given = snapshot([attaching("p", networks), attaching("q", networks)], [claim("c", gpus())])
    found = plan(given)
    about = list(attached_networks(given, found))
    assert [(one.subject, one.others) for one in about] == ([("Pod default/p", 1)] if told else [])
    assert any(MULTUS_NETWORKS in one.message for one in supply_advice(given, found, CATALOG)) is told
    assert any(MULTUS_NETWORKS in text for text in advised_assumptions(given, found, CATALOG, idle=False)) is told


def test_a_pod_without_a_new_node_is_not_told() -> None:
    given = snapshot([attaching("p", "a")])
    assert not list(attached_networks(given, plan(given)))
