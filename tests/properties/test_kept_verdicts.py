"""What is kept of nodes from one plan to the next is what they would say again, whatever changed in between."""

from __future__ import annotations

from random import Random

import pytest

from autoscaler.dra.inventory.devices import NodeMemory, node_memory
from autoscaler.model.device_class import DeviceTaintRule, Selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.node import Node
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod, PodAffinityTerm, Toleration
from autoscaler.model.resource_claim import AllocatedDevice, Allocation, Consumer, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.memory import PlanMemory
from autoscaler.planning.placement.kept_verdicts import AboutNodes
from autoscaler.scheduling import world
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from tests.builders import claim, gpus, plan, pod, snapshot
from tests.e2e.harness.machines import machine

LARGE = 'device.capacity["gpu.nvidia.com"].memory.compareTo(quantity("30Gi")) >= 0'
KINDS = ["g6.xlarge", "g6.12xlarge", "g5.xlarge", "g5.12xlarge"]
TEAM = {"team": "a"}
RULED = REFERENCE.with_gates(device_taint_rules=True)
EMPTY = Catalog.of([])


class Life:
    """A cluster that changes from plan to plan; what does not change stays the same object, as with a watch."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self.nodes: dict[str, Node] = {}
        self.slices: list[ResourceSlice] = []
        for number in range(4):
            self.add(draw.choice(KINDS), f"n{number}")
        self.pods: dict[str, Pod] = {}
        self.claims: dict[str, ResourceClaim] = {}
        self.rules: tuple[DeviceTaintRule, ...] = ()
        self.made = 0

    def add(self, kind: str, name: str) -> None:
        made = machine(kind, name)
        self.nodes[name] = made.node
        self.slices += made.slices

    def snapshot(self) -> Snapshot:
        pods = tuple(self.pods[key] for key in sorted(self.pods))
        nodes, slices = tuple(self.nodes.values()), tuple(self.slices)
        return snapshot(pods, self.claims.values(), nodes=nodes, slices=slices, taint_rules=self.rules, profile=RULED)

    def come(self) -> None:
        name = f"p{self.made}"
        self.made += 1
        request = replace(gpus(self.draw.choice((1, 1, 2, 4))), selectors=self.draw.choice(((), (Selector(LARGE),))))
        self.claims[f"default/{name}"] = claim(name, request)
        tolerant, steered = {"tolerations": (Toleration(operator="Exists"),)}, {"node_selector": FrozenMap(TEAM)}
        fields = self.draw.choice(({}, {}, {}, tolerant, steered))
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
        match self.draw.randrange(12):
            case 0:
                taint = Taint("team", "a", "NoSchedule")
                node = self.nodes[name]
                self.nodes[name] = replace(node, taints=() if node.taints else (taint,))
            case 1:
                node = self.nodes[name]
                other = {"team": "b"} if node.labels.get("team") == "a" else TEAM
                switched = {"unschedulable": not node.unschedulable}, {"labels": node.labels.with_items(other)}
                self.nodes[name] = replace(node, **self.draw.choice(switched))
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
            case 5:  # a pod of a DaemonSet comes, which takes CPU
                key = f"daemon-{self.made}"
                self.made += 1
                fields = {"owner": "DaemonSet/agent", "node_name": name, "phase": "Running"}
                self.pods[key] = pod(key, cpu="1", **fields)
            case 6:  # a node goes, another one comes, perhaps under the same name
                self.slices = [piece for piece in self.slices if piece.reach.node_name != name]
                again = self.draw.choice((name, f"n{self.made}"))
                self.made += 1
                del self.nodes[name]
                self.pods = {key: found for key, found in self.pods.items() if found.node_name != name}
                self.add(self.draw.choice(KINDS), again)
            case 7:
                taint = Taint("broken", "", "NoSchedule")
                self.rules = () if self.rules else (DeviceTaintRule("rule", taint, pool=name),)
            case 8:  # the cluster is read again from the start: equal objects, but others
                self.nodes = {key: replace(node) for key, node in self.nodes.items()}
                self.slices = [replace(piece) for piece in self.slices]
            case _:
                bound = [key for key in sorted(self.pods) if self.pods[key].node_name]
                if bound:
                    key = self.draw.choice(bound)
                    del self.pods[key]
                    self.claims.pop(f"default/{key}", None)


def _without_a_device(piece: ResourceSlice) -> ResourceSlice:
    return replace(piece, devices=piece.devices[1:])


@pytest.mark.parametrize("seed", range(10))
def test_what_is_kept_is_what_nodes_would_say_again(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    life, memory, told = Life(Random(seed)), PlanMemory(), 0
    of = AboutNodes.of

    def counted(self: AboutNodes, name: str, world: World) -> int | None:
        nonlocal told
        found = of(self, name, world)
        told += found is not None
        return found

    monkeypatch.setattr(AboutNodes, "of", counted)
    compared = 0
    for _ in range(24):
        life.come()
        state = life.snapshot()
        found = plan(state, catalog=EMPTY, memory=memory)
        before = told
        assert found == _fresh(state, monkeypatch)
        told = before
        compared += len(found.placements) + len(found.left_out)
        life.follow(found)
        life.change()
        life.change()
    assert told > 20
    assert compared > 40


def _fresh(state: Snapshot, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """The plan of a process that has just begun."""
    engine = node_memory(state.profile).engine
    with monkeypatch.context() as patch:
        patch.setattr(world, "node_memory", lambda _: NodeMemory(engine))
        return plan(state, catalog=EMPTY)


def test_of_nodes_that_are_gone_nothing_is_kept() -> None:
    memory = PlanMemory()
    plan(WAITS, catalog=EMPTY, memory=memory)
    assert len(memory.verdicts) > 0
    assert len(memory.world.states) == 2
    plan(replace(WAITS, nodes=(), slices=()), catalog=EMPTY, memory=memory)
    assert len(memory.verdicts) == len(memory.world.states) == len(memory.world.slices) == 0


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
def test_a_node_that_refused_takes_the_pod_when_the_reason_is_gone(before: Snapshot) -> None:
    memory = PlanMemory()
    assert not plan(before, catalog=EMPTY, memory=memory).placements
    assert [found.node for found in plan(WAITS, catalog=EMPTY, memory=memory).placements] == ["there"]
    assert not plan(before, catalog=EMPTY, memory=memory).placements
