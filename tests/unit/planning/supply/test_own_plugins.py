"""Devices that only a vendor's own device plugin hands out: the entry of an instance type names the resource."""

from __future__ import annotations

import pytest

from autoscaler.lint.devices.network_advice import network_advice
from autoscaler.model.capacity import CapacityPool, Limits, PodScope, Scope
from autoscaler.model.plan import HandedOut
from autoscaler.model.pod import Container
from autoscaler.model.snapshot import DaemonSet, Snapshot
from autoscaler.report.reasons import texts_of
from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType
from tests.builders import SMALL, machine, plan, pod, snapshot, types

RESOURCE = "gpu.intel.com/i915"
ONE = FrozenMap({RESOURCE: Quantity.of(1)})
ASKING = replace(pod("p"), containers=(Container("main", ONE),))
BARE = replace(machine("flex", SMALL, 1, "1"), accelerator=None)
ADDED = replace(BARE, extended_resources=ONE)
ALL = CapacityPool("team", scope=Scope(pods=PodScope.ALL), limits=Limits(nodes=3))
DRIVER = DaemonSet("dra", "nvidia", pod("nvidia"), drivers=parse_driver_set("nvidia"))


def _asking(*pools: CapacityPool, daemon_sets: tuple[DaemonSet, ...] = ()) -> Snapshot:
    return replace(snapshot([ASKING], pools=pools), daemon_sets=daemon_sets)


@pytest.mark.parametrize(
    "added",
    [
        pytest.param(ADDED, id="extendedResources"),
        pytest.param(replace(BARE, allocatable=ONE), id="measured"),
    ],
)
@pytest.mark.parametrize(
    ("pool", "daemon_sets"),
    [
        pytest.param(ALL, (), id="nothing says what the nodes run"),
        pytest.param(ALL, (DRIVER,), id="a driver of other devices runs"),
        pytest.param(replace(ALL, drivers=("nvidia",)), (), id="the pool lists a driver of other devices"),
    ],
)
def test_a_type_that_has_the_resource_is_offered(
    added: InstanceType, pool: CapacityPool, daemon_sets: tuple[DaemonSet, ...]
) -> None:
    state = _asking(pool, daemon_sets=daemon_sets)
    found = plan(state, catalog=Catalog.of([added]))
    assert types(found) == ["flex"]
    assert found.launches[0].handed_out == (HandedOut(RESOURCE, used=1, free=0),)


@pytest.mark.parametrize("daemon_sets", [(), (DRIVER,)])
def test_it_is_offered_to_no_pod_that_asks_for_nothing_of_it(daemon_sets: tuple[DaemonSet, ...]) -> None:
    state = replace(snapshot([pod("p")], pools=(ALL,)), daemon_sets=daemon_sets)
    assert not plan(state, catalog=Catalog.of([ADDED])).launches


def test_its_card_is_in_use() -> None:
    """A warning said that the pod asks for no device and leaves the card idle."""
    with_card = Catalog.of([replace(machine("flex", SMALL, 1, "1"), extended_resources=ONE)])
    state = _asking(ALL)
    found = plan(state, catalog=with_card)
    assert types(found) == ["flex"]
    assert not list(network_advice(state, found, with_card))


@pytest.mark.parametrize(
    ("catalog", "told"),
    [
        ([ADDED], "which device plugins of instance type flex hand out and no DeviceClass serves"),
        ([BARE], "leave it to existing nodes, and give these with -f"),
    ],
)
def test_an_ignored_pod_is_told_that_a_pool_helps(catalog: list[InstanceType], told: str) -> None:
    (entry,) = plan(_asking(), catalog=Catalog.of(catalog)).outside
    assert told in texts_of(entry.reasons)


def test_the_own_name_of_parts_is_handed_out_where_an_instance_type_has_it() -> None:
    """Of MIG parts only the names of profiles are known; a catalog file may give a type another."""
    parts = FrozenMap({"nvidia.com/mig-small": Quantity.of(1)})
    asking = replace(pod("p"), containers=(Container("main", parts),))
    (entry,) = plan(snapshot([asking]), catalog=Catalog.of([replace(BARE, extended_resources=parts)])).outside
    assert "nvidia.com/mig-small, which device plugins of instance type flex hand out" in texts_of(entry.reasons)
