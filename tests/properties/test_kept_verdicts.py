"""What is kept of nodes from one plan to the next is what they would say again, whatever changed in between."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from autoscaler.model.device_class import Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod, PodAffinityTerm, Toleration
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.placement import existing
from autoscaler.planning.placement.kept_verdicts import AboutNodes, KeptVerdicts
from autoscaler.scheduling import node_state
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from tests.builders import claim, gpus, plan, pod, snapshot
from tests.e2e.harness.machines import machine

LARGE = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("30Gi")) >= 0'
EMPTY = Catalog.of([])


class Life:
    """A cluster that changes from plan to plan; what does not change stays the same object, as with a watch."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        kinds = ["g6.xlarge", "g6.12xlarge", "g5.xlarge", "g5.12xlarge"]
        made = [machine(draw.choice(kinds), f"n{number}") for number in range(4)]
        self.nodes: dict[str, Node] = {entry.node.name: entry.node for entry in made}
        self.slices: list[ResourceSlice] = [piece for entry in made for piece in entry.slices]
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, ResourceClaim] = {}
        self.made = 0

    def snapshot(self) -> Snapshot:
        pods = tuple(self.pods[key] for key in sorted(self.pods))
        nodes, slices = tuple(self.nodes.values()), tuple(self.slices)
        return snapshot(pods, self.claims.values(), nodes=nodes, slices=slices)

    def come(self) -> None:
        name = f"p{self.made}"
        self.made += 1
        request = replace(gpus(self.draw.choice((1, 1, 2, 4))), selectors=self.draw.choice(((), (Selector(LARGE),))))
        self.claims[f"default/{name}"] = claim(name, request)
        fields = self.draw.choice(({}, {}, {"tolerations": (Toleration(operator="Exists"),)}))
        self.pods[name] = pod(name, name, cpu=self.draw.choice(("1", "3", "20")), **fields)

    def follow(self, found: Plan) -> None:
        """Some of the pods are bound where the plan says."""
        for placement in found.placements:
            name = placement.pod.removeprefix("default/")
            if self.draw.random() < 0.8:
                self.pods[name] = replace(self.pods[name], node_name=placement.node, phase="Running")
                key = f"default/{name}"
                consumer = Consumer("pods", name, f"uid-{name}")
                self.claims[key] = replace(
                    self.claims[key], allocation=placement.allocations[key], reserved_for=(consumer,)
                )

    def change(self) -> None:
        name = self.draw.choice(sorted(self.nodes))
        for key, found in self.pods.items():
            if found.pod_anti_affinity:
                self.pods[key] = replace(found, pod_anti_affinity=())
        match self.draw.randrange(7):
            case 0:
                taint = Taint("team", "a", "NoSchedule")
                node = self.nodes[name]
                self.nodes[name] = replace(node, taints=() if node.taints else (taint,))
            case 1:
                self.nodes[name] = replace(self.nodes[name], unschedulable=not self.nodes[name].unschedulable)
            case 2:
                self.slices = [_without_a_device(s) if s.reach.node_name == name else s for s in self.slices]
            case 3:  # devices are in use by something of which no pod is known
                key = f"default/held-{self.made}"
                self.made += 1
                piece = next(s for s in self.slices if s.reach.node_name == name)
                if piece.devices:
                    result = AllocatedDevice("gpu", piece.driver, piece.pool.name, piece.devices[0].name)
                    held = claim(key.removeprefix("default/"), gpus())
                    self.claims[key] = replace(held, allocation=Allocation((result,)))
            case 4:
                term = PodAffinityTerm(LabelSelector(), "kubernetes.io/hostname", ("default",))
                bound = [key for key in sorted(self.pods) if self.pods[key].node_name]
                if bound:
                    key = self.draw.choice(bound)
                    self.pods[key] = replace(self.pods[key], pod_anti_affinity=(term,))
            case _:
                bound = [key for key in sorted(self.pods) if self.pods[key].node_name]
                if bound:
                    key = self.draw.choice(bound)
                    del self.pods[key], self.claims[f"default/{key}"]


def _without_a_device(piece: ResourceSlice) -> ResourceSlice:
    return replace(piece, devices=piece.devices[1:])


@pytest.mark.parametrize("seed", range(12))
def test_what_is_kept_is_what_nodes_would_say_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    life, kept, told = Life(Random(seed)), KeptVerdicts(), 0
    monkeypatch.setattr(node_state, "_last", {})
    of = AboutNodes.of

    def counted(self: AboutNodes, name: str, world: object) -> int | None:
        nonlocal told
        found = of(self, name, world)  # type: ignore[arg-type]
        told += found is not None and existing._KEPT is kept
        return found

    monkeypatch.setattr(AboutNodes, "of", counted)
    for _ in range(20):
        life.come()
        state = life.snapshot()
        monkeypatch.setattr(existing, "_KEPT", kept)
        found = plan(state, catalog=EMPTY)
        monkeypatch.setattr(existing, "_KEPT", KeptVerdicts())
        assert found == plan(state, catalog=EMPTY)
        life.follow(found)
        life.change()
        life.change()
    assert told > 20


THERE = machine("g6.xlarge", "there")
ZONED = replace(THERE.node, labels=THERE.node.labels.with_items({labels.ZONE: "a"}))
BESIDE = Node("beside", labels=FrozenMap({labels.ZONE: "a"}), unschedulable=True)
WAITS = snapshot([pod("p", "c")], [claim("c")], nodes=(ZONED, BESIDE), slices=THERE.slices)


def _held() -> Snapshot:
    """A claim of which no pod is known holds the only device."""
    (piece,) = [piece for piece in THERE.slices if piece.driver == "gpu.nvidia.com" and piece.devices]
    taken = AllocatedDevice("gpu", piece.driver, piece.pool.name, piece.devices[0].name)
    held = replace(claim("held"), allocation=Allocation((taken,)))
    return replace(WAITS, claims=WAITS.claims.with_items({held.key: held}))


def _repelled() -> Snapshot:
    """A pod beside keeps others out of the zone."""
    term = PodAffinityTerm(LabelSelector(), labels.ZONE, ("default",))
    guard = pod("guard", pod_anti_affinity=(term,), node_name="beside", phase="Running")
    return replace(WAITS, pods=(guard, *WAITS.pods))


def _tainted() -> Snapshot:
    tainted = replace(ZONED, taints=(Taint("team", "a", "NoSchedule"),))
    return replace(WAITS, nodes=(tainted, BESIDE))


REFUSING = {
    "no slice": replace(WAITS, slices=()),
    "device in use": _held(),
    "repelled": _repelled(),
    "tainted": _tainted(),
}


@pytest.mark.parametrize("before", REFUSING.values(), ids=REFUSING.keys())
def test_a_node_that_refused_takes_the_pod_when_the_reason_is_gone(
    before: Snapshot, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(existing, "_KEPT", KeptVerdicts())
    assert not plan(before, catalog=EMPTY).placements
    assert [found.node for found in plan(WAITS, catalog=EMPTY).placements] == ["there"]
    assert not plan(before, catalog=EMPTY).placements
