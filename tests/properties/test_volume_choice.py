"""Claims get the volumes that looking at each of them would find, in clusters of any volumes, claims and nodes."""

from __future__ import annotations

from collections.abc import Collection

from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.pod import Pod
from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeBindingMode
from autoscaler.scheduling.pv_controller import bound_by_controller
from autoscaler.scheduling.volumes import NO_PROVISIONER, KnownVolumes, Volumes, reaches
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import HOSTNAME, ZONE
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity

SIZES = st.sampled_from(["0", "1Gi", "1073741824", "1073741825", "1024Mi", "1.1Gi", "2Gi", "1e30"]).map(Quantity.parse)
MODES = st.sampled_from([(), ("ReadWriteOnce",), ("ReadWriteMany",), ("ReadWriteOnce", "ReadWriteMany")])
CLASSES = st.sampled_from(["", "at-once", "later", "gone"])
HOSTS = ("n0", "n1", "n2")
NODES = tuple(
    Node(name, labels=FrozenMap({HOSTNAME: name, ZONE: zone})) for name, zone in zip(HOSTS, "aab", strict=True)
)
NODES += (Node("bare"),)
REQUIREMENTS = st.one_of(
    st.builds(
        Requirement,
        st.sampled_from([HOSTNAME, ZONE, "disk"]),
        st.sampled_from(["In", "In", "NotIn"]),
        st.lists(st.sampled_from([*HOSTS, "a", "b"]), max_size=2).map(tuple),
    ),
    st.builds(Requirement, st.sampled_from([HOSTNAME, ZONE]), st.sampled_from(["Exists", "DoesNotExist", "Like"])),
)
AFFINITIES = st.none() | st.builds(
    NodeSelector,
    st.lists(
        st.builds(
            NodeSelectorTerm,
            st.lists(REQUIREMENTS, max_size=2).map(tuple),
            st.sampled_from([(), (Requirement("metadata.name", "In", ("n0",)),)]),
        ),
        max_size=2,
    ).map(tuple),
)
LABELS = st.sampled_from([FrozenMap[str, str](), FrozenMap({"disk": "nvme"}), FrozenMap({"disk": "hdd"})])
SELECTORS = st.sampled_from([None, LabelSelector((Requirement("disk", "In", ("nvme",)),))])
NAMES = tuple(f"c{i}" for i in range(6))
KEYS = tuple(f"ns/{name}" for name in NAMES)


@st.composite
def volumes(draw: st.DrawFn) -> Volumes:
    made = [
        PersistentVolume(
            name,
            draw(AFFINITIES),
            labels=draw(LABELS),
            storage_class=draw(CLASSES),
            attributes_class=draw(st.sampled_from(["", "", "fast"])),
            capacity=draw(SIZES),
            access_modes=draw(MODES),
            block=draw(st.sampled_from([False, False, True])),
            claim=draw(st.sampled_from(["", "", "", *KEYS])),
            claim_uid=draw(st.sampled_from(["", "1", "2"])),
            available=draw(st.sampled_from([True, True, False])),
            deleting=draw(st.sampled_from([False, False, False, True])),
        )
        for name in draw(st.lists(st.sampled_from("abcdefghijkl"), unique=True, max_size=12))
    ]
    claims = [
        PersistentVolumeClaim(
            "ns",
            name,
            draw(CLASSES | st.none()),
            volume=draw(st.sampled_from([None, None, None, "a"])),
            access_modes=draw(MODES),
            capacity=draw(SIZES),
            selector=draw(SELECTORS),
            block=draw(st.sampled_from([False, False, True])),
            attributes_class=draw(st.sampled_from(["", "", "fast"])),
            selected_node=draw(st.sampled_from(["", "", "n0"])),
            uid=draw(st.sampled_from(["", "1"])),
        )
        for name in NAMES
    ]
    return Volumes(
        KnownVolumes({volume.name: volume for volume in made}),
        {claim.key: claim for claim in claims},
        {
            "at-once": StorageClass("at-once", provisioner=NO_PROVISIONER),
            "later": StorageClass(
                "later",
                VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER,
                provisioner=NO_PROVISIONER,
                default=draw(st.booleans()),
            ),
        },
    )


