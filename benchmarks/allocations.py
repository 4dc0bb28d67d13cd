"""Allocation on one node: everyday questions against Kubernetes' structured allocator, and searches that explode there.

The time of a question starts at objects that were read already, on both sides, and compiled selectors are at hand.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from autoscaler.dra.allocation.allocator import (
    Allocated,
    AllocatedState,
    AllocationOutcome,
    ClusterDevices,
    NotAllocated,
    allocate,
)
from autoscaler.dra.inventory.cel_selectors import CelSelectors
from autoscaler.kube.device_class import parse_device_class
from autoscaler.kube.node import parse_node
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.node import Node
from autoscaler.model.resource_claim import ResourceClaim
from benchmarks.machines import GPU, NODE, slices_of
from benchmarks.timing import Row, best_median
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from tests.oracle.comparing import allocations
from tests.oracle.upstream import Json, Release, Upstream

TARGET = 20_000.0  # microseconds for an adversarial question
_REPEAT = 300
_NOTHING_ALLOCATED = AllocatedState()
_MEMORY = f'device.capacity["{GPU}"].memory.compareTo(quantity("40Gi")) >= 0'
_HOPPER = f'device.attributes["{GPU}"].architecture == "Hopper"'
_NEVER = f'device.attributes["{GPU}"].architecture == "Volta"'
_CLASS = f'device.driver == "{GPU}" && device.attributes["{GPU}"].type == "gpu"'


def _claim(*requests: tuple[int, str], name: str = "a", match: str = "") -> Json:
    """Requests are (count, selector or "")."""
    asked = [_request(index, count, selector) for index, (count, selector) in enumerate(requests)]
    devices: Json = {"requests": asked}
    if match:
        devices["constraints"] = [{"matchAttribute": match}]
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": devices}}


def _request(index: int, count: int, selector: str) -> Json:
    exactly: Json = {"deviceClassName": GPU, "allocationMode": "ExactCount", "count": count}
    if selector:
        exactly["selectors"] = [{"cel": {"expression": selector}}]
    return {"name": f"r{index}", "exactly": exactly}


EVERYDAY: Mapping[str, Sequence[Json]] = {
    "1 GPU": [_claim((1, ""))],
    "1 GPU with a selector": [_claim((1, _MEMORY))],
    "8 GPUs": [_claim((8, ""))],
    "8 GPUs with a selector": [_claim((8, _MEMORY))],
    "2 requests, 3 GPUs": [_claim((1, _MEMORY), (2, _HOPPER))],
    "4 requests, 5 GPUs": [_claim((1, _MEMORY), (1, _HOPPER), (1, ""), (2, _MEMORY))],
    "4 requests of one product": [_claim((1, _MEMORY), (1, _HOPPER), (1, ""), (1, ""), match=f"{GPU}/productName")],
    "2 claims, 3 GPUs": [_claim((1, _MEMORY)), _claim((2, _HOPPER), name="b")],
    "9 of 8 GPUs": [_claim((9, ""))],
}


def _adversarial() -> Mapping[str, tuple[Sequence[Json], Sequence[Json]]]:
    """Devices of a node, and what is asked."""
    whole = {
        f"{half} of {2 * half}, then none of the rest": (2 * half, [_claim((half, "")), _claim((1, _NEVER), name="b")])
        for half in (8, 16, 32)
    }
    whole |= {
        "5 of 4": (4, [_claim((5, ""))]),
        "33 of 32 over two claims": (32, [_claim((17, "")), _claim((16, ""), name="b")]),
        "33 of 32 in nine requests": (32, [_claim(*[(4, "")] * 8), _claim((1, ""), name="b")]),
        "65 of 64, of one product": (
            64,
            [_claim((32, ""), match=f"{GPU}/productName"), _claim((32, ""), name="b"), _claim((1, ""), name="c")],
        ),
    }
    return {name: (_equal_gpus(count), claims) for name, (count, claims) in whole.items()}


@dataclass(frozen=True, slots=True)
class _Question:
    """The objects of a case as the simulator knows them."""

    claims: list[ResourceClaim]
    node: Node
    slices: list[ResourceSlice]
    classes: list[DeviceClass]
    engine: CelSelectors
    profile: KubernetesProfile

    @staticmethod
    def read(raw: Json, release: Release) -> _Question:
        """Read a case."""
        problems = Problems()
        read = _Question(
            claims=[parse_resource_claim(claim, problems) for claim in raw["claims"]],
            node=parse_node(raw["node"], problems),
            slices=[parse_resource_slice(piece, problems) for piece in raw["slices"]],
            classes=[parse_device_class(one, problems) for one in raw["classes"]],
            engine=CelSelectors(release.profile),
            profile=release.profile,
        )
        assert not problems.errors, problems
        return read

    def devices(self) -> ClusterDevices:
        """A cluster of which nothing is remembered but compiled selectors, as upstream's cache has them."""
        return ClusterDevices.of(self.slices, self.classes, (), self.profile, engine=self.engine)

    def outcome(self, devices: ClusterDevices) -> AllocationOutcome:
        """Ask."""
        return allocate(self.claims, node=self.node, devices=devices, allocated=_NOTHING_ALLOCATED)

    def first_time(self) -> float:
        """Microseconds where nothing is known yet, the setting up of the node included."""
        return best_median(lambda: self.outcome(self.devices()), batch=10)

    def time_again(self) -> float:
        """Microseconds where the same was asked before."""
        known = self.devices()
        return best_median(lambda: self.outcome(known), batch=200)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Both sides' times of one question: asked for the first time, and again."""

    first: Row
    again: Row


