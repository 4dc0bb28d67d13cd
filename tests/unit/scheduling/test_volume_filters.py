"""Volumes: restrictions, attach limits, zones, and binding of claims that have none yet."""

from __future__ import annotations

from typing import Any

import pytest

from autoscaler.model.labels import LabelSelector
from autoscaler.model.reason import Code
from autoscaler.model.storage import (
    PersistentVolume,
    PersistentVolumeClaim,
    StorageCapacity,
    StorageClass,
    VolumeAttachment,
    VolumeBindingMode,
)
from autoscaler.model.verdict import Fits, Unknown
from autoscaler.scheduling.fit import fit_one
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import REGION, ZONE, ZONE_BETA
from instance_catalog.kubernetes.quantity import Quantity
from tests.unit.scheduling.scene import IN_ZONE_B, bound, codes, node, pod, selector, world

LATER = StorageClass("later", VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER, provisioner="ebs.csi.aws.com")


@pytest.mark.parametrize(
    ("storage", "expected"),
    [
        pytest.param({}, [Code.VOLUME_UNBOUND], id="no claim of that name"),
        pytest.param({"claim": PersistentVolumeClaim("ns", "d", "later")}, [], id="made where the pod lands"),
        pytest.param(
            {"claim": PersistentVolumeClaim("ns", "d", "later"), "class": replace(LATER, topologies=IN_ZONE_B)},
            [Code.VOLUME_ZONE_CONFLICT],
            id="class allows another zone only",
        ),
        pytest.param(
            {
                "claim": PersistentVolumeClaim("ns", "d", "later"),
                "class": replace(LATER, binding_mode=VolumeBindingMode.IMMEDIATE),
            },
            [Code.VOLUME_UNBOUND],
            id="immediate and not bound",
        ),
        pytest.param(
            {"claim": PersistentVolumeClaim("ns", "d", volume="v"), "volume": PersistentVolume("v", IN_ZONE_B)},
            [Code.VOLUME_ZONE_CONFLICT],
            id="bound elsewhere by affinity",
        ),
        pytest.param(
            {
                "claim": PersistentVolumeClaim("ns", "d", volume="v"),
                "volume": PersistentVolume("v", topology=FrozenMap({ZONE: ("b",)})),
            },
            [Code.VOLUME_ZONE_CONFLICT],
            id="bound elsewhere by label",
        ),
    ],
)
def test_volumes(storage: dict[str, Any], expected: list[Code]) -> None:
    claim, volume = storage.get("claim"), storage.get("volume")
    seen = world(
        storage_classes=FrozenMap({"later": storage.get("class", LATER)}),
        volume_claims=FrozenMap({"ns/d": claim} if claim else {}),
        volumes=FrozenMap({"v": volume} if volume else {}),
    )
    assert codes(pod(volumes=("d",)), "n1", seen) == expected


def test_many_volumes_are_unknown_where_no_driver_says_how_many() -> None:
    names = [f"d{i}" for i in range(13)]
    claims = FrozenMap({f"ns/{name}": PersistentVolumeClaim("ns", name, "later") for name in names})
    seen = world(storage_classes=FrozenMap({"later": LATER}), volume_claims=claims)
    assert isinstance(fit_one(pod(volumes=tuple(names)), "n1", seen), Unknown)
    assert isinstance(fit_one(pod(volumes=tuple(names[:12])), "n1", seen), Fits)


EBS = "ebs.csi.aws.com"
A, B, SHARED, IN_TREE = (
    PersistentVolume("a", driver=EBS, handle="vol-a"),
    PersistentVolume("b", driver=EBS, handle="vol-b"),
    PersistentVolume("shared", driver=EBS, handle="vol-a"),
    PersistentVolume("old", in_tree=True),
)


def volumes_of(*volumes: PersistentVolume, access_modes: tuple[str, ...] = ()) -> dict[str, Any]:
    """The volumes, each bound to the claim of its name."""
    claims = (PersistentVolumeClaim("ns", v.name, volume=v.name, access_modes=access_modes) for v in volumes)
    return {
        "volumes": FrozenMap({volume.name: volume for volume in volumes}),
        "volume_claims": FrozenMap({claim.key: claim for claim in claims}),
    }


