"""Clusters have local volumes by the thousand: a claim looks at those of its size and node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

import pytest

from autoscaler.model.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeBindingMode
from autoscaler.scheduling import volumes as storage
from autoscaler.scheduling.pv_controller import bound_by_controller
from autoscaler.scheduling.volumes import NO_PROVISIONER, KnownVolumes, Volumes
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import ZONE
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.quantity import Quantity
from tests.unit.scheduling.scene import HOST, node, pod

V = TypeVar("V")
SIZE = Quantity.parse("100Gi")
LOCAL = StorageClass("local", VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER, provisioner=NO_PROVISIONER)
MOST = 10  # volumes that one claim looks at on one node


class Counted(dict[str, V]):
    """A mapping that counts how often all of it is read."""

    reads = 0

    def values(self):  # type: ignore[no-untyped-def]  # the views of dict have no public type
        self.reads += 1
        return super().values()

    items = keys = __iter__ = None  # type: ignore[assignment]  # so that no copy is made unseen


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the volumes that were compared with a claim."""
    seen: list[str] = []
    compare = storage._suits

    def suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        seen.append(volume.name)
        return compare(volume, claim)

    monkeypatch.setattr(storage, "_suits", suits)
    return seen


def on(host: str) -> NodeSelector:
    """The zone stands first: all volumes have it, so it is no way to find the few of a node."""
    here = (Requirement(ZONE, "In", ("a",)), Requirement(HOST, "In", (host,)))
    return NodeSelector((NodeSelectorTerm(here),))


def local(name: str, host: str | None, *, gib: int = 100) -> PersistentVolume:
    size = Quantity.parse(f"{gib}Gi")
    affinity = on(host) if host is not None else None
    return PersistentVolume(name, affinity, storage_class="local", capacity=size, available=True)


def known(made: Mapping[str, PersistentVolume], claims: int, storage_class: str | None = "local") -> Volumes:
    wanted = (PersistentVolumeClaim("ns", f"c{i}", storage_class, capacity=SIZE) for i in range(claims))
    return Volumes(KnownVolumes(made), {claim.key: claim for claim in wanted}, {"local": LOCAL})


@pytest.mark.parametrize("equal", [True, False])
def test_claim_looks_at_volumes_of_its_node(looks: list[str], *, equal: bool) -> None:
    made = Counted({f"v{i}": local(f"v{i}", f"n{i // 8}", gib=100 if equal else 50 + i % 100) for i in range(1600)})
    seen = known(made, 50)
    for i in range(50):
        for host in range(200):
            looks.clear()
            seen.free_for(seen.claims[f"ns/c{i}"], node(f"n{host}"))
            assert len(looks) <= MOST
        seen = seen.after((pod(volumes=(f"c{i}",)),), node(f"n{i}"))
    assert len(seen.bound_claims) == 50
    assert made.reads <= 2


def test_claim_takes_the_first_that_any_node_reaches(looks: list[str]) -> None:
    seen = known({f"v{i}": local(f"v{i}", None, gib=1 + i) for i in range(1000)}, 1)
    found = seen.free_for(seen.claims["ns/c0"], node())
    assert found is not None
    assert found.capacity == SIZE
    assert len(looks) == 1


def test_controller_looks_once_for_claims_alike(looks: list[str]) -> None:
    """One kind of claim, as of a StatefulSet, and volumes of a class that waits for no pod."""
    made = {f"v{i}": PersistentVolume(f"v{i}", storage_class="", capacity=SIZE, available=True) for i in range(300)}
    assert len(bound_by_controller(known(made, 200, ""))) == 200
    assert len(looks) == 300


def test_controller_leaves_claims_that_wait_for_pods(looks: list[str]) -> None:
    made = {f"v{i}": local(f"v{i}", "n1") for i in range(300)}
    assert not bound_by_controller(known(made, 200))
    assert not looks


def test_volumes_are_read_when_a_claim_looks_for_one() -> None:
    """A reconcile without pending pods costs nothing for each volume."""
    made = Counted({f"v{i}": local(f"v{i}", "n1") for i in range(10)})
    seen = known(made, 1).after((pod(), pod(volumes=("other",))), node())
    assert seen.volume("v3") == made["v3"]
    assert made.reads == 0


def test_volume_bound_by_a_simulated_pod_is_its_claims() -> None:
    seen = known({"v": local("v", None)}, 2)
    later = seen.after((pod(volumes=("c0", "c0")),), node())
    assert (found := later.volume("v")) is not None
    assert found.claim == "ns/c0"
    assert later.free_for(later.claims["ns/c1"], node()) is None
    assert seen.free_for(seen.claims["ns/c1"], node()) is not None
    assert FrozenMap(later.bound_claims).keys() == {"ns/c0"}
