"""What Cluster Autoscaler asks in its loop, and what becomes of its orders: the production loop on a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import ConflictError, ForbiddenError, UnavailableError, list_all
from autoscaler.cluster.intercepted import InterceptedApi, leader_only
from autoscaler.cluster.resources import CAPACITY_POOLS, LAUNCH_BATCHES, PODS, PROVISIONED_NODES, SPENDINGS, Resource
from autoscaler.externalgrpc.instances import PLACEHOLDER
from autoscaler.externalgrpc.refusal import Status
from autoscaler.model.reason import Code
from autoscaler.settings.settings import Settings, SpendingSettings
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from providers.simulated.machines import Behaviour
from tests.unit.externalgrpc.cluster import POOL, START, Cluster, cheapest, refused, waiting

SMALL = OfferingKey("g6.xlarge", "us-east-1a", CapacityType.ON_DEMAND)


def states(cluster: Cluster, group: str) -> list[int]:
    found = cluster.call("NodeGroupNodes", id=group)["instances"]
    return [instance["status"]["instanceState"] for instance in found]


def test_the_loop_launches_nothing_for_such_a_pool(cluster: Cluster) -> None:
    cluster.run(hours=1)
    assert cluster.machines == 0
    (left,) = cluster.ticks[-1].plan.outside
    assert [reason.code for reason in left.reasons] == [Code.OTHER_LAUNCHER]


def test_groups_for_a_pending_pod_are_listed_cheapest_first(cluster: Cluster) -> None:
    groups = cluster.loop()
    assert [group["id"].split("/")[:4] for group in groups] == [
        ["gpu", "g6.xlarge", "on-demand", "us-east-1a"],
        ["gpu", "g6.12xlarge", "on-demand", "us-east-1a"],
    ]
    assert [(group["minSize"], group["maxSize"]) for group in groups] == [(0, 4), (0, 4)]


def test_without_a_pod_no_empty_group_is_listed() -> None:
    empty = Cluster(pods=0)
    empty.run(seconds=30)
    assert empty.loop() == []


def test_no_more_groups_are_listed_than_the_setting_says() -> None:
    one = Cluster(most=1)
    one.run(seconds=30)
    assert len(one.loop()) == 1


def test_an_order_is_one_launch_batch_and_counts_at_once(cluster: Cluster) -> None:
    group = cheapest(cluster)
    assert cluster.size(group) == 0
    assert cluster.call("NodeGroupIncreaseSize", id=group, delta=2) == {}
    batches, _ = list_all(cluster.simulation.api, LAUNCH_BATCHES)
    assert [len(batch["spec"]["nodes"]) for batch in batches] == [2]
    assert cluster.machines == 0  # written and not launched yet
    assert cluster.size(group) == 2
    found = cluster.call("NodeGroupNodes", id=group)["instances"]
    assert all(instance["id"].startswith(PLACEHOLDER) for instance in found)
    assert states(cluster, group) == [2, 2]
    cluster.loop()
    assert cluster.size(group) == 2


def test_what_is_ordered_comes_and_the_pod_runs_there(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.run(minutes=10)
    cluster.loop()
    assert cluster.machines == 1
    (pod,), _ = list_all(cluster.simulation.api, PODS)
    assert pod["status"]["phase"] == "Running"
    (instance,) = cluster.call("NodeGroupNodes", id=group)["instances"]
    assert instance["status"] == {"instanceState": 1}
    assert instance["id"].startswith("simulated:///")
    found = cluster.call("NodeGroupForNode", node={"providerID": instance["id"], "name": pod["spec"]["nodeName"]})
    assert found["nodeGroup"]["id"] == group
    (account,), _ = list_all(cluster.simulation.api, SPENDINGS)
    assert float(account["status"]["usdPerHour"]) > 0


def test_the_loop_never_ends_what_was_ordered() -> None:
    """It is empty for hours, and the pool would end empty nodes after a minute."""
    cluster = Cluster(pods=1)
    cluster.run(seconds=30)
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=2)
    cluster.run(hours=5)
    cluster.loop()
    assert (cluster.alive, cluster.size(group)) == (2, 2)
    assert all(decision.action.value == "keep" for decision in cluster.ticks[-1].plan.nodes)


def test_a_deleted_node_is_drained_and_its_machine_ended(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=2)
    cluster.run(minutes=10)
    cluster.loop()
    first, second = cluster.call("NodeGroupNodes", id=group)["instances"]
    cluster.call("NodeGroupDeleteNodes", id=group, nodes=[{"providerID": first["id"]}])
    assert cluster.size(group) == 1
    assert sorted(states(cluster, group)) == [1, 3]
    cluster.call("NodeGroupDeleteNodes", id=group, nodes=[{"providerID": first["id"]}])  # again
    assert cluster.size(group) == 1
    waiting(cluster, lambda c: c.alive == 1)
    cluster.run(minutes=5)
    cluster.loop()
    assert [i["id"] for i in cluster.call("NodeGroupNodes", id=group)["instances"]] == [second["id"]]


def test_placeholders_of_machines_that_never_came_are_deleted(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.simulation.cloud.shortage(SMALL, since=START, until=START + timedelta(days=1))
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.run(minutes=1)
    cluster.loop()
    (instance,) = cluster.call("NodeGroupNodes", id=group)["instances"]
    assert instance["id"].startswith(PLACEHOLDER)
    assert instance["status"]["instanceState"] == 2
    error = instance["status"]["errorInfo"]
    assert (error["errorCode"], error["instanceErrorClass"]) == ("OUT_OF_RESOURCES", 1)
    assert cluster.size(group) == 1
    (listed,) = [found for found in cluster.loop() if found["id"] == group]
    assert listed["maxSize"] == 1  # it backs off
    node = {"providerID": instance["id"], "name": instance["id"]}
    cluster.call("NodeGroupDeleteNodes", id=group, nodes=[node])
    cluster.run(minutes=1)
    cluster.loop()
    assert list_all(cluster.simulation.api, PROVISIONED_NODES)[0] == ()
    assert cluster.machines == 0


def test_a_quota_has_its_own_code(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.simulation.cloud.quota("on-demand", 0)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.run(minutes=1)
    cluster.loop()
    (instance,) = cluster.call("NodeGroupNodes", id=group)["instances"]
    error = instance["status"]["errorInfo"]
    assert (error["errorCode"], error["instanceErrorClass"]) == ("QUOTA_EXCEEDED", 1)


def test_a_failure_that_nobody_asks_about_is_forgotten(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.simulation.cloud.quota("on-demand", 0)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.run(minutes=14)
    assert len(list_all(cluster.simulation.api, PROVISIONED_NODES)[0]) == 1
    cluster.run(minutes=3)
    assert list_all(cluster.simulation.api, PROVISIONED_NODES)[0] == ()


def test_a_machine_that_never_becomes_a_node_stays_until_it_is_deleted() -> None:
    slow = Cluster(behaviour=Behaviour(boot=timedelta(days=1)))
    slow.run(seconds=30)
    group = cheapest(slow)
    slow.call("NodeGroupIncreaseSize", id=group, delta=1)
    slow.run(hours=2)
    slow.loop()
    (instance,) = slow.call("NodeGroupNodes", id=group)["instances"]
    assert instance["status"]["errorInfo"]["errorCode"] == "BootTimedOut"
    assert instance["status"]["errorInfo"]["instanceErrorClass"] == 99
    assert slow.alive == 1
    slow.call("NodeGroupDeleteNodes", id=group, nodes=[{"providerID": instance["id"], "name": instance["id"]}])
    waiting(slow, lambda c: c.alive == 0)


def test_a_size_shrinks_only_by_what_has_no_machine(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.run(minutes=10)
    cluster.loop()
    assert refused(cluster, "NodeGroupDecreaseTargetSize", id=group, delta=-1) is Status.INVALID_ARGUMENT
    assert refused(cluster, "NodeGroupDecreaseTargetSize", id=group, delta=1) is Status.INVALID_ARGUMENT
    cluster.call("NodeGroupIncreaseSize", id=group, delta=2)
    cluster.call("NodeGroupDecreaseTargetSize", id=group, delta=-2)
    assert cluster.size(group) == 1
    cluster.run(minutes=10)
    cluster.loop()
    assert (cluster.size(group), cluster.machines) == (1, 1)  # never asked for


def test_part_of_an_order_that_is_not_written_down_yet_is_deleted_later(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=2)
    assert refused(cluster, "NodeGroupDecreaseTargetSize", id=group, delta=-1) is Status.UNAVAILABLE
    assert cluster.size(group) == 2


@pytest.mark.parametrize(
    ("method", "asked", "status"),
    [
        ("NodeGroupTargetSize", {"id": "no-such"}, Status.NOT_FOUND),
        ("NodeGroupIncreaseSize", {"id": "no-such", "delta": 1}, Status.NOT_FOUND),
        ("NodeGroupIncreaseSize", {"delta": 0}, Status.INVALID_ARGUMENT),
        ("NodeGroupIncreaseSize", {"delta": 5}, Status.OUT_OF_RANGE),
        ("NodeGroupDeleteNodes", {"nodes": [{"name": "stranger"}]}, Status.INVALID_ARGUMENT),
    ],
)
def test_impossible_orders_are_refused(cluster: Cluster, method: str, asked: dict[str, Any], status: Status) -> None:
    group = cheapest(cluster)
    assert refused(cluster, method, **({"id": group} | asked)) is status
    cluster.run(minutes=5)
    assert cluster.machines == 0


def test_a_stranger_among_nodes_keeps_all_of_them(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.run(minutes=10)
    cluster.loop()
    (instance,) = cluster.call("NodeGroupNodes", id=group)["instances"]
    nodes = [{"providerID": instance["id"]}, {"name": "stranger"}]
    assert refused(cluster, "NodeGroupDeleteNodes", id=group, nodes=nodes) is Status.INVALID_ARGUMENT
    assert cluster.size(group) == 1


def test_nodes_of_other_pools_are_nobodys() -> None:
    cluster = Cluster(pool=POOL.replace("  launcher: ClusterAutoscaler\n", ""))
    cluster.run(minutes=10)
    assert cluster.machines == 1
    assert cluster.loop() == []
    (node,) = cluster.ticks[-1].snapshot.nodes
    found = cluster.call("NodeGroupForNode", node={"providerID": node.provider_id, "name": node.name})
    assert found == {"nodeGroup": {"id": ""}}


def test_a_node_that_leaves_is_in_no_group(cluster: Cluster) -> None:
    """Cluster Autoscaler 1.36.1 counted a drained, ready node of a group as the one that it had ordered there."""
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.run(minutes=10)
    cluster.loop()
    (instance,) = cluster.call("NodeGroupNodes", id=group)["instances"]
    asked = {"providerID": instance["id"]}
    assert cluster.call("NodeGroupForNode", node=asked)["nodeGroup"]["id"] == group
    cluster.call("NodeGroupDeleteNodes", id=group, nodes=[asked])
    assert cluster.call("NodeGroupForNode", node=asked) == {"nodeGroup": {"id": ""}}


def test_guards_bound_the_size() -> None:
    settings = Settings(spending=SpendingSettings(max_launches_per_hour=1))
    cluster = Cluster(settings=settings)
    cluster.run(seconds=30)
    group = cheapest(cluster)
    assert [found["maxSize"] for found in cluster.loop()] == [1, 1]
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    # Before the loop has charged it, and after.
    assert refused(cluster, "NodeGroupIncreaseSize", id=group, delta=1) is Status.OUT_OF_RANGE
    cluster.run(minutes=1)
    cluster.loop()
    assert refused(cluster, "NodeGroupIncreaseSize", id=group, delta=1) is Status.OUT_OF_RANGE


def test_a_pool_that_observes_is_not_ordered_from() -> None:
    cluster = Cluster(pool=POOL.replace("mode: Act", "mode: Observe"))
    cluster.run(seconds=30)
    assert cluster.loop() == []


def test_a_lost_answer_of_the_api_server_is_looked_up(cluster: Cluster) -> None:
    group = cheapest(cluster)
    api = cluster.simulation.api
    created = api.create

    def loses(resource: Any, manifest: Any) -> Any:
        created(resource, manifest)
        raise UnavailableError("timed out")

    api.create = loses  # type: ignore[method-assign]
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    api.create = created  # type: ignore[method-assign]
    assert cluster.size(group) == 1
    cluster.run(minutes=10)
    assert cluster.machines == 1


def test_what_could_not_be_written_is_not_ordered(cluster: Cluster) -> None:
    group = cheapest(cluster)
    api = cluster.simulation.api
    created = api.create

    def fails(resource: Any, manifest: Any) -> Any:
        raise ConflictError("no")

    api.create = fails  # type: ignore[method-assign]
    assert refused(cluster, "NodeGroupIncreaseSize", id=group, delta=1) is Status.UNAVAILABLE
    api.create = created  # type: ignore[method-assign]
    cluster.loop()
    assert cluster.size(group) == 0


def test_who_does_not_lead_orders_nothing(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.restart_service(InterceptedApi(cluster.simulation.api, leader_only(lambda: False)))
    assert refused(cluster, "NodeGroupIncreaseSize", id=group, delta=1) is Status.UNAVAILABLE
    assert list_all(cluster.simulation.api, LAUNCH_BATCHES)[0] == ()


def test_a_restart_in_the_middle_of_a_loop_forgets_nothing(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    cluster.restart_service()
    assert cluster.size(group) == 1
    cluster.simulation.new_loop()
    cluster.run(minutes=10)
    assert cluster.machines == 1
    cluster.restart_service()
    assert states(cluster, group) == [1]


def test_before_the_first_reconcile_nothing_is_answered() -> None:
    cluster = Cluster()
    for method in ("Refresh", "NodeGroups", "NodeGroupForNode"):
        assert refused(cluster, method) is Status.UNAVAILABLE


def test_without_an_account_nothing_that_was_ordered_is_launched(cluster: Cluster) -> None:
    group = cheapest(cluster)
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)

    @contextmanager
    def refuse(verb: str, resource: Resource) -> Iterator[None]:
        if resource == SPENDINGS and verb not in ("get", "list", "watch"):
            raise ForbiddenError("spendings may not be written")
        yield

    cluster.simulation.new_loop(InterceptedApi(cluster.simulation.api, refuse))
    cluster.run(minutes=1)
    assert cluster.machines == 0
    cluster.simulation.new_loop()
    cluster.run(minutes=1)
    assert cluster.machines == 1


def test_a_pool_from_which_nobody_can_order_says_so() -> None:
    simulation = Cluster().simulation
    simulation._settings = Settings()
    simulation.new_loop()
    simulation.run(START + timedelta(seconds=30))
    (pool,), _ = list_all(simulation.api, CAPACITY_POOLS)
    (ready,) = [condition for condition in pool["status"]["conditions"] if condition["type"] == "Ready"]
    assert ready["status"] == "False"
    assert "serve.externalGrpc" in ready["message"]


def test_for_pods_that_another_pool_serves_no_group_is_listed() -> None:
    """The loop launches for them, and so would Cluster Autoscaler."""
    other = POOL.replace("name: gpu", "name: own").replace("  launcher: ClusterAutoscaler\n", "")
    cluster = Cluster(pool=f"{POOL}---{other}")
    cluster.run(seconds=30)
    assert cluster.loop() == []
    cluster.run(minutes=10)
    assert cluster.machines == 1
