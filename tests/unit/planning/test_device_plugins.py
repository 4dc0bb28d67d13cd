"""Extended resources of device plugins are on a planned node where the plugin will run, and no DRA driver beside it."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from autoscaler.execution.machine import machine_of
from autoscaler.model.capacity import CapacityPool, Limits, Mode, PodScope, Scope
from autoscaler.model.pod import Container
from autoscaler.model.snapshot import DaemonSet
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Named, candidates_of
from autoscaler.planning.supply.hypothetical import hypothetical
from instance_catalog.dataclass import replace
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, InstanceType, NetworkCard
from providers.contract import TAG_CLUSTER, LaunchRequest, OfferingKey
from tests.builders import SMALL, machine, plan, pod, shipped, snapshot

EFA = "vpc.amazonaws.com/efa"
NOW = datetime(2026, 8, 21, tzinfo=UTC)
MACHINE = replace(machine("m1", SMALL, 1, "1"), network_cards=(NetworkCard("ena", primary=True), NetworkCard("efa")))
PLUGIN = DaemonSet("kube-system", "efa", pod("efa"), device_plugin="dra.net")


def _allocatable(
    drivers: tuple[str, ...], daemon_sets: tuple[DaemonSet, ...], machine_type: InstanceType = MACHINE
) -> FrozenMap[str, Quantity]:
    """What the plainest node of a pool offers."""
    pool = CapacityPool("team", Mode.ACT, drivers=drivers, limits=Limits(nodes=5))
    state = replace(snapshot([pod("p", "c")], [], pools=(pool,)), daemon_sets=daemon_sets)
    (candidate, *_) = candidates_of(state, Catalog.of([machine_type]), Policy(), now=NOW)
    return hypothetical(candidate, state, name="node-1").node.allocatable


@pytest.mark.parametrize(
    ("drivers", "daemon_sets", "offered"),
    [
        (("nvidia",), (PLUGIN,), True),
        (("nvidia",), (), False),  # nothing hands the cards out
        (("nvidia", "dranet"), (PLUGIN,), False),  # both would give one card to two pods
    ],
)
def test_where_a_plugin_runs(drivers: tuple[str, ...], daemon_sets: tuple[DaemonSet, ...], offered: bool) -> None:
    assert (EFA in _allocatable(drivers, daemon_sets)) is offered


def test_huge_pages_are_no_memory() -> None:
    plain, with_efa = _allocatable(("nvidia",), ()), _allocatable(("nvidia",), (PLUGIN,))
    pages = with_efa["hugepages-2Mi"]
    assert "hugepages-2Mi" not in plain
    assert with_efa["memory"].int64_value() == max(0, plain["memory"].int64_value() - pages.int64_value())


def test_what_was_measured_wins() -> None:
    measured = replace(MACHINE, allocatable=FrozenMap({EFA: Quantity.of(7), "memory": Quantity.parse("1Gi")}))
    found = _allocatable(("nvidia",), (PLUGIN,), measured)
    assert (found[EFA], found["memory"]) == (Quantity.of(7), Quantity.parse("1Gi"))


@pytest.mark.parametrize(
    ("drivers", "plugin", "offered"),
    [
        ((), True, True),  # that the plugin runs is a fact, and a DRA driver only assumed
        (("tpu",), True, False),  # the pool says who has the devices
        ((), False, True),  # nothing says what the nodes run
        (("tpu",), False, False),
    ],
)
def test_a_plugin_beside_a_driver_that_is_assumed(*, drivers: tuple[str, ...], plugin: bool, offered: bool) -> None:
    tpus = load_catalog().get("ct5lp-hightpu-4t")
    running = DaemonSet("kube-system", "plugin", pod("plugin"), device_plugin="tpu.google.com")
    found = _allocatable(drivers, (running,) if plugin else (), tpus)
    assert found.get("google.com/tpu") == (Quantity.of(4) if offered else None)


def test_another_daemon_set_says_that_no_plugin_runs() -> None:
    tpus = load_catalog().get("ct5lp-hightpu-4t")
    assert "google.com/tpu" not in _allocatable((), (DaemonSet("kube-system", "proxy", pod("proxy")),), tpus)


WANTS_EFA = Named(plugged=frozenset({"dra.net"}))


def _variants(
    pool: CapacityPool | None, *daemon_sets: DaemonSet, from_files: bool = True
) -> dict[tuple[str, ...], FrozenMap[str, Quantity]]:
    """What the nodes of a trn1.32xlarge offer, by their drivers, where somebody wants EFA of its plugin."""
    state = snapshot([pod("p", "c")], [], pools=(pool,) if pool else ())
    state = replace(state, daemon_sets=daemon_sets, from_files=from_files)
    trainium = Catalog.of([load_catalog().get("trn1.32xlarge")])
    return {
        candidate.profiles: hypothetical(candidate, state, name="node-1").node.allocatable
        for candidate in candidates_of(state, trainium, Policy(), now=NOW, named=WANTS_EFA)
        if candidate.offering.capacity_type == "on-demand"
    }


@pytest.mark.parametrize("pool", [CapacityPool("team"), None])
def test_a_plugin_is_assumed_instead_of_the_driver_and_never_beside_it(pool: CapacityPool | None) -> None:
    found = _variants(pool)
    assert {profiles: EFA in offered for profiles, offered in found.items()} == {
        ("neuron", "dranet"): False,
        ("neuron",): True,
    }


def test_huge_pages_come_with_an_assumed_plugin_alone() -> None:
    found = _variants(CapacityPool("team"))
    assert "hugepages-2Mi" not in found["neuron", "dranet"]
    pages = found[("neuron",)]["hugepages-2Mi"].int64_value()
    memory = {profiles: offered["memory"].int64_value() for profiles, offered in found.items()}
    assert memory["neuron", "dranet"] - memory[("neuron",)] == pages > 0


def test_a_driver_is_not_assumed_beside_a_plugin_that_runs() -> None:
    assert _variants(CapacityPool("team"), PLUGIN).keys() == {("neuron",)}


def test_in_a_cluster_nothing_is_assumed_instead_of_a_driver() -> None:
    (found,) = _variants(CapacityPool("team"), from_files=False).items()
    assert found[0] == ("neuron", "dranet")
    assert EFA not in found[1]


def test_a_machine_that_was_bought_has_no_huge_pages_of_an_assumed_plugin() -> None:
    """Its request says which drivers run, and not whether its pool lists them."""
    offering = OfferingKey(MACHINE.name, "us-east-1a", CapacityType.ON_DEMAND)
    request = LaunchRequest("t", ("node-1",), (offering,), FrozenMap({TAG_CLUSTER: "c"}), drivers=("nvidia",))
    found = machine_of(request, offering, "node-1", catalog=Catalog.of([MACHINE]), profile=snapshot([], []).profile)
    assert not found.node.allocatable.keys() & {EFA, "hugepages-2Mi"}


def test_what_a_driver_would_have_is_no_shortage_beside_what_the_plugin_has() -> None:
    """dl1 is on offer with the DRA driver, without any habana.ai/gaudi, and with the plugin, with eight."""
    asked = Container("main", FrozenMap({"habana.ai/gaudi": Quantity.of(16)}))
    pool = CapacityPool("team", scope=Scope(pods=PodScope.ALL))
    state = snapshot([replace(pod("p"), containers=(asked,))], [], pools=(pool,))
    (left,) = plan(replace(state, from_files=True), catalog=shipped("dl1.24xlarge")).left_out
    assert [miss.reason.detail["free"] for miss in left.near_misses] == [8]
