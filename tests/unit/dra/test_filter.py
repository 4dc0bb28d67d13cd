"""From a pod to its claims, and the verdict per node."""

from __future__ import annotations

import pytest

from autoscaler.dra.allocation.allocator import ClusterDevices
from autoscaler.dra.claims.extended_resources import contested_resources
from autoscaler.dra.claims.pod_claims import extended_resource_classes
from autoscaler.dra.filter import filter_claims
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.gang import API_GROUP, Gang
from autoscaler.model.node import Node
from autoscaler.model.pod import Container, Pod, PodClaim
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import (
    AllocatedDevice,
    Allocation,
    Consumer,
    FirstAvailable,
    ResourceClaim,
)
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Unknown, Verdict
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import RuntimeOnly
from tests.unit.dra.build import ANY, DRIVER, NODE, claim, cluster, device, devices, request, slice_of

POD = Pod("ns", "pod", uid="pod-uid", claims=(PodClaim("gpu", "claim"),))
OWN = replace(POD, claims=(PodClaim("gpu", "claim", template="template"),))


def judge(
    pod: Pod,
    *claims: ResourceClaim,
    where: ClusterDevices | None = None,
    node: Node = NODE,
    classes: tuple[DeviceClass, ...] = (),
    groups: tuple[Gang, ...] = (),
) -> Verdict:
    return filter_claims(
        pod,
        node,
        claims={one.key: one for one in claims},
        extended_resources=extended_resource_classes(classes),
        devices=where or cluster(slice_of(devices(2))),
        allocated=AllocatedState.of(claims),
        pod_groups={group.key: group for group in groups},
    )


def codes(verdict: Verdict) -> list[Code]:
    return [reason.code for reason in verdict.reasons]


def allocated_to(node: str, **more: object) -> ResourceClaim:
    device = AllocatedDevice("r", DRIVER, "pool", "gpu-00", **more)  # type: ignore[arg-type]
    return replace(claim(), allocation=Allocation((device,), NodeSelector.for_node(node), allocated_at=1000.0))


CONSUMERS = tuple(Consumer("pods", f"p{i}", f"u{i}") for i in range(256))


def test_an_unallocated_claim_is_allocated() -> None:
    verdict = judge(POD, claim())
    assert isinstance(verdict, Fits)
    assert [result.device for result in verdict.allocations["ns/claim"].devices] == ["gpu-00"]


def test_a_pod_without_claims_fits_with_nothing_to_allocate() -> None:
    assert judge(replace(POD, claims=())) == Fits()
    assert judge(replace(POD, claims=(PodClaim("none", ""),))) == Fits()


def test_the_preference_is_the_sum_of_chosen_alternatives() -> None:
    wish = FirstAvailable("f", (request("many", 9), request("some", 5), request("one", 1)))
    verdict = judge(POD, claim(wish))
    assert isinstance(verdict, Fits)
    assert verdict.preference == 2


@pytest.mark.parametrize(
    ("pod", "claims", "code"),
    [
        (replace(POD, claims=(PodClaim("gpu", None, template="t"),)), (), Code.CLAIM_NOT_CREATED),
        (POD, (), Code.CLAIM_NOT_FOUND),
        (POD, (replace(claim(), deleting=True),), Code.CLAIM_DELETING),
        (OWN, (replace(claim(), controller="somebody"),), Code.CLAIM_NOT_OWNED),
        (POD, (replace(allocated_to("node-1"), reserved_for=CONSUMERS),), Code.CLAIM_RESERVED_FULL),
        (POD, (claim(replace(request(), device_class="gone")),), Code.CLASS_NOT_FOUND),
        (replace(POD, claims=(PodClaim("a", "claim"), PodClaim("b", "claim"))), (claim(),), Code.MALFORMED_REQUEST),
    ],
    ids=["not created", "not found", "deleting", "not owned", "256 consumers", "no class", "named twice"],
)
def test_what_keeps_a_pod_off_every_node(pod: Pod, claims: tuple[ResourceClaim, ...], code: Code) -> None:
    verdict = judge(pod, *claims)
    assert isinstance(verdict, DoesNotFit)
    assert codes(verdict) == [code]


def test_owned_claims_and_a_reservation_for_the_pod_itself_are_fine() -> None:
    consumers = (*CONSUMERS[1:], Consumer("pods", "pod", "pod-uid"))
    owned = replace(allocated_to("node-1"), controller="pod-uid", reserved_for=consumers)
    assert isinstance(judge(OWN, owned), Fits)


