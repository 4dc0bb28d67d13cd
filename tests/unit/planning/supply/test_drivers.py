"""`drivers: Auto`: what the cluster's DaemonSets run is what a node will publish with."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from autoscaler.model.capacity import CapacityPool, NodeTemplateRef, PodScope, Scope
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.resource_claim import ClaimConfig, DeviceRequest
from autoscaler.model.snapshot import DaemonSet
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.planning.supply.drivers import driver_sets, running_drivers
from autoscaler.report.reasons import text_of
from autoscaler.report.tables.plan_summary import left_out_lines
from instance_catalog.dataclass import replace
from instance_catalog.drivers.opaque import CHANNEL_CLASS, CHANNEL_DRIVER
from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE
from tests.builders import TEAM, claim, plan, pod, shipped, snapshot, types
from tests.unit.instance_catalog.prediction import machines

H100 = machines.h100x8()


def runs(name: str, profiles: str, *notes: str) -> DaemonSet:
    return DaemonSet("dra", name, pod(name), drivers=replace(parse_driver_set(profiles), notes=notes))


@pytest.mark.parametrize(
    ("pool", "running", "drivers"),
    [
        pytest.param(TEAM, "nvidia:dynamic-mig,tpu", ["nvidia:dynamic-mig"], id="auto-takes-what-has-devices-there"),
        pytest.param(replace(TEAM, drivers=("nvidia",)), "nvidia:dynamic-mig", ["nvidia"], id="a-list-wins"),
        pytest.param(TEAM, "tpu", [], id="no-driver-for-the-type-runs"),
        pytest.param(TEAM, "nvidia,aws-net", ["nvidia"], id="auto-waits-for-no-driver-that-nobody-measured-there"),
        pytest.param(replace(TEAM, drivers=("nvidia", "aws-net")), "nvidia", ["nvidia,aws-net"], id="a-list-names-it"),
        pytest.param(
            replace(TEAM, node_template=NodeTemplateRef("KwokNodeTemplate", "k")),
            "tpu",
            ["nvidia,compute-domain,dranet"],
            id="kwok-needs-none",
        ),
        pytest.param(TEAM, "", ["nvidia,compute-domain,dranet"], id="nothing-runs-the-plainest-is-assumed"),
    ],
)
def test_the_drivers_of_a_pool(pool: CapacityPool, running: str, drivers: list[str]) -> None:
    there = parse_driver_set(running) if running else DriverSet(())
    found = driver_sets(pool, H100, kubernetes=REFERENCE, running=there)
    assert [driver_set.text for driver_set in found] == drivers


def test_an_implicit_pool_offers_every_variant_whatever_runs() -> None:
    found = driver_sets(IMPLICIT, H100, kubernetes=REFERENCE, running=parse_driver_set("nvidia"))
    assert len(found) > 1


PLAIN = replace(H100, name="m6i.xlarge", accelerator=None, accelerator_count=Fraction(0), network_cards=())
EVERY = replace(TEAM, scope=Scope(PodScope.ALL))


@pytest.mark.parametrize(
    ("pool", "running", "offered"),
    [
        pytest.param(EVERY, "", True, id="nothing runs"),
        pytest.param(EVERY, "nvidia", True, id="the drivers that run have no devices there"),
        pytest.param(TEAM, "", False, id="the pool serves only pods with devices"),
        pytest.param(TEAM, "nvidia", False, id="the same beside drivers"),
        pytest.param(IMPLICIT, "", False, id="no pool"),
    ],
)
def test_a_machine_without_accelerators_is_for_pools_that_serve_all_pods(
    pool: CapacityPool, running: str, offered: bool
) -> None:
    there = parse_driver_set(running) if running else DriverSet(())
    found = driver_sets(pool, PLAIN, kubernetes=REFERENCE, running=there)
    assert [drivers.profiles for drivers in found] == ([()] if offered else [])


def test_a_pod_without_devices_gets_a_machine_of_the_example_without_accelerators() -> None:
    machines_of_the_example = Path(__file__).parents[4] / "docs/examples/simulate/cpu-machines"
    found = load_catalog(extra_dirs=[machines_of_the_example])
    some = {name: found.types[name] for name in ("c6i.xlarge", "m6i.xlarge", "g4dn.xlarge")}
    state = snapshot([pod("batch", cpu="3"), pod("train", "gpu")], [claim("gpu")], pools=(EVERY,))
    result = plan(state, catalog=replace(found, types=FrozenMap(some)))
    assert types(result) == ["c6i.xlarge", "g4dn.xlarge"]


MPS = frozenset({("nvidia", "MPSSupport")})


@pytest.mark.parametrize(
    ("pool", "running", "offered"),
    [
        pytest.param(IMPLICIT, "", True, id="no pool"),
        pytest.param(TEAM, "", True, id="assumed, since nothing runs"),
        pytest.param(replace(TEAM, drivers=("nvidia",)), "", False, id="the pool says what runs"),
        pytest.param(TEAM, "nvidia", False, id="the DaemonSet says what runs"),
    ],
)
def test_a_gate_that_claims_need_is_offered_where_drivers_are_assumed(
    pool: CapacityPool, running: str, offered: bool
) -> None:
    there = parse_driver_set(running) if running else DriverSet(())
    found = driver_sets(pool, H100, kubernetes=REFERENCE, running=there, gates=MPS)
    texts = [driver_set.text for driver_set in found]
    assert any("nvidia:MPSSupport=true" in text for text in texts) is offered
    assert "MPSSupport" not in texts[0]
    # Dynamic MIG and MPS exclude each other.
    assert not any("dynamic-mig" in text and "MPSSupport" in text for text in texts)


def test_of_two_that_differ_the_first_counts_and_is_told() -> None:
    state = snapshot([], daemon_sets=(runs("a", "nvidia", "assumed"), runs("b", "nvidia:dynamic-mig,dranet")))
    found = running_drivers(state)
    assert found.text == "nvidia,dranet"
    assert found.notes == (
        "assumed",
        "nvidia runs differently in DaemonSets dra/a and dra/b; the first counts. Name the drivers in the CapacityPool "
        "to decide",
    )


@pytest.mark.parametrize(("running", "bought"), [("nvidia", True), ("neuron", False)])
def test_a_plan_predicts_with_what_runs(running: str, bought: bool) -> None:
    fields: dict[str, Any] = {"pools": (TEAM,), "daemon_sets": (runs("a", running),)}
    result = plan(snapshot([pod("p", "c")], [claim("c")], **fields))
    assert [launch.drivers for launch in result.launches] == ([("nvidia",)] if bought else [])


@pytest.mark.parametrize(
    ("name", "pool", "there"),
    [
        pytest.param("p5.48xlarge", IMPLICIT, False, id="no container would get a channel"),
        pytest.param("p6e-gb200.36xlarge", IMPLICIT, True, id="NVLink leaves the machine"),
        pytest.param("p5.48xlarge", TEAM, True, id="a pool means its machines"),
    ],
)
def test_channels_are_assumed_where_nvlink_joins_machines(name: str, pool: CapacityPool, there: bool) -> None:
    machine = shipped(name).types[name]
    found = driver_sets(pool, machine, kubernetes=REFERENCE, linked=True)
    assert {"compute-domain" in {p.name for p in one.profiles} for one in found} == {there}
    unasked = driver_sets(IMPLICIT, machine, kubernetes=REFERENCE)
    assert all(one.profile("compute-domain") for one in unasked)


@pytest.mark.parametrize(
    ("pools", "needs"),
    [
        pytest.param((), "multi-node NVLink", id="left out, because no container would get one"),
        pytest.param((replace(TEAM, drivers=("nvidia",)),), None, id="the pool's nodes run no such driver"),
    ],
)
def test_a_machine_without_channels_says_what_it_lacks(pools: tuple[CapacityPool, ...], needs: str | None) -> None:
    parameters = '{"kind": "ComputeDomainChannelConfig"}'
    channel = DeviceRequest("channel", CHANNEL_CLASS)
    wanted = replace(claim("c", channel), config=(ClaimConfig((), CHANNEL_DRIVER, parameters),))
    served = DeviceClass(CHANNEL_CLASS, (Selector(f'device.driver == "{CHANNEL_DRIVER}"'),))
    state = snapshot([pod("p", "c")], [wanted], classes=(served,), pools=pools)
    (entry,) = plan(state, catalog=shipped("p5.48xlarge")).left_out
    assert [miss.reason.detail.get("needs") for miss in entry.near_misses] == [needs]
    (line,) = left_out_lines(entry)
    assert ("1 have no multi-node NVLink, without which" in line) is (needs is not None)
    assert ("DeviceClass" in line) is (needs is None)
    (looked_at, *_) = plan(state, catalog=shipped("p5.48xlarge")).demands[0].considered
    assert ("no multi-node NVLink" in text_of(looked_at.reasons[0])) is (needs is not None)
