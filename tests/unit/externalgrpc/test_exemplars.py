"""Exemplars, as a Cluster Autoscaler without `resourceSliceBytes` sees them: its loop's calls, in virtual time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime

import pytest
from structlog.testing import capture_logs

from autoscaler.cluster.api import Object, UnavailableError, list_all
from autoscaler.cluster.intercepted import InterceptedApi, leader_only
from autoscaler.cluster.resources import NODES, PODS, RESOURCE_CLAIMS, RESOURCE_SLICES, Resource
from autoscaler.externalgrpc.exemplars import LONGEST, MOST, PAUSE_SEEN, PAUSE_UNSEEN, Exemplar, Exemplars
from autoscaler.externalgrpc.kubernetes_types import NODE
from autoscaler.externalgrpc.wire import decode
from autoscaler.kube.metadata import is_exemplar
from autoscaler.simulation.scenario import parse_scenario
from instance_catalog.kubernetes import labels
from tests.unit.externalgrpc.cluster import POOL, Cluster

SCAN = 10.0  # seconds of a loop


@pytest.fixture
def cluster() -> Cluster:
    """A pod waits for a GPU; there is no node, and the caller knows of no slices."""
    made = Cluster(slices=False, exemplars=True, most=1)
    made.run(seconds=30)
    return made


def nodes(cluster: Cluster) -> list[Object]:
    return [found for found in list_all(cluster.simulation.api, NODES)[0] if is_exemplar(found)]


def slices(cluster: Cluster) -> list[Object]:
    return [found for found in list_all(cluster.simulation.api, RESOURCE_SLICES)[0] if is_exemplar(found)]


class Caller:
    """Cluster Autoscaler 1.36.1: lists Nodes, refreshes, makes templates; those of Nodes are kept."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.learnt: dict[str, list[Object]] = {}

    def loop(self) -> list[str]:
        """One loop, and the time until the next. Returns the ids of the groups."""
        there, published = nodes(self.cluster), slices(self.cluster)
        for node in there:
            self.group_of(node)
        groups = [str(group["id"]) for group in self.cluster.loop()]
        self.learnt = {group: known for group, known in self.learnt.items() if group in groups}
        for node in there:
            group = self.group_of(node)
            if group:
                own = [one for one in published if one["spec"]["nodeName"] == node["metadata"]["name"]]
                self.learnt[group] = own
        for group in groups:
            if group not in self.learnt:
                self.cluster.call("NodeGroupTemplateNodeInfo", id=group)
        self.cluster.exemplars.work()
        self.cluster.run(seconds=SCAN)
        self.cluster.exemplars.work()
        return groups

    def group_of(self, node: Object) -> str:
        asked = {"name": node["metadata"]["name"], "providerID": node.get("spec", {}).get("providerID", "")}
        return str(self.cluster.call("NodeGroupForNode", node=asked)["nodeGroup"]["id"])


def test_a_group_without_a_node_is_learnt_in_the_second_loop_and_the_exemplar_goes(cluster: Cluster) -> None:
    caller = Caller(cluster)
    (group,) = caller.loop()
    (node,) = nodes(cluster)
    assert len(slices(cluster)) == 1
    caller.loop()
    (known,) = caller.learnt[group]
    assert known["spec"]["driver"] == "gpu.nvidia.com"
    assert known["spec"]["devices"]
    assert cluster.size(group) == 0
    assert cluster.call("NodeGroupNodes", id=group) == {"instances": []}
    caller.loop()
    assert nodes(cluster) == slices(cluster) == []
    assert caller.group_of(node) == ""
    for _ in range(20):
        caller.loop()
        assert nodes(cluster) == []  # it is known, so nobody asks for its template
    assert cluster.machines == 0


def test_the_node_is_that_of_the_template_and_takes_no_pods(cluster: Cluster) -> None:
    caller = Caller(cluster)
    (group,) = caller.loop()
    (node,), (piece,) = nodes(cluster), slices(cluster)
    name = node["metadata"]["name"]
    template = decode(NODE, cluster.call("NodeGroupTemplateNodeInfo", id=group)["nodeBytes"])
    assert node["status"]["allocatable"] == template["status"]["allocatable"]
    own = {labels.EXEMPLAR, labels.NO_LOAD_BALANCER, labels.HOSTNAME}
    differs = {
        key for key, value in node["metadata"]["labels"].items() if template["metadata"]["labels"].get(key) != value
    }
    assert differs == own
    assert node["metadata"]["annotations"] == {labels.CA_SCALE_DOWN_DISABLED: "true"}
    (taint,) = node["spec"]["taints"]
    assert (taint["key"], taint["effect"]) == (labels.CA_STATUS_TAINT, "NoSchedule")
    assert "providerID" not in node["spec"]
    (ready,) = node["status"]["conditions"]
    since = datetime.fromisoformat(ready["lastTransitionTime"])
    assert (cluster.simulation.clock.now() - since).total_seconds() > 60
    assert piece["metadata"]["labels"] == {labels.EXEMPLAR: name}
    assert (piece["spec"]["nodeName"], piece["spec"]["pool"]["name"]) == (name, name)


