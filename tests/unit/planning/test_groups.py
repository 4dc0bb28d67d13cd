"""Plans of pods that depend on each other, on a prepaid block, or on what other pods can bear."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from autoscaler.model.capacity import Consumers, Limits, Permission, UnknownDurationPolicy
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand import demand
from autoscaler.planning.placement import packing_input
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.kubernetes.taint import Taint, Toleration
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType, Fabric
from tests.builders import (
    LARGE,
    NOW,
    TEAM,
    TPU,
    block,
    claim,
    codes,
    gang,
    gpus,
    joined,
    machine,
    ours,
    pairs,
    places,
    plan,
    pod,
    snapshot,
    types,
    why_left,
)

TOLERATES = (Toleration("foreslice.dev/capacity-block", "Exists"),)
HOLDING = Taint("foreslice.dev/capacity-block", "november")


class TestGangs:
    def test_all_members_are_placed_across_nodes(self) -> None:
        pods, claims = pairs(4, gpus(8), gang="train")
        result = plan(snapshot(pods, claims, gangs=gang("train", 4)))
        assert types(result) == ["l8"] * 4
        assert len(set(places(result).values())) == 4

    def test_running_members_are_counted_for_all_gangs_at_once(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """200 gangs that fit nowhere took half a minute, because each counted the members of all."""
        counted: list[int] = []
        running_members = demand.running_members

        def noted(among: Iterable[Pod]) -> Mapping[str, int]:
            counted.append(1)
            return running_members(among)

        for module in (demand, packing_input):
            monkeypatch.setattr(module, "running_members", noted)
        names = [f"train{number}" for number in range(20)]
        pods, claims = joined(*(pairs(2, gpus(500), prefix=name, gang=name, cpu=f"{name[5:]}1") for name in names))
        gangs = FrozenMap({key: found for name in names for key, found in gang(name, 2).items()})
        result = plan(snapshot(pods, claims, gangs=gangs))
        assert {codes(entry.reasons)[0] for entry in result.left_out} == {Code.GANG_INCOMPLETE}
        assert len(counted) < len(names)

    def test_nothing_is_bought_for_a_gang_that_cannot_be_complete(self) -> None:
        pods, claims = pairs(4, gpus(8), gang="train")
        pool = replace(TEAM, limits=Limits(nodes=3))
        result = plan(snapshot(pods, claims, gangs=gang("train", 4), pools=(pool,)))
        assert (result.launches, result.placements) == ((), ())
        assert why_left(result, "p00")[:2] == [Code.GANG_INCOMPLETE, Code.POOL_LIMIT]

    def test_the_minimum_is_enough(self) -> None:
        pods, claims = pairs(4, gpus(8), gang="train")
        pool = replace(TEAM, limits=Limits(nodes=3))
        result = plan(snapshot(pods, claims, gangs=gang("train", 3), pools=(pool,)))
        assert len(result.placements) == 3

    def test_a_half_placed_gang_gives_its_places_on_coming_nodes_back(self) -> None:
        pods, claims = pairs(2, gpus(4), gang="train")
        others, more = pairs(1, gpus(), prefix="x", priority=-1)
        nothing = replace(TEAM, limits=Limits(nodes=1))
        state = snapshot(
            pods + others, claims + more, gangs=gang("train", 2), pools=(nothing,), provisioned=(ours("coming-1"),)
        )
        result = plan(state)
        assert places(result) == {"x00": "coming-1"}

    def test_members_that_do_not_exist_yet_are_waited_for(self) -> None:
        pods, claims = pairs(2, gpus(), gang="train")
        result = plan(snapshot(pods, claims, gangs=gang("train", 3)))
        assert why_left(result, "p00") == [Code.GANG_INCOMPLETE]
        assert result.launches == ()


class TestTopology:
    """Gangs whose pods must share a node label."""

    CLIQUES = Catalog.of(
        [
            replace(machine("rack2", LARGE, 4, "10"), fabric=Fabric("NVLink", "NVL72", domain_nodes=(2,))),
            replace(machine("rack9", LARGE, 4, "12"), fabric=Fabric("NVLink", "NVL72", domain_nodes=(4, 9))),
            machine("lonely", LARGE, 4, "1"),
        ]
    )

    @pytest.mark.parametrize(
        ("devices", "bought"),
        [
            pytest.param((4, 4), ["l8"], id="together"),
            pytest.param((1, 1), ["l8"], id="not-on-two-small-ones"),
            pytest.param((4, 5), [], id="too-many-for-any"),
        ],
    )
    def test_one_new_node_takes_all_of_them(self, devices: tuple[int, int], bought: list[str]) -> None:
        (first, second), claims = pairs(2, gpus(devices[0]), gang="train")
        claims = [claims[0], replace(claims[1], requests=(gpus(devices[1]),))]
        state = snapshot([first, second], claims, gangs=gang("train", 2, labels.HOSTNAME))
        catalog = Catalog.of([machine("l8", LARGE, 8, "10"), machine("l1", LARGE, 1, "1")])
        result = plan(state, catalog=catalog)
        assert types(result) == bought
        assert len(set(places(result).values())) == len(bought)

    @pytest.mark.parametrize(
        ("members", "bought"),
        [
            pytest.param(2, ["rack2"] * 2, id="small-unit-is-cheaper"),
            pytest.param(3, ["rack9"] * 3, id="too-many-for-the-small-unit"),
            pytest.param(10, [], id="too-many-for-any"),
        ],
    )
    def test_one_nvlink_domain_takes_all_of_them(self, members: int, bought: list[str]) -> None:
        pods, claims = pairs(members, gpus(4), gang="train")
        state = snapshot(pods, claims, gangs=gang("train", members, labels.NVIDIA_GPU_CLIQUE))
        result = plan(state, catalog=self.CLIQUES)
        assert types(result) == bought
        if not bought:
            assert why_left(result, "p00")[:2] == [Code.GANG_INCOMPLETE, Code.GANG_TOPOLOGY]

    def test_the_gang_stays_in_the_zone_of_its_running_members(self) -> None:
        pods, claims = pairs(2, gpus(), gang="train")
        home = Node("n1", labels=FrozenMap({labels.ZONE: "us-east-1b"}))
        pods.append(pod("running", gang="train", node_name="n1", phase="Running"))
        zones = (Requirement(labels.ZONE, "In", ("us-east-1a", "us-east-1b")),)
        pool = replace(TEAM, requirements=zones)
        state = snapshot(pods, claims, gangs=gang("train", 3, labels.ZONE), nodes=(home,), pools=(pool,))
        result = plan(state)
        assert {node.offering.zone for node in result.launches} == {"us-east-1b"}
        assert len(result.placements) == 2

    def test_a_key_that_no_node_has_cannot_be_promised(self) -> None:
        pods, claims = pairs(2, gpus(), gang="train")
        result = plan(snapshot(pods, claims, gangs=gang("train", 2, "example.com/rack")))
        assert result.launches == ()
        assert Code.GANG_TOPOLOGY in why_left(result, "p01")


class TestBlocks:
    def one(self, state: Snapshot) -> str:
        return plan(state).launches[0].offering.capacity_type

    def test_a_job_that_fits_the_hours_left_runs_in_the_block(self) -> None:
        pods, claims = pairs(1, gpus(8), active_deadline_seconds=9 * 3600, tolerations=TOLERATES)
        result = plan(snapshot(pods, claims, blocks=(block(taint=HOLDING),)))
        assert result.launches[0].offering.block == "november"
        assert result.usd_per_hour == 0
        assert codes(result.launches[0].reasons) == [Code.PREPAID]

    def test_a_longer_job_does_not(self) -> None:
        pods, claims = pairs(1, gpus(8), active_deadline_seconds=11 * 3600, tolerations=TOLERATES)
        pool = replace(TEAM, capacity_types=(CapacityType.CAPACITY_BLOCK,))
        result = plan(snapshot(pods, claims, blocks=(block(taint=HOLDING),), pools=(pool,)))
        assert why_left(result, "p00") == [Code.BLOCK_ENDS_TOO_SOON]
        assert result.left_out[0].reasons[0].detail["left"] == 10 * 3600

    @pytest.mark.parametrize(
        ("said", "deadline", "fits"),
        [(9, None, True), (11, None, False), (9, 11, True), (11, 9, True), (11, 12, False)],
    )
    def test_what_a_job_says_counts_as_what_ends_it(self, said: int, deadline: int | None, fits: bool) -> None:
        limit = None if deadline is None else deadline * 3600
        expected = timedelta(hours=said)
        pods, claims = pairs(1, gpus(8), expected_duration=expected, active_deadline_seconds=limit)
        strict = block(unknown_duration=UnknownDurationPolicy.DENY)
        assert self.one(snapshot(pods, claims, blocks=(strict,))) == ("capacity-block" if fits else "on-demand")

    def test_nobody_tolerates_the_taint_for_the_pod(self) -> None:
        pods, claims = pairs(1, gpus(8))
        assert self.one(snapshot(pods, claims, blocks=(block(taint=HOLDING),))) == "on-demand"
        assert self.one(snapshot(pods, claims, blocks=(block(),))) == "capacity-block"

    @pytest.mark.parametrize(
        ("fields", "code"),
        [
            pytest.param(
                {"unknown_duration": UnknownDurationPolicy.DENY}, Code.BLOCK_DURATION_UNKNOWN, id="duration-unknown"
            ),
            pytest.param({"min_remaining": timedelta(hours=11)}, Code.BLOCK_ENDS_TOO_SOON, id="too-little-remains"),
            pytest.param(
                {"consumers": Consumers(pod_selector=LabelSelector((Requirement("team", "Exists"),)))},
                Code.BLOCK_NOT_CONSUMER,
                id="no-consumer",
            ),
            pytest.param({"consumers": Consumers(min_accelerators=9)}, Code.BLOCK_NOT_CONSUMER, id="too-small-a-job"),
            pytest.param({"available": 0}, None, id="nothing-left"),
            pytest.param({"starts_at": NOW + timedelta(hours=1)}, None, id="not-open-yet"),
        ],
    )
    def test_a_block_that_does_not_take_the_pod(self, fields: dict[str, Any], code: Code | None) -> None:
        state = snapshot(*pairs(1, gpus(8)), blocks=(block(**fields),))
        assert self.one(state) == "on-demand"
        (demand,) = plan(state).demands
        given = [c for entry in demand.considered if entry.offering.block for c in codes(entry.reasons)]
        assert given == ([code] if code else [])

    def test_a_block_of_an_unknown_type_is_reported(self) -> None:
        (warning,) = plan(snapshot([], blocks=(block(instance_type="l7"),))).warnings
        assert (warning.code, str(warning.subject)) == (Code.UNUSABLE, "block november")
        assert warning.detail["field"] == "spec.instanceType"

    def test_a_full_block_overflows_only_where_the_pool_allows(self) -> None:
        state = snapshot(*pairs(3, gpus(8)), blocks=(block(pool="team"),))
        strict = plan(replace(state, pools=(TEAM,)))
        assert [n.offering.capacity_type for n in strict.launches] == ["capacity-block"] * 2
        assert why_left(strict, "p02") == [Code.BLOCK_FULL, Code.OVERFLOW_NEVER]
        loose = plan(replace(state, pools=(replace(TEAM, overflow=Permission.ALLOW),)))
        assert sorted(n.offering.capacity_type for n in loose.launches) == ["capacity-block"] * 2 + ["on-demand"]


class TestOtherPods:
    def test_devices_that_would_make_another_pods_selector_fail_are_not_bought(self) -> None:
        """TPUs have no attribute `type`: reading it is an error, and kube-scheduler gives the whole pod up."""
        classes = (DeviceClass("tpu", (Selector("device.driver == 'tpu.google.com'"),)), DeviceClass("anything"))
        careless = DeviceRequest("any", "anything", (Selector("device.attributes[device.driver].type == 'gpu'"),))
        catalog = Catalog.of([machine("t1", TPU, 1, "1", cloud="gcp"), machine("l1", LARGE, 1, "5")])
        pods, claims = pairs(1, DeviceRequest("any", "tpu"))
        assert types(plan(snapshot(pods, claims, classes=classes), catalog=catalog)) == ["t1"]
        careful = snapshot([*pods, pod("picky", "c")], [*claims, claim("c", careless)], classes=classes)
        result = plan(careful, catalog=catalog)
        assert types(result) == ["l1"]
        assert why_left(result, "p00") == [Code.BREAKS_OTHER_POD]
        assert result.left_out[0].reasons[0].detail["pod"] == "default/picky"

    def test_a_pod_that_present_nodes_break_already_protects_nobody(self) -> None:
        """The careless pod is stuck because of a TPU node that is there; one more changes nothing for it."""
        careless = DeviceRequest("any", "anything", (Selector("device.attributes[device.driver].type == 'gpu'"),))
        classes = (DeviceClass("tpu", (Selector("device.driver == 'tpu.google.com'"),)), DeviceClass("anything"))
        catalog = Catalog.of([machine("t1", TPU, 1, "1", cloud="gcp"), machine("l1", LARGE, 1, "5")])
        there = ours("there", offering=OfferingRef("t1", "any", CapacityType.ON_DEMAND, Decimal("1")), drivers=("tpu",))
        pods, claims = pairs(2, DeviceRequest("any", "tpu"))
        state = snapshot(
            [*pods, pod("picky", "c", priority=1)],
            [*claims, claim("c", careless)],
            classes=classes,
            provisioned=(there,),
        )
        result = plan(state, catalog=catalog)
        assert types(result) == ["t1"]
        assert places(result)["p00"] == "there"
        assert [(entry.pod, entry.verdict) for entry in result.left_out] == [("default/picky", "fatal")]

    def test_a_pod_that_fails_on_every_node_protects_nobody(self) -> None:
        broken = DeviceRequest("any", "gpu.nvidia.com", (Selector("device.attributes['nope'].x == 1"),))
        pods, claims = pairs(1, gpus())
        result = plan(snapshot([*pods, pod("broken", "c")], [*claims, claim("c", broken)]))
        assert types(result) == ["s1"]
        assert result.left_out[0].verdict == "fatal"
        assert why_left(result, "broken") == [Code.SELECTOR_ERROR]

    def test_anti_affinity_over_zones_buys_in_different_zones(self) -> None:
        term = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("x",)),)), labels.ZONE, ("default",))
        pods, claims = pairs(3, gpus(), labels=FrozenMap({"app": "x"}), pod_anti_affinity=(term,))
        pool = replace(TEAM, requirements=(Requirement(labels.ZONE, "In", ("us-east-1a", "us-east-1b")),))
        result = plan(snapshot(pods, claims, pools=(pool,)))
        assert sorted(node.offering.zone for node in result.launches) == ["us-east-1a", "us-east-1b"]
        assert [entry.pod for entry in result.left_out] == ["default/p02"]
        assert why_left(result, "p02")[0] is Code.POD_ANTI_AFFINITY

    def test_anti_affinity_between_equal_pods_spreads_them(self) -> None:
        term = PodAffinityTerm(LabelSelector((Requirement("app", "In", ("x",)),)), labels.HOSTNAME, ("default",))
        pods, claims = pairs(4, gpus(), labels=FrozenMap({"app": "x"}), pod_anti_affinity=(term,))
        result = plan(snapshot(pods, claims))
        assert types(result) == ["s1"] * 4
        assert len(set(places(result).values())) == 4