GROUP = Gang("ns", "group", "PodGroup", 2, uid="group-uid")
MEMBER = replace(OWN, pod_group="group")
GROUPS_CLAIM = replace(claim(), controller="group-uid", pod_group="group")
WITH_GROUPS = cluster(slice_of(devices(1)), profile=REFERENCE.with_gates(workload_resource_claims=True))


@pytest.mark.parametrize(
    ("pod", "claim", "where", "code"),
    [
        (MEMBER, GROUPS_CLAIM, WITH_GROUPS, None),
        (MEMBER, replace(claim(), controller="pod-uid"), WITH_GROUPS, None),
        (MEMBER, GROUPS_CLAIM, None, Code.CLAIM_NOT_OWNED),
        (MEMBER, replace(GROUPS_CLAIM, pod_group="another"), WITH_GROUPS, Code.CLAIM_NOT_OWNED),
        (OWN, GROUPS_CLAIM, WITH_GROUPS, Code.CLAIM_NOT_OWNED),
        (OWN, replace(claim(), controller="another"), WITH_GROUPS, Code.CLAIM_NOT_OWNED),
        (replace(POD, pod_group="gone"), claim(), WITH_GROUPS, Code.POD_GROUP_NOT_FOUND),
        (replace(POD, pod_group="gone"), claim(), None, None),
    ],
    ids=[
        "the group's",
        "the pod's own",
        "without the gate",
        "another group's",
        "a pod without a group",
        "somebody else's",
        "no such group",
        "no such group, without the gate",
    ],
)
def test_a_pod_uses_the_claims_of_its_pod_group(
    pod: Pod, claim: ResourceClaim, where: ClusterDevices | None, code: Code | None
) -> None:
    verdict = judge(pod, claim, where=where, groups=(GROUP,))
    assert codes(verdict) == ([] if code is None else [code])
    assert isinstance(verdict, DoesNotFit if code else Fits)


@pytest.mark.parametrize(
    ("consumer", "where", "fits"),
    [
        (Consumer("podgroups", "group", "group-uid", API_GROUP), WITH_GROUPS, True),
        (Consumer("podgroups", "group", "group-uid", API_GROUP), None, False),
        (Consumer("podgroups", "another", "another-uid", API_GROUP), WITH_GROUPS, False),
        (Consumer("podgroups", "group", "group-uid", "scheduling.x-k8s.io"), WITH_GROUPS, False),
    ],
    ids=["its group", "without the gate", "another group", "another API"],
)
def test_a_full_claim_is_open_to_the_pods_of_a_group_that_has_it(
    consumer: Consumer, where: ClusterDevices | None, fits: bool
) -> None:
    held = replace(allocated_to("node-1"), controller="pod-uid", reserved_for=(*CONSUMERS[1:], consumer))
    verdict = judge(MEMBER, held, where=where, groups=(GROUP,))
    assert codes(verdict) == ([] if fits else [Code.CLAIM_RESERVED_FULL])


def test_an_allocated_claim_pins_the_pod_to_where_it_is() -> None:
    assert judge(POD, allocated_to("node-1")) == Fits()
    elsewhere = judge(POD, allocated_to("node-2"))
    assert isinstance(elsewhere, DoesNotFit)
    assert codes(elsewhere) == [Code.CLAIM_ALLOCATED_ELSEWHERE]


def test_an_allocation_without_node_selector_is_usable_everywhere() -> None:
    everywhere = replace(claim(), allocation=Allocation((AllocatedDevice("r", DRIVER, "pool", "gpu-00"),)))
    assert judge(POD, everywhere) == Fits()


def test_an_error_in_another_claim_wins_over_a_claim_that_is_elsewhere() -> None:
    pod = replace(POD, claims=(PodClaim("a", "claim"), PodClaim("b", "other")))
    verdict = judge(pod, allocated_to("node-2"), claim(request("r", 1, "raises"), name="other"))
    assert isinstance(verdict, Fatal)
    assert codes(verdict) == [Code.SELECTOR_ERROR]


def test_an_allocation_with_an_unreadable_node_selector_is_fatal() -> None:
    term = NodeSelectorTerm((Requirement("zone", "Near", ("a",)),))
    broken = replace(allocated_to("node-1"), allocation=Allocation((), NodeSelector((term,))))
    verdict = judge(POD, broken)
    assert isinstance(verdict, Fatal)
    assert codes(verdict) == [Code.BAD_NODE_SELECTOR]