def compared(upstream: Upstream, release: Release) -> Iterator[Comparison]:
    """Everyday questions on a p5.48xlarge. Raises AssertionError if the two sides disagree: then times mean nothing."""
    slices = slices_of("p5.48xlarge", "nvidia")
    for name, claims in EVERYDAY.items():
        raw = _raw(slices, claims)
        upstream.ask({**allocations.question(raw, release), "seconds": 10, "repeat": _REPEAT})
        answer = upstream.answer()
        assert allocations.difference(allocations.simulated(raw, release).answer, answer) is None, name
        theirs = answer["nanoseconds"] / 1000
        question = _Question.read(raw, release)
        yield Comparison(
            Row(name, question.first_time(), theirs, answer["outcome"]), Row(name, question.time_again(), theirs)
        )


def adversarial(release: Release) -> Iterator[Row]:
    """The searches that upstream spends its ten seconds on."""
    for name, (slices, claims) in _adversarial().items():
        question = _Question.read(_raw(slices, claims), release)
        outcome = question.outcome(question.devices())
        taken = question.first_time()
        mark = "" if taken <= TARGET else "  above target"
        yield Row(name, taken, note=f"{_told(outcome)}{mark}")


def _told(outcome: AllocationOutcome) -> str:
    match outcome:
        case Allocated():
            return f"fits, {outcome.steps} steps"
        case NotAllocated():
            return f"does not fit, {outcome.steps} steps"
    return "no answer"


def _equal_gpus(count: int) -> list[Json]:
    (piece,) = slices_of("p5.48xlarge", "nvidia")
    device = piece["spec"]["devices"][0]
    devices = [{**device, "name": f"gpu-{index}"} for index in range(count)]
    return [{**piece, "spec": {**piece["spec"], "devices": devices}}]


def _raw(slices: Sequence[Json], claims: Sequence[Json]) -> Json:
    device_class = {"metadata": {"name": GPU}, "spec": {"selectors": [{"cel": {"expression": _CLASS}}]}}
    labels = {"kubernetes.io/hostname": NODE}
    return {
        "node": {"metadata": {"name": NODE, "labels": labels}},
        "classes": [device_class],
        "slices": list(slices),
        "claims": list(claims),
        "held": [],
    }
