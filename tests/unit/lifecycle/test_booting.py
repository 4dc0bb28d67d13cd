"""How long a machine may boot: as its pool says, or its node template, or its kind; and as it was at the launch."""

from __future__ import annotations

from datetime import timedelta
from typing import cast

import pytest

from autoscaler.cluster.intents import batches_of, nodes_of
from autoscaler.cluster.resources import CAPACITY_POOLS
from autoscaler.execution.launch import Providers
from autoscaler.execution.providers_seen import ask
from autoscaler.kube.custom.capacity_pool import parse_capacity_pool
from autoscaler.kube.problem import Problems
from autoscaler.lifecycle.boot_times import BOOT, BOOT_METAL, BOOT_ULTRASERVER, LONGEST, boot_timeout
from autoscaler.lifecycle.provisioned_node import Observation, Why, decide, times_out_at
from autoscaler.model.capacity import NodeTemplateRef
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import Fabric
from providers.aws.provider import AwsProvider
from providers.contract import Provider, TemplateRef
from tests.aws import TEMPLATE, Rig, catalog
from tests.builders import CATALOG, SMALL, TEAM, claim, machine, plan, pod, snapshot
from tests.desk import POOL, SPEC, new_desk, planned

MINUTE = timedelta(minutes=1)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("p5.48xlarge", BOOT),
        ("g4dn.metal", BOOT_METAL),
        ("c5.metal-24xl", BOOT_METAL),
        ("c3-highcpu-192-metal", BOOT_METAL),
        ("metallic.large", BOOT),
    ],
)
def test_the_kind_of_machine_has_a_default(name: str, expected: timedelta) -> None:
    assert boot_timeout(machine(name, SMALL, 1, "1")) == expected


def test_ultraservers_of_the_catalog_have_the_longest() -> None:
    found = {name for name, known in catalog().types.items() if boot_timeout(known) == BOOT_ULTRASERVER}
    assert any(name.startswith("p6e-gb200") for name in found)
    assert not any(name.startswith(("p5", "g6")) for name in found)
    assert LONGEST == BOOT_ULTRASERVER


def bought(*, said: timedelta | None = None, spans: bool = False) -> timedelta | None:
    """The boot time-out of the node that a plan launches."""
    kind = machine("s1", SMALL, 1, "1")
    if spans:
        kind = replace(kind, fabric=Fabric("NVLink", "NVL72", domain_nodes=(9,)))
    team = replace(TEAM, boot_timeout=said)
    state = snapshot([pod("a", "c")], claims=(claim("c"),), pools=(team,))
    found = plan(state, catalog=replace(CATALOG, types=FrozenMap({"s1": kind})))
    (node,) = found.launches
    (batch,) = batches_of(found.launches, Snapshot(pools=(team,)))
    (provisioned,) = nodes_of(batch)
    assert provisioned.boot_timeout == batch.boot_timeout == node.boot_timeout
    return node.boot_timeout


def test_the_pool_wins_over_the_kind() -> None:
    assert bought() == BOOT
    assert bought(spans=True) == BOOT_ULTRASERVER
    assert bought(said=7 * MINUTE, spans=True) == 7 * MINUTE


def test_a_node_under_way_keeps_what_was_said_at_its_launch() -> None:
    desk = new_desk()
    desk.record(replace(planned("n1"), boot_timeout=40 * MINUTE))
    desk.api.patch(CAPACITY_POOLS, "gpu", {"spec": {"bootTimeout": "5m"}})
    (node,) = desk.restarted().journal.nodes
    launched = replace(node, phase=Phase.LAUNCHED, phase_since=desk.now)
    assert times_out_at(launched) == desk.now + 40 * MINUTE
    assert decide(launched, Observation(), desk.now + 39 * MINUTE) is None
    edge = decide(launched, Observation(), desk.now + 40 * MINUTE)
    assert edge is not None
    assert edge.why is Why.BOOT_TIMED_OUT


@pytest.mark.parametrize(
    ("text", "usable"), [("2m", True), ("1d", True), ("119s", False), ("0s", False), ("2d", False)]
)
def test_a_pool_that_leaves_no_time_is_refused(text: str, usable: bool) -> None:
    problems = Problems()
    pool = parse_capacity_pool({"metadata": {"name": "gpu"}, "spec": {**SPEC, "bootTimeout": text}}, problems)
    assert (pool is not None) is usable
    assert usable or "bootTimeout" in str(next(iter(problems)))


def test_the_node_template_speaks_for_pools_that_do_not() -> None:
    rig = Rig()
    rig.write(boot_timeout=25 * MINUTE)
    rig.restart()
    assert isinstance(rig.provider, AwsProvider)
    assert dict(rig.provider.boot_timeouts()) == {TemplateRef("AWSNodeTemplate", "gpu", 1): 25 * MINUTE}
    providers = Providers({"AWSNodeTemplate": cast(Provider, rig.provider)}, "uid-1")
    silent = replace(POOL, node_template=NodeTemplateRef("AWSNodeTemplate", "gpu"))
    own = replace(silent, name="own", boot_timeout=5 * MINUTE)
    other = replace(silent, name="other", node_template=NodeTemplateRef("AWSNodeTemplate", "other"))
    world = ask(providers, now=rig.clock.now()).world(Snapshot(pools=(silent, own, other)), {}, batches=frozenset())
    assert [pool.boot_timeout for pool in world.snapshot.pools] == [25 * MINUTE, 5 * MINUTE, None]
    assert TEMPLATE.boot_timeout is None