def test_our_own_eyes_do_not_see_it(cluster: Cluster) -> None:
    Caller(cluster).loop()
    assert nodes(cluster)
    snapshot = cluster.ticks[-1].snapshot
    assert (snapshot.nodes, snapshot.slices, snapshot.provisioned) == ((), (), ())
    assert cluster.ticks[-1].plan.launches == ()


def test_an_order_ends_it_at_once_and_is_not_counted_as_come(cluster: Cluster) -> None:
    caller = Caller(cluster)
    (group,) = caller.loop()
    (node,) = nodes(cluster)
    assert caller.group_of(node) == group
    cluster.call("NodeGroupIncreaseSize", id=group, delta=1)
    assert caller.group_of(node) == ""
    assert cluster.size(group) == 1
    cluster.exemplars.work()
    assert nodes(cluster) == slices(cluster) == []


def test_who_never_names_it_loses_it_before_kubernetes_misses_its_heartbeats(cluster: Cluster) -> None:
    cluster.call("Refresh")
    (group,) = [found["id"] for found in cluster.loop()]
    cluster.call("NodeGroupTemplateNodeInfo", id=group)
    cluster.exemplars.work()
    cluster.run(seconds=LONGEST - 1)
    cluster.exemplars.work()
    assert len(nodes(cluster)) == 1
    cluster.run(seconds=1)
    cluster.exemplars.work()
    assert nodes(cluster) == slices(cluster) == []
    assert LONGEST < 50
    for wait, there in ((PAUSE_UNSEEN - 1, 0), (1, 1)):
        cluster.run(seconds=wait)
        cluster.call("NodeGroupTemplateNodeInfo", id=group)
        cluster.exemplars.work()
        assert len(nodes(cluster)) == there


def test_a_caller_that_has_forgotten_is_shown_it_again_after_a_pause(cluster: Cluster) -> None:
    caller = Caller(cluster)
    for _ in range(4):
        caller.loop()
    assert caller.learnt
    assert nodes(cluster) == []
    restarted = Caller(cluster)
    restarted.loop()
    assert nodes(cluster) == []
    cluster.run(seconds=PAUSE_SEEN)
    restarted.loop()
    assert len(nodes(cluster)) == 1


def test_it_ends_when_no_pod_waits_any_more(cluster: Cluster) -> None:
    caller = Caller(cluster)
    caller.loop()
    for pod in list_all(cluster.simulation.api, PODS)[0]:
        cluster.simulation.api.delete(PODS, pod["metadata"]["name"], namespace="default", grace_seconds=0)
    cluster.run(seconds=30)
    caller.loop()
    assert nodes(cluster) == slices(cluster) == []


@pytest.mark.parametrize(
    "pool", [POOL.replace("mode: Act", "mode: Observe"), POOL.replace("profiles: [nvidia]", "profiles: []")]
)
def test_none_without_a_pool_that_acts_or_without_slices(pool: str) -> None:
    made = Cluster(pool=pool, slices=False, exemplars=True)
    made.run(seconds=30)
    caller = Caller(made)
    for _ in range(3):
        caller.loop()
        assert nodes(made) == []


def test_none_without_the_setting() -> None:
    made = Cluster(slices=False)
    made.run(seconds=30)
    caller = Caller(made)
    assert caller.loop()
    assert nodes(made) == []


def test_its_deletion_is_answered_and_touches_no_machine(cluster: Cluster) -> None:
    caller = Caller(cluster)
    (group,) = caller.loop()
    (node,) = nodes(cluster)
    assert cluster.call("NodeGroupDeleteNodes", id=group, nodes=[{"name": node["metadata"]["name"]}]) == {}
    cluster.exemplars.work()
    assert nodes(cluster) == []
    assert cluster.machines == 0


def test_what_a_crash_left_is_found_and_what_others_made_stays(cluster: Cluster) -> None:
    api = cluster.simulation.api
    Caller(cluster).loop()
    (node,) = nodes(cluster)
    api.create(NODES, {"metadata": {"name": "foreign", "labels": {labels.POOL: "gpu"}}})
    cluster.restart_service()
    assert len(nodes(cluster)) == 1
    assert Caller(cluster).group_of(node) == ""  # not ours any more: it teaches nothing while it goes
    cluster.exemplars.work()
    assert nodes(cluster) == slices(cluster) == []
    assert [found["metadata"]["name"] for found in list_all(api, NODES)[0]] == ["foreign"]