@pytest.mark.parametrize(
    ("limits", "present", "wanted", "expected"),
    [
        pytest.param({EBS: 1}, (), ("a",), [], id="the last attachment"),
        pytest.param({EBS: 1}, ("b",), ("a",), [Code.VOLUME_LIMIT], id="one too many"),
        pytest.param({EBS: 1}, ("a",), ("shared",), [], id="the same volume again"),
        pytest.param({EBS: 0}, (), ("a",), [Code.VOLUME_LIMIT], id="none at all"),
        pytest.param({"other": 0}, ("b",), ("a",), [], id="a driver without a limit"),
        pytest.param({}, ("b",), ("a",), [], id="a node without limits"),
        pytest.param({EBS: 9}, (), ("old",), [Code.UNSUPPORTED], id="a volume of an old plugin"),
    ],
)
def test_attach_limits(
    limits: dict[str, int], present: tuple[str, ...], wanted: tuple[str, ...], expected: list[Code]
) -> None:
    limited = replace(node(), volume_limits=FrozenMap(limits))
    there = bound("n1", "x", volumes=present)
    seen = world(nodes=(limited,), pods=(there,), **volumes_of(A, B, SHARED, IN_TREE))
    assert codes(pod(volumes=wanted), "n1", seen) == expected


@pytest.mark.parametrize(
    ("attachment", "expected"),
    [
        pytest.param(VolumeAttachment("n1", EBS, "b"), [Code.VOLUME_LIMIT], id="another volume, without a pod"),
        pytest.param(VolumeAttachment("n1", EBS, "c"), [], id="one that a pod uses counts once"),
        pytest.param(VolumeAttachment("n1", EBS, "a"), [Code.VOLUME_LIMIT], id="the pod's own: counted twice upstream"),
        pytest.param(VolumeAttachment("n1", "other", "b"), [], id="another driver's"),
        pytest.param(VolumeAttachment("n2", EBS, "b"), [], id="another node's"),
        pytest.param(VolumeAttachment("n1", EBS, "gone"), [], id="a volume that is gone"),
    ],
)
def test_volumes_that_are_still_attached_count(attachment: VolumeAttachment, expected: list[Code]) -> None:
    limited = replace(node(), volume_limits=FrozenMap({EBS: 2}))
    there = bound("n1", "x", volumes=("c",))
    c = PersistentVolume("c", driver=EBS, handle="vol-c")
    seen = world(nodes=(limited,), pods=(there,), attachments=(attachment,), **volumes_of(A, B, c))
    assert codes(pod(volumes=("a",)), "n1", seen) == expected


TWO_GIB = PersistentVolumeClaim("ns", "d", "later", capacity=Quantity.parse("2Gi"))
ANYWHERE = LabelSelector()


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        pytest.param(("later", ANYWHERE, "2Gi"), [], id="just enough"),
        pytest.param(("later", ANYWHERE, "2047Mi"), [Code.NO_STORAGE], id="too little"),
        pytest.param(("later", ANYWHERE, None), [Code.NO_STORAGE], id="an amount that nobody knows"),
        pytest.param(("other", ANYWHERE, "5Gi"), [Code.NO_STORAGE], id="of another class"),
        pytest.param(("later", selector(**{ZONE: "b"}), "5Gi"), [Code.NO_STORAGE], id="on other nodes"),
        pytest.param(("later", None, "5Gi"), [Code.NO_STORAGE], id="on no node"),
        pytest.param(None, [Code.NO_STORAGE], id="none at all"),
    ],
)
def test_a_driver_that_tracks_its_capacity_must_have_room(
    capacity: tuple[str, LabelSelector | None, str | None] | None, expected: list[Code]
) -> None:
    here = replace(node(), volume_limits=FrozenMap())
    room: tuple[StorageCapacity, ...] = ()
    if capacity is not None:
        name, nodes, largest = capacity
        room = (StorageCapacity(name, nodes, Quantity.parse(largest) if largest else None),)
    storage: dict[str, Any] = {
        "storage_classes": FrozenMap({"later": LATER}),
        "volume_claims": FrozenMap({"ns/d": TWO_GIB}),
        "storage_capacities": room,
    }
    tracked = world(nodes=(here,), capacity_trackers=frozenset({EBS}), **storage)
    assert codes(pod(volumes=("d",)), "n1", tracked) == expected
    assert codes(pod(volumes=("d",)), "n1", world(nodes=(here,), **storage)) == []


