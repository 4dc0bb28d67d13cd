"""Which pending pods a pool serves, and what the others are told."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.advice.advise import advise
from autoscaler.advice.ignored import as_if_served
from autoscaler.model.capacity import CapacityPool, PodScope, Scope
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.plan import LeftOutVerdict, Plan
from autoscaler.model.pod import Container, Pod, PodClaim, Unread
from autoscaler.model.reason import Code
from autoscaler.model.requested_capacity import Condition, ProvisioningRequest
from autoscaler.planning.demand.demand import why_pending
from autoscaler.planning.policy import Policy
from autoscaler.report.reasons import text_of, texts_of
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.quantity import Quantity
from tests.builders import CATALOG, GPU, NOW, TEAM, claim, gang, ours, plan, pod, shipped, snapshot, types

ALL = replace(TEAM, scope=Scope(PodScope.ALL))
GOLD = LabelSelector((Requirement("tier", "In", ("gold",)),))


def selecting(**fields: Any) -> CapacityPool:
    return replace(TEAM, scope=Scope(PodScope.SELECTED, **fields))


def outside(result: Plan) -> dict[str, list[Code]]:
    return {entry.pod: [reason.code for reason in entry.reasons] for entry in result.outside}


def test_pods_without_claims_are_told_so_and_open_nothing() -> None:
    result = plan(snapshot([pod("web")]))
    assert outside(result) == {"default/web": [Code.OUT_OF_SCOPE]}
    assert (result.out_of_scope, result.launches, result.left_out) == (("default/web",), (), ())


def test_a_part_of_a_gpu_by_annotation_is_nothing_to_buy_and_its_scheduler_is_the_next_obstacle() -> None:
    other = replace(pod("web", scheduler_name="kai-scheduler"), annotations=FrozenMap({"gpu-memory": "2000"}))
    (entry,) = plan(snapshot([other])).outside
    assert [reason.code for reason in entry.reasons] == [Code.OUT_OF_SCOPE, Code.OTHER_SCHEDULER]
    assert texts_of(entry.reasons).endswith(
        ": once it asks for whole GPUs, a CapacityPool has to name its scheduler in spec.scope.schedulerNames: "
        "[kai-scheduler]"
    )
    asking = replace(pod("web"), annotations=FrozenMap({"gpu-memory": "2000"}))
    ((reason,),) = (entry.reasons for entry in plan(snapshot([asking])).outside)
    assert reason.detail == {"part": "gpu-memory", "asking": True}
    assert "part of a GPU by annotation gpu-memory" in text_of(reason)


@pytest.mark.parametrize(
    "pools", [(), (ALL,), (replace(TEAM, scope=Scope(PodScope.SELECTED)),)], ids=["none", "all", "selected"]
)
def test_a_slice_that_somebody_else_forms_is_nothing_to_buy(pools: tuple[CapacityPool, ...]) -> None:
    chips = Container("main", FrozenMap({"google.com/tpu": Quantity.of(4)}))
    formed = FrozenMap({labels.FORMED_SLICE_TOPOLOGY: "4x4x4"})
    asking = replace(pod("worker"), containers=(chips,), annotations=formed)
    state = replace(snapshot([asking]), pools=pools)
    found = plan(state)
    assert found.launches == ()
    ((reason,),) = (entry.reasons for entry in found.outside)
    assert "asks for a TPU slice of 4x4x4, which GKE's slice controller forms" in text_of(reason)
    for catalog in (CATALOG, shipped("tpu7x-standard-4t")):
        assert advise(asking, state, catalog, found, Policy(), NOW) == ()
        assert as_if_served(found, state, catalog, Policy(), NOW) is None


def test_a_resource_that_a_class_would_serve_in_a_later_version_is_told_so() -> None:
    old, new = profile_for("1.35"), profile_for("1.36")
    wants = Container("main", FrozenMap({"cpu": Quantity.of(1), "example.com/gpu": Quantity.of(1)}))
    asks = replace(pod("legacy"), containers=(wants,))
    classes = (GPU, DeviceClass("gpus", extended_resource_name="example.com/gpu"))
    (entry,) = plan(snapshot([asks], classes=classes, profile=old)).outside
    assert dict(entry.reasons[0].detail) == {
        "resources": ("example.com/gpu",),
        "device_class": "gpus",
        "gate": "DRAExtendedResource",
        "version": "v1.35.0",
    }
    assert "no DeviceClass serves" not in text_of(entry.reasons[0])
    assert not plan(snapshot([asks], classes=classes, profile=new)).outside


@pytest.mark.parametrize(
    ("resource", "cards", "parts"),
    [
        ("nvidia.com/rdma-vf", True, False),
        ("mellanox.com/mlnxnics", True, False),
        ("nvidia.com/GA102", False, True),
        ("nvidia.com/mig-small", False, True),  # no profile of a known GPU
        ("example.com/fpga", False, False),
    ],
)
def test_a_resource_that_nobody_knows_is_of_nodes_that_are_there(resource: str, cards: bool, parts: bool) -> None:
    """No claim helps where no driver serves such devices, and an ignored pod counts with --strict alone."""
    wants = Container("main", FrozenMap({resource: Quantity.of(1)}))
    (entry,) = plan(snapshot([replace(pod("p"), containers=(wants,))])).outside
    said = text_of(entry.reasons[0])
    assert "if a DRA driver serves such devices, use a claim" in said
    assert "otherwise only existing nodes have them: give these with -f" in said
    assert (f"asks for {resource} (network cards of another system), which" in said) == cards
    claimed = "if they are parts of an NVIDIA GPU, claim MIG parts instead, as in docs/examples/mig-parts.yaml, or "
    assert (f"{claimed}request nvidia.com/gpu for all of one; " in said) == parts


def test_a_share_of_a_gpu_is_told_with_its_system_alone() -> None:
    wants = Container("main", FrozenMap({"nvidia.com/vgpu-number": Quantity.of(1)}))
    (entry,) = plan(snapshot([replace(pod("p"), containers=(wants,))])).outside
    assert text_of(entry.reasons[0]).endswith(
        "asks for nvidia.com/vgpu-number, by which vgpu-manager hands out parts of a GPU, and no node of a plan runs "
        "it (--strict counts it as not placed)"
    )


def test_a_pod_to_which_something_unread_may_add_a_device_is_not_called_ordinary() -> None:
    waiting = replace(pod("web"), unread=Unread("ServingRuntime r", "give it"))
    result = plan(snapshot([waiting]))
    assert outside(result) == {}
    ((verdict, (reason,)),) = [(entry.verdict, entry.reasons) for entry in result.left_out]
    assert verdict is LeftOutVerdict.UNKNOWN
    assert text_of(reason) == (
        "pod default/web: depends on ServingRuntime r, which is not in the files and may ask for devices: give it"
    )


def test_scope_all_serves_them() -> None:
    assert types(plan(snapshot([pod("web")], pools=(ALL,)))) == ["s1"]


@pytest.mark.parametrize(
    ("pool", "served"),
    [
        pytest.param(selecting(pod_selector=GOLD), ["by-pod"], id="pod-selector"),
        pytest.param(selecting(namespace_selector=GOLD), ["by-namespace"], id="namespace-selector"),
        pytest.param(selecting(pod_selector=GOLD, namespace_selector=GOLD), [], id="both-must-select"),
        pytest.param(selecting(namespace_selector=LabelSelector()), ["by-pod", "by-namespace"], id="empty-selects-all"),
    ],
)
def test_selectors_pick_pods_with_claims_or_without(pool: CapacityPool, served: list[str]) -> None:
    by_pod = pod("by-pod", labels=FrozenMap({"tier": "gold"}))
    by_namespace = replace(pod("by-namespace"), namespace="rich")
    namespaces = FrozenMap({"rich": FrozenMap({"tier": "gold"})})
    result = plan(snapshot([by_pod, by_namespace], namespaces=namespaces, pools=(pool,)))
    assert sorted(p.pod.split("/")[1] for p in result.placements) == sorted(served)
    assert {code for codes in outside(result).values() for code in codes} <= {Code.NOT_SELECTED}
    assert len(result.placements) + len(result.outside) == 2


def test_each_pool_serves_its_own_pods() -> None:
    gold = replace(selecting(pod_selector=GOLD), name="gold", weight=9)
    pods = [pod("rich", labels=FrozenMap({"tier": "gold"})), pod("poor", "c")]
    result = plan(snapshot(pods, [claim("c")], pools=(gold, TEAM)))
    assert {launch.pool: launch.pods for launch in result.launches} == {
        "gold": ("default/rich",),
        "team": ("default/poor",),
    }


def test_a_pool_serves_the_whole_gang_or_none_of_it() -> None:
    pods = [pod("leader", gang="g"), pod("worker", "c", gang="g")]
    result = plan(snapshot(pods, [claim("c")], gangs=gang("g", 2), pools=(TEAM,)))
    assert sorted(placement.pod for placement in result.placements) == ["default/leader", "default/worker"]


@pytest.mark.parametrize(
    ("schedulers", "served"),
    [(("default-scheduler",), False), (("default-scheduler", "volcano"), True)],
    ids=["unlisted", "listed"],
)
def test_pods_of_schedulers_that_are_not_listed_are_left_to_them(schedulers: tuple[str, ...], served: bool) -> None:
    pool = replace(TEAM, scope=Scope(schedulers=schedulers))
    result = plan(snapshot([pod("a", "c", scheduler_name="volcano")], [claim("c")], pools=(pool,)))
    assert bool(result.launches) is served
    assert outside(result) == ({} if served else {"default/a": [Code.OTHER_SCHEDULER]})


def test_gke_scheduler_is_served_by_default() -> None:
    gke = pod("a", "c", scheduler_name="gke.io/optimize-utilization-scheduler")
    assert types(plan(snapshot([gke], [claim("c")], pools=(TEAM,)))) == ["s1"]


def test_pods_of_daemon_sets_are_nobodys_demand() -> None:
    marked = pod("a", "c", annotations=FrozenMap({labels.CA_DAEMON_SET_POD: "true"}))
    owned = pod("b", "d", owner="DaemonSet/agent")
    result = plan(snapshot([marked, owned], [claim("c"), claim("d")]))
    assert (result.launches, result.left_out, result.outside) == ((), (), ())


REQUEST = FrozenMap({labels.CONSUME_PROVISIONING_REQUEST: "train"})
OLD_REQUEST = FrozenMap({labels.CA_CONSUME_PROVISIONING_REQUEST: "train"})


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({"scheduling_gates": ("wait",)}, Code.SCHEDULING_GATED, id="gate"),
        pytest.param({"annotations": REQUEST}, Code.PROVISIONING_REQUEST, id="provisioning-request"),
        pytest.param({"annotations": OLD_REQUEST}, Code.PROVISIONING_REQUEST, id="provisioning-request-old-key"),
        pytest.param({"nominated_node": "ip-10-0-0-1"}, Code.NOMINATED, id="nominated-to-a-node-that-is-to-come"),
    ],
)
def test_pods_that_no_node_would_help(fields: dict[str, Any], code: Code) -> None:
    state = snapshot([pod("a", "c", **fields)], [claim("c")])
    result = plan(state)
    (left,) = result.left_out
    assert ([reason.code for reason in left.reasons], result.launches) == ([code], ())
    assert [reason.code for reason in why_pending(state.pods[0], state)] == [code]


QUEUED = "queued-provisioning.gke.io"
OF_OTHERS = f"ProvisioningRequest train of class {QUEUED}, which another autoscaler serves"


@pytest.mark.parametrize(
    ("class_name", "conditions", "text"),
    [
        (QUEUED, (), f"{OF_OTHERS} and has not answered yet"),
        (
            QUEUED,
            (Condition("Provisioned", "False", message="no"), Condition("Accepted", "True", message="in the queue")),
            f"{OF_OTHERS} (Accepted): in the queue",
        ),
        (
            QUEUED,
            (Condition("Accepted", "True"), Condition("Provisioned", "True", "Provisioned")),
            f"{OF_OTHERS} (Provisioned): Provisioned",
        ),
        (
            QUEUED,
            (Condition("Failed", "True", message="quota of H100"), Condition("Accepted", "True")),
            f"{OF_OTHERS} and which has ended (Failed): quota of H100; make a request with another name",
        ),
        ("atomic.foreslice.dev", (Condition("Accepted", "True"),), "ProvisioningRequest train"),
    ],
)
def test_what_a_pod_hears_of_its_request(class_name: str, conditions: tuple[Condition, ...], text: str) -> None:
    waiting = pod("a", "c", annotations=REQUEST)
    request = ProvisioningRequest(waiting.namespace, "train", class_name, (), conditions=conditions)
    of_others = replace(request, namespace="other", class_name="x.y")
    state = replace(snapshot([waiting], [claim("c")]), provisioning_requests=(of_others, request))
    (reason,) = why_pending(waiting, state)
    assert text_of(reason) == f"pod {waiting.key}: gets its capacity through {text}"


def test_a_request_that_is_not_there_is_named_unless_requests_cannot_be_read() -> None:
    waiting = pod("a", "c", annotations=REQUEST)
    state = snapshot([waiting], [claim("c")])
    (reason,) = why_pending(waiting, state)
    assert "names ProvisioningRequest train, which is not known: create it" in text_of(reason)
    (reason,) = why_pending(waiting, replace(state, unreadable=FrozenMap({"ProvisioningRequest": "list"})))
    assert text_of(reason) == f"pod {waiting.key}: gets its capacity through ProvisioningRequest train"


class TestNomination:
    NODE = Node("n1", ready=True)

    def why(self, *others: Pod, nominated: str = "n1", **fields: Any) -> list[Code]:
        waiting = pod("a", "c", nominated_node=nominated)
        result = plan(snapshot([waiting, *others], [claim("c")], nodes=(self.NODE,), **fields))
        return [reason.code for left in result.left_out for reason in left.reasons]

    def test_pods_that_are_being_preempted_make_a_place(self) -> None:
        assert self.why(pod("victim", node_name="n1", deleting=True)) == [Code.NOMINATED]

    def test_where_nobody_leaves_the_planner_looks_itself(self) -> None:
        assert self.why(pod("neighbour", node_name="n1")) == []

    def test_a_nomination_of_ours_that_outlived_its_node_keeps_nobody_waiting(self) -> None:
        assert self.why(nominated="team-0123456789", pools=(TEAM,)) == []

    def test_a_nomination_to_a_coming_node_of_ours_is_decided_by_the_planner(self) -> None:
        assert self.why(nominated="i-1", provisioned=(ours("i-1"),), pools=(TEAM,)) == []


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        pytest.param({}, Code.NOT_TRIED, id="no-condition"),
        pytest.param({"unscheduled": "Unschedulable"}, Code.UNSCHEDULABLE, id="unschedulable"),
        pytest.param({"unscheduled": "SchedulerError"}, Code.SCHEDULER_ERROR, id="scheduler-error"),
    ],
)
def test_what_the_scheduler_said_is_told_apart(fields: dict[str, str], code: Code) -> None:
    waiting = pod("a", "c", unscheduled_why="because", **fields)
    (reason,) = why_pending(waiting, snapshot([waiting], [claim("c")]))
    assert reason.code is code


def test_what_has_no_condition_because_something_is_missing_is_told_apart() -> None:
    no_claim = pod("a", "nowhere")
    alone = pod("b", "c", gang="g")
    state = snapshot([no_claim, alone], [claim("c")], gangs=gang("g", 2))
    assert [reason.code for reason in why_pending(no_claim, state)] == [Code.CLAIM_NOT_FOUND]
    assert [reason.code for reason in why_pending(alone, state)] == [Code.GANG_INCOMPLETE]
    (reason,) = why_pending(alone, snapshot([alone], [claim("c")]))
    assert text_of(reason).endswith("does not exist, which says how many pods start together: create it")
    other = pod("b", "c", gang="g", scheduler_name="own")
    (reason,) = why_pending(other, snapshot([other], [claim("c")]))
    assert "create it; if own needs no such object, a plan of its pods does" in text_of(reason)


def test_a_claim_whose_name_the_status_lost_is_told_apart_from_one_that_is_not_made_yet() -> None:
    entries = (PodClaim("gpu", "a-gpu-1", template="t"), PodClaim("nic", None, template="t"))
    waiting = replace(pod("a"), uid="u", claims=entries)
    made = replace(claim("a-gpu-1"), controller="u")
    lost, others = replace(claim("a-nic-7"), controller="u"), replace(claim("a-nic-8"), controller="v")
    (reason,) = why_pending(waiting, snapshot([waiting], [made, lost, others]))
    assert (reason.code, reason.detail["dropped"]) == (Code.CLAIM_NOT_CREATED, ("default/a-nic-7",))
    assert "delete the pod so that its controller makes a new one, or upgrade Kubernetes" in text_of(reason)
    (reason,) = why_pending(waiting, snapshot([waiting], [made, others]))
    assert text_of(reason).endswith("the claim was not created from template t yet (entry nic)")


def test_the_scheduler_does_not_hide_what_else_the_scope_refuses() -> None:
    asking = replace(
        pod("web", scheduler_name="volcano"),
        containers=(Container("c", FrozenMap({"nvidia.com/gpu": Quantity.of(1)})),),
    )
    result = plan(snapshot([asking]))
    assert outside(result) == {"default/web": [Code.OTHER_SCHEDULER, Code.OUT_OF_SCOPE]}


def test_no_scheduler_in_a_scope_helps_where_no_machine_of_the_catalog_has_the_device() -> None:
    asking = replace(
        pod("web", scheduler_name="volcano"),
        containers=(Container("c", FrozenMap({"aws.amazon.com/neuron": Quantity.of(1)})),),
    )
    assert outside(plan(snapshot([asking]))) == {"default/web": [Code.OUT_OF_SCOPE]}


def test_only_what_has_ended_is_said_to_have_ended() -> None:
    asked = {"aws.amazon.com/neuron": Quantity.of(1), "aws.amazon.com/neurondevice": Quantity.of(1)}
    result = plan(snapshot([replace(pod("web"), containers=(Container("c", FrozenMap(asked)),))]))
    (entry,) = result.outside
    assert entry.reasons[0].detail["resources"] == ("aws.amazon.com/neurondevice",)


def test_no_scheduler_in_a_scope_helps_a_pod_without_devices() -> None:
    result = plan(snapshot([pod("web", scheduler_name="volcano")]))
    assert outside(result) == {"default/web": [Code.OUT_OF_SCOPE]}


def test_a_gang_that_claims_devices_is_refused_for_its_scheduler_alone() -> None:
    pods = [pod("leader", gang="g", scheduler_name="x"), pod("worker", "c", gang="g", scheduler_name="x")]
    result = plan(snapshot(pods, [claim("c")], gangs=gang("g", 2)))
    assert outside(result) == {"default/leader": [Code.OTHER_SCHEDULER], "default/worker": [Code.OTHER_SCHEDULER]}