def looked_through(
    seen: Collection[PersistentVolume], claim: PersistentVolumeClaim, storage_class: str, taken: Collection[str]
) -> list[PersistentVolume]:
    """The volume reserved for the claim, else all that suit it, by a look at each volume."""
    found = [
        volume
        for volume in seen
        if volume.storage_class == storage_class
        and volume.name not in taken
        and (not volume.claim or (volume.claim == claim.key and volume.claim_uid in ("", claim.uid)))
        and not volume.deleting
        and volume.capacity >= claim.capacity
        and (volume.block, volume.attributes_class) == (claim.block, claim.attributes_class)
    ]
    reserved = next((volume for volume in found if volume.claim), None)
    if reserved is not None:
        return [reserved]
    return [
        volume
        for volume in found
        if volume.available
        and (claim.selector is None or claim.selector.matches(volume.labels))
        and set(claim.access_modes) <= set(volume.access_modes)
    ]


def first_of_the_smallest(
    seen: Collection[PersistentVolume], claim: PersistentVolumeClaim, node: Node, known: Volumes, taken: Collection[str]
) -> PersistentVolume | None:
    storage_class = known.class_of(claim)
    if storage_class is None:
        return None
    suiting = looked_through(seen, claim, storage_class.name, taken)
    return min(
        (volume for volume in suiting if reaches(volume.node_affinity, node)),
        key=lambda volume: volume.capacity,
        default=None,
    )


@settings(max_examples=150, deadline=None)
@given(volumes(), st.sampled_from(KEYS), st.sampled_from(NODES), st.sets(st.sampled_from("abcdefghijkl"), max_size=3))
def test_one_claim(known: Volumes, key: str, node: Node, taken: set[str]) -> None:
    claim, seen = known.claims[key], known.given.by_name.values()
    assert known.free_for(claim, node, taken=taken) == first_of_the_smallest(seen, claim, node, known, taken)
    found = list(known.suiting(claim, claim.storage_class or "", taken=taken))
    expected = looked_through(seen, claim, claim.storage_class or "", taken)
    assert found == sorted(expected, key=lambda volume: volume.capacity)


@settings(max_examples=80, deadline=None)
@given(volumes(), st.lists(st.tuples(st.sampled_from(NODES), st.lists(st.sampled_from(KEYS), max_size=3)), max_size=5))
def test_pods_one_after_the_other(known: Volumes, turns: list[tuple[Node, list[str]]]) -> None:
    seen, bound = dict(known.given.by_name), dict[str, str]()
    for number, (node, keys) in enumerate(turns):
        pod = Pod("ns", f"p{number}", volumes=tuple(key.partition("/")[2] for key in keys))
        unbound = [known.claims[key] for key in keys if known.claims[key].volume is None and key not in bound]
        known = known.after((pod,), node)
        for claim in sorted(unbound, key=lambda claim: claim.capacity):
            volume = None if claim.selected_node else first_of_the_smallest(seen.values(), claim, node, known, ())
            if volume is not None:
                seen[volume.name] = replace(volume, claim=claim.key)
            bound[claim.key] = volume.name if volume is not None else f"new {claim.key}"
    now = {key: found.volume for key in KEYS if (found := known.claim(key)) is not None}
    assert now == {key: bound.get(key, claim.volume) for key, claim in known.claims.items()}
    assert {name: known.volume(name) for name in seen} == seen


@settings(max_examples=80, deadline=None)
@given(volumes())
def test_controller_binds_smallest_volumes(known: Volumes) -> None:
    """Each volume is one of the smallest, at hand, and nobody else's."""
    pairs = bound_by_controller(known)
    named = {claim.volume for claim in known.claims.values() if claim.volume is not None}
    for key, volume in pairs.items():
        claim = known.claims[key]
        expected = looked_through(known.given.by_name.values(), claim, claim.storage_class or "", named)
        assert volume in expected
        assert volume.capacity == min(found.capacity for found in expected)
        assert claim.storage_class != "later"
    assert len({volume.name for volume in pairs.values()}) == len(pairs)