@pytest.mark.parametrize(
    ("true", "fits"),
    [((), True), (("attached",), True), (("broken",), False)],
    ids=["waiting", "ready", "failed"],
)
def test_binding_conditions_of_an_allocated_claim(true: tuple[str, ...], fits: bool) -> None:
    waiting = allocated_to("node-1", binding_conditions=("attached",), binding_failure_conditions=("broken",))
    conditions = FrozenMap({f"{DRIVER}/pool/gpu-00": true})
    verdict = judge(POD, replace(waiting, device_conditions=conditions))
    assert isinstance(verdict, Fits) is fits
    if not fits:
        assert codes(verdict) == [Code.BINDING_FAILED]


def test_what_only_the_running_node_knows_stays_unknown() -> None:
    where = cluster(slice_of([device("a", {"x": RuntimeOnly("string", "a")})]))
    assert isinstance(judge(POD, claim(request("r", 1, "x=1")), where=where), Unknown)


# Extended resources


def gpus(count: str) -> FrozenMap[str, Quantity]:
    return FrozenMap({"cpu": Quantity.parse("1"), "example.com/gpu": Quantity.parse(count)})


SERVING = replace(ANY, extended_resource_name="example.com/gpu")
LEGACY = Pod("ns", "pod", uid="u", containers=(Container("main", gpus("2")),))


def test_an_extended_resource_becomes_a_claim_of_its_class() -> None:
    verdict = judge(LEGACY, classes=(SERVING,))
    assert isinstance(verdict, Fits)
    (allocation,) = verdict.allocations.values()
    assert [(result.request, result.device) for result in allocation.devices] == [
        ("container-0-request-1", "gpu-00"),
        ("container-0-request-1", "gpu-01"),
    ]


def test_too_few_devices_for_an_extended_resource() -> None:
    verdict = judge(replace(LEGACY, containers=(Container("main", gpus("3")),)), classes=(SERVING,))
    assert isinstance(verdict, DoesNotFit)
    assert codes(verdict) == [Code.TOO_FEW_DEVICES]


def test_a_node_with_a_device_plugin_is_left_to_it() -> None:
    node = replace(NODE, allocatable=FrozenMap({"example.com/gpu": Quantity.parse("1")}))
    assert judge(LEGACY, classes=(SERVING,), node=node) == Fits()


def test_without_the_gate_extended_resources_are_not_served() -> None:
    where = cluster(slice_of(devices(2)), profile=REFERENCE.with_gates(extended_resource=False))
    assert judge(LEGACY, classes=(SERVING,), where=where) == Fits()


def test_init_containers_reuse_what_later_containers_hold() -> None:
    pod = replace(
        LEGACY,
        init_containers=(
            Container("warm", gpus("1")),
            Container("check", gpus("3")),
            Container("side", gpus("1"), sidecar=True),
        ),
        containers=(Container("main", gpus("1")),),
    )
    verdict = judge(pod, classes=(SERVING,), where=cluster(slice_of(devices(4))))
    assert isinstance(verdict, Fits)
    (allocation,) = verdict.allocations.values()
    requests = [result.request for result in allocation.devices]
    # main and side hold one each; "check" needs one more while it runs, "warm" can use theirs.
    assert requests == ["container-1-request-1", "container-2-request-1", "container-3-request-1"]


def test_every_class_serves_its_implicit_name_and_the_newest_the_explicit_one() -> None:
    old, new = DeviceClass("old", (), "x/gpu", created=1.0), DeviceClass("new", (), "x/gpu", created=2.0)
    twin = DeviceClass("a-twin", (), "x/gpu", created=2.0)
    serving = extended_resource_classes([old, new, twin])
    assert serving["x/gpu"] is twin
    assert serving["deviceclass.resource.kubernetes.io/old"] is old
    assert extended_resource_classes([old, new])["x/gpu"] is new


@pytest.mark.parametrize(
    ("created", "contested"),
    [
        ({"a": 1.0, "b": 1.0}, {"b"}),  # which of both appeared first is not known
        ({"a": 1.0, "b": 2.0}, set()),  # a appears first, and loses its explicit name only then
        ({"a": 2.0, "b": 1.0}, {"b"}),  # after a restart a appears first, and b gets no name at all
        ({"a": 1.0, "b": 2.0, "c": 1.0}, {"c"}),
    ],
)
def test_an_implicit_name_is_open_if_a_class_may_have_appeared_after_one_that_beats_it(
    created: dict[str, float], contested: set[str]
) -> None:
    classes = [DeviceClass(name, (), "x/gpu", created=age) for name, age in created.items()]
    assert contested_resources(classes) == {f"deviceclass.resource.kubernetes.io/{name}" for name in contested}
    assert not contested_resources([replace(one, extended_resource_name=f"x/{one.name}") for one in classes])
    assert not contested_resources([replace(one, extended_resource_name=None) for one in classes])