def test_a_node_that_has_taken_its_name_stays(cluster: Cluster) -> None:
    api = cluster.simulation.api
    caller = Caller(cluster)
    caller.loop()
    (node,) = nodes(cluster)
    name = node["metadata"]["name"]
    api.delete(NODES, name)
    api.create(NODES, {"metadata": {"name": name}})
    cluster.exemplars.close()
    assert [found["metadata"]["name"] for found in list_all(api, NODES)[0]] == [name]
    assert slices(cluster) == []


@pytest.mark.parametrize("nth", range(1, 5))
@pytest.mark.parametrize("written", ["written", "not written"])
def test_a_write_that_fails_leaves_nothing(cluster: Cluster, nth: int, written: str) -> None:
    """Of two creations and two deletions one fails; what was asked is done all the same, or is not."""
    asked = 0

    @contextmanager
    def breaks(verb: str, resource: Resource) -> Iterator[None]:
        nonlocal asked
        if verb in ("create", "delete") and resource in (NODES, RESOURCE_SLICES):
            asked += 1
            if asked == nth:
                if written == "not written":
                    raise UnavailableError("it is away")
                yield
                raise UnavailableError("the answer is lost")
        yield

    cluster.restart_service(InterceptedApi(cluster.simulation.api, breaks))
    caller = Caller(cluster)
    caller.loop()
    cluster.exemplars.close()
    cluster.exemplars.work()
    assert asked >= nth
    assert nodes(cluster) == slices(cluster) == []


def test_only_the_leader_shows_any(cluster: Cluster) -> None:
    leads = True
    api = cluster.simulation.api
    cluster.restart_service(InterceptedApi(api, leader_only(lambda: leads)))
    caller = Caller(cluster)
    caller.loop()
    assert len(nodes(cluster)) == 1
    leads = False
    before, cluster.shows = cluster.exemplars, True
    before.close()
    assert not before.work()
    assert len(nodes(cluster)) == 1  # it may not write any more
    cluster.restart_service()  # the next leader
    cluster.exemplars.work()
    assert nodes(cluster) == slices(cluster) == []


FEARLESS = """
apiVersion: v1
kind: Pod
metadata: {name: fearless, annotations: {simulation.foreslice.dev/runs-for: 30m}}
spec:
  tolerations: [{operator: Exists}]
  resourceClaims: [{name: gpu, resourceClaimTemplateName: gpu}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""


@pytest.mark.parametrize("loops", [0, 1], ids=["before", "while it is there"])
def test_none_while_a_pod_with_a_claim_waits_that_no_taint_keeps_away(cluster: Cluster, loops: int) -> None:
    caller = Caller(cluster)
    for _ in range(loops):
        caller.loop()
    assert len(nodes(cluster)) == loops
    cluster.simulation.add(parse_scenario(FEARLESS))
    cluster.run(seconds=1)
    with capture_logs() as logs:
        for _ in range(3):
            caller.loop()
            assert nodes(cluster) == slices(cluster) == []
    assert [log["pod"] for log in logs if log["event"] == "exemplar_withheld"] == ["default/fearless"]


def test_no_more_than_a_few_at_once(cluster: Cluster) -> None:
    exemplars = Exemplars(cluster.simulation.api, cluster.simulation.clock)
    shown = []
    for number in range(MOST + 2):
        if exemplars.wants(f"group-{number}"):
            shown.append(number)
            name = f"foreslice-exemplar-{number}"
            node = {"metadata": {"name": name, "labels": {labels.EXEMPLAR: name}}}
            exemplars.show(Exemplar(f"group-{number}", name, node, ()))
            exemplars.work()
    assert shown == list(range(MOST))
    assert len(nodes(cluster)) == MOST


def test_a_claim_that_is_allocated_to_it_changes_no_plan_and_keeps_it_from_nothing(cluster: Cluster) -> None:
    """A pod that tolerates everything may be bound there: Kubernetes deletes it with the Node."""
    api = cluster.simulation.api
    caller = Caller(cluster)
    (group,) = caller.loop()
    (piece,) = slices(cluster)
    device = piece["spec"]["devices"][0]["name"]
    result = {
        "request": "gpu",
        "driver": piece["spec"]["driver"],
        "pool": piece["spec"]["pool"]["name"],
        "device": device,
    }
    request = {
        "name": "gpu",
        "exactly": {"deviceClassName": "gpu.nvidia.com", "allocationMode": "ExactCount", "count": 1},
    }
    claim = {
        "metadata": {"name": "taken", "namespace": "default"},
        "spec": {"devices": {"requests": [request]}},
        "status": {"allocation": {"devices": {"results": [result]}}},
    }
    api.create(RESOURCE_CLAIMS, claim)
    groups = caller.loop()
    assert groups == [group]  # the pod that waits is still served
    assert "default/taken" in cluster.ticks[-1].snapshot.claims
    caller.loop()
    assert nodes(cluster) == slices(cluster) == []
    assert cluster.machines == 0