def test_room_on_a_node_to_come_is_unknown_where_the_driver_tracks_it() -> None:
    room = StorageCapacity("later", ANYWHERE, Quantity.parse("5Gi"))
    storage: dict[str, Any] = {
        "storage_classes": FrozenMap({"later": LATER}),
        "volume_claims": FrozenMap({"ns/d": TWO_GIB}),
        "capacity_trackers": frozenset({EBS}),
    }
    wanted = pod(volumes=("d",))
    assert isinstance(fit_one(wanted, "n1", world(**storage)), Unknown)
    assert isinstance(fit_one(wanted, "n1", world(**storage, storage_capacities=(room,))), Fits)


def test_a_volume_for_one_pod_is_for_one_pod() -> None:
    storage = volumes_of(A, access_modes=("ReadWriteOncePod",))
    other = bound("n2", "x", volumes=("a",))
    seen = world(nodes=(node(), node("n2")), pods=(other,), **storage)
    assert codes(pod(volumes=("a",)), "n1", seen) == [Code.VOLUME_IN_USE]
    assert codes(pod(volumes=("a",)), "n1", world(pods=(replace(other, namespace="else"),), **storage)) == []


@pytest.mark.parametrize(
    ("topology", "labels", "expected"),
    [
        pytest.param({ZONE: ("a", "b")}, {ZONE: "a"}, [], id="one of its zones"),
        pytest.param({ZONE: ("b",)}, {ZONE: "a"}, [Code.VOLUME_ZONE_CONFLICT], id="another zone"),
        pytest.param({ZONE: ("b",)}, {}, [], id="a node without any topology"),
        pytest.param({ZONE: ("b",)}, {REGION: "r"}, [Code.VOLUME_ZONE_CONFLICT], id="a node with a region only"),
        pytest.param({ZONE_BETA: ("a",)}, {ZONE: "a"}, [], id="the volume's label is old"),
        pytest.param({ZONE: ("a",)}, {ZONE_BETA: "a"}, [Code.VOLUME_ZONE_CONFLICT], id="the node's label is old"),
        pytest.param({REGION: ("r",)}, {ZONE: "a", REGION: "s"}, [Code.VOLUME_ZONE_CONFLICT], id="another region"),
    ],
)
def test_zones_of_volumes(topology: dict[str, tuple[str, ...]], labels: dict[str, str], expected: list[Code]) -> None:
    storage = volumes_of(PersistentVolume("v", topology=FrozenMap(topology)))
    seen = world(nodes=(replace(node(), labels=FrozenMap(labels)),), **storage)
    assert codes(pod(volumes=("v",)), "n1", seen) == expected


LOCAL = StorageClass("local", VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER, provisioner="kubernetes.io/no-provisioner")
FREE = PersistentVolume(
    "free", storage_class="local", capacity=Quantity.parse("2Gi"), access_modes=("ReadWriteOnce",), available=True
)


@pytest.mark.parametrize(
    ("volume", "claim", "expected"),
    [
        pytest.param({}, {}, [], id="it suits"),
        pytest.param({"capacity": Quantity.parse("1Gi")}, {}, [Code.VOLUME_UNBOUND], id="too small"),
        pytest.param({"available": False}, {}, [Code.VOLUME_UNBOUND], id="released"),
        pytest.param({"block": True}, {}, [Code.VOLUME_UNBOUND], id="of another mode"),
        pytest.param({"storage_class": "other"}, {}, [Code.VOLUME_UNBOUND], id="of another class"),
        pytest.param({"claim": "ns/other"}, {}, [Code.VOLUME_UNBOUND], id="meant for another claim"),
        pytest.param(
            {"claim": "ns/d", "claim_uid": "old"}, {}, [Code.VOLUME_UNBOUND], id="left by a claim of its name"
        ),
        pytest.param({"claim": "ns/d", "claim_uid": "u"}, {"uid": "u"}, [], id="meant for this very claim"),
        pytest.param({"claim": "ns/d", "available": False}, {}, [], id="meant for this claim"),
        pytest.param({"node_affinity": IN_ZONE_B}, {}, [Code.VOLUME_UNBOUND], id="elsewhere"),
        pytest.param({}, {"access_modes": ("ReadWriteMany",)}, [Code.VOLUME_UNBOUND], id="of another access mode"),
        pytest.param({}, {"selector": selector(disk="fast")}, [Code.VOLUME_UNBOUND], id="not selected"),
        pytest.param({}, {"selected_node": "n2"}, [Code.VOLUME_ZONE_CONFLICT], id="one is being made elsewhere"),
        pytest.param({}, {"selected_node": "n1"}, [Code.VOLUME_UNBOUND], id="one is being made here, by nobody"),
        pytest.param({}, {"lost": True}, [Code.VOLUME_UNBOUND], id="the claim's volume is lost"),
        pytest.param({}, {"deleting": True}, [Code.VOLUME_UNBOUND], id="the claim is being deleted"),
    ],
)
def test_free_volumes(volume: dict[str, Any], claim: dict[str, Any], expected: list[Code]) -> None:
    wanted = PersistentVolumeClaim("ns", "d", "local", capacity=Quantity.parse("2Gi"), access_modes=("ReadWriteOnce",))
    seen = world(
        storage_classes=FrozenMap({"local": LOCAL}),
        volumes=FrozenMap({"free": replace(FREE, **volume)}),
        volume_claims=FrozenMap({"ns/d": replace(wanted, **claim)}),
    )
    assert codes(pod(volumes=("d",)), "n1", seen) == expected


def test_two_claims_do_not_share_a_free_volume() -> None:
    claims = {f"ns/{name}": PersistentVolumeClaim("ns", name, "local") for name in ("d", "e")}
    seen = world(
        storage_classes=FrozenMap({"local": LOCAL}),
        volumes=FrozenMap({"free": FREE}),
        volume_claims=FrozenMap(claims),
    )
    assert codes(pod(volumes=("d",)), "n1", seen) == []
    assert codes(pod(volumes=("d", "e")), "n1", seen) == [Code.VOLUME_UNBOUND]


def test_pods_that_share_a_claim_go_where_its_volume_will_be_made() -> None:
    claim = PersistentVolumeClaim("ns", "d", "later")
    seen = world(
        nodes=(node(), node("n2"), node("n3", zone="b")),
        storage_classes=FrozenMap({"later": LATER}),
        volume_claims=FrozenMap({"ns/d": claim}),
    )
    after = seen.placed((pod("first", volumes=("d",)),), "n1", Fits())
    found = {name: codes(pod("second", volumes=("d",)), name, after) for name in after.nodes}
    assert found == {"n1": [], "n2": [], "n3": [Code.VOLUME_ZONE_CONFLICT]}


def test_a_free_volume_is_given_once() -> None:
    claims = {f"ns/{name}": PersistentVolumeClaim("ns", name, "local") for name in ("d", "e")}
    seen = world(
        storage_classes=FrozenMap({"local": LOCAL}),
        volumes=FrozenMap({"free": FREE}),
        volume_claims=FrozenMap(claims),
    )
    after = seen.placed((pod("first", volumes=("d",)),), "n1", Fits())
    assert codes(pod("again", volumes=("d",)), "n1", after) == []
    assert codes(pod("second", volumes=("e",)), "n1", after) == [Code.VOLUME_UNBOUND]
