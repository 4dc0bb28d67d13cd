"""Random pods on nodes of catalog types: the simulator gives each the kube-scheduler's verdict and devices."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import pytest

from autoscaler.kube.pod import parse_pod
from autoscaler.kube.resource_claim import parse_resource_claim
from autoscaler.kube.writing.objects import write_claim
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.verdict import DoesNotFit, Fatal, Fits, Verdict
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.kubernetes.labels import HOSTNAME
from instance_catalog.kubernetes.profile import REFERENCE
from instance_catalog.kubernetes.resource_slice import Device
from tests.e2e.harness.cluster import Cluster, Devices
from tests.e2e.harness.control_plane import ControlPlane, Json
from tests.e2e.harness.machines import Machine, machine

# None of these comes near the limits of a search: 10 s in the scheduler, a number of steps in the simulator. Beyond
# them both say no, but not with the same words.
SEEDS: Final = (1, 2, 3, 4)
PODS_PER_SEED: Final = 25
TYPES: Final = ("p5.48xlarge", "p4d.24xlarge", "g6.12xlarge", "p6e-gb200.36xlarge", "ct6e-standard-4t", "trn1.32xlarge")
REASONS: Final = {"Unschedulable": DoesNotFit, "SchedulerError": Fatal}
OF: Final = 'device.attributes["gpu.nvidia.com"]'
MEMORY: Final = 'device.capacity["gpu.nvidia.com"].memory'
CLASSES: Final = {
    "tpu.google.com": "tpu.google.com",
    "neuron.aws.com": "neuron.aws.com",
    "dra.net": "efa.networking.k8s.aws",
    "compute-domain.nvidia.com": "compute-domain-default-channel.nvidia.com",
}


# kube-scheduler would place a claim for a channel without a ComputeDomain, which the driver refuses.
OF_A_DOMAIN: Final[Json] = {
    "opaque": {
        "driver": "compute-domain.nvidia.com",
        "parameters": {
            "apiVersion": "resource.nvidia.com/v1beta1",
            "kind": "ComputeDomainChannelConfig",
            "domainID": "one",
        },
    }
}


def selectors(random: Random, device: Device) -> list[str]:
    """Selectors over what a GPU or a part of one publishes; most of them hold for `device`."""
    of = device.attributes
    some = random.choice(("30Gi", "40Gi", "90Gi"))
    found = [
        f'{OF}.productName == "{of["productName"]}"',
        f'{OF}.productName.lowerAscii().matches("{random.choice(("a100|l4", "h100", "nvidia"))}")',
        f'{OF}.architecture in ["Hopper", "{of["architecture"]}"]',
        f'{MEMORY}.compareTo(quantity("{some}")) {random.choice((">=", "<"))} 0',
        f'{MEMORY}.isLessThan(quantity("{some}"))',
        f'{OF}.cudaComputeCapability.isGreaterThan(semver("{random.choice(("7.0.0", "8.5.0"))}"))',
        f"has({OF}.profile)" if "profile" in of else f"!has({OF}.profile)",
        # Full GPUs have no profile, on which the scheduler gives up.
        f'{OF}.profile == "{of.get("profile", "1g.10gb")}"',
    ]
    return random.sample(found, random.choice((0, 1, 1, 2)))


def request(random: Random, name: str, devices: tuple[Device, ...], classes: tuple[str, ...]) -> Json:
    """One request for what the node publishes: mostly for GPUs and parts of them, in `devices`."""
    if not devices or (classes and random.random() < 0.2):
        exactly: Json = {"deviceClassName": random.choice(classes)}
    else:
        device = random.choice(devices)
        chosen = [{"cel": {"expression": text}} for text in selectors(random, device)]
        exactly = {"deviceClassName": f"{device.attributes['type']}.nvidia.com", "selectors": chosen}
    if random.random() < 0.1 or exactly["deviceClassName"] == "tpu.google.com":
        exactly["allocationMode"] = "All"  # the TPU driver takes nothing else, which is no matter of the scheduler's
    elif random.random() < 0.3:
        exactly["count"] = random.randint(1, 4)
    return {"name": name, "exactly": exactly}


def claim_spec(random: Random, at: Machine) -> Json:
    """The spec of a claim."""
    published = [(piece.driver, device) for piece in at.slices for device in piece.devices]
    devices = tuple(device for driver, device in published if driver == "gpu.nvidia.com")
    classes = tuple(sorted({CLASSES[driver] for driver, _ in published if driver in CLASSES}))
    shape = random.choice(("one", "one", "one", "two", "matched", "matched", "choice"))
    if shape == "choice":
        subrequests = [{"name": name, **request(random, name, devices, classes)["exactly"]} for name in ("x", "y", "z")]
        return {"devices": {"requests": [{"name": "a", "firstAvailable": subrequests}], "config": [OF_A_DOMAIN]}}
    names = "a" if shape == "one" else "ab"
    requests = [request(random, name, devices, classes) for name in names]
    spec: Json = {"devices": {"requests": requests, "config": [OF_A_DOMAIN]}}
    if shape == "matched":
        attribute = random.choice(("gpu.nvidia.com/parentUUID", "resource.kubernetes.io/pcieRoot"))
        spec["devices"]["constraints"] = [{"matchAttribute": attribute}]
    return spec


@dataclass(frozen=True, slots=True)
class Trial:
    """A pod, the claims that come with it, and the node it is pinned to."""

    pod: Json
    claims: tuple[Json, ...]
    node: str


def trials(random: Random, machines: list[Machine]) -> list[Trial]:
    """Pods in the order in which they come; some share the claim of an earlier one."""
    found: list[Trial] = []
    for index in range(PODS_PER_SEED):
        at, name = random.choice(machines), f"pod-{index:02}"
        claims = tuple(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "ResourceClaim",
                "metadata": {"name": f"{name}-{number}", "namespace": "default"},
                "spec": claim_spec(random, at),
            }
            for number in range(random.choice((1, 1, 1, 2)))
        )
        names = [f"{name}-{number}" for number in range(len(claims))]
        if found and random.random() < 0.15:
            names.append(f"pod-{random.randrange(index):02}-0")
        found.append(Trial(pod_manifest(random, name, at.node.name, names), claims, at.node.name))
    return found


def pod_manifest(random: Random, name: str, node: str, claims: list[str]) -> Json:
    entries = [{"name": f"c{index}", "resourceClaimName": claim} for index, claim in enumerate(claims)]
    requests = {"cpu": random.choice(("1", "4")), "memory": random.choice(("1Gi", "16Gi"))}
    resources = {"requests": requests, "claims": [{"name": entry["name"]} for entry in entries]}
    container = {"name": "main", "image": "registry.k8s.io/pause:3.10", "resources": resources}
    spec = {"nodeSelector": {HOSTNAME: node}, "resourceClaims": entries, "containers": [container]}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def world_of(machines: list[Machine]) -> World:
    """The nodes, empty."""
    return World.of(
        Snapshot(
            profile=REFERENCE,
            nodes=tuple(each.node for each in machines),
            slices=tuple(sorted((piece for each in machines for piece in each.slices), key=lambda piece: piece.name)),
            classes=tuple(
                DeviceClass(row.name, tuple(Selector(text) for text in row.selectors), row.extended_resource_name)
                for row in builtin_device_classes(REFERENCE)
            ),
        )
    )


def simulated(trial: Trial, world: World) -> tuple[Verdict, World]:
    """The simulator's verdict, and the world after it."""
    claims = {claim.key: claim for claim in map(parse_resource_claim, trial.claims)}
    world = replace(world, claims={**world.claims, **claims})
    pod = parse_pod(trial.pod)
    verdict = fit((pod,), trial.node, world)
    return verdict, world.placed((pod,), trial.node, verdict) if isinstance(verdict, Fits) else world


def real(trial: Trial, cluster: Cluster) -> tuple[type[Any], Devices, str]:
    """The scheduler's verdict, the devices of the pod's claims, and the message."""
    for claim in trial.claims:
        cluster.apply(claim)
    cluster.apply(trial.pod)
    pod, refused = cluster.wait_for_answer(trial.pod["metadata"]["name"])
    if refused is None:
        return Fits, cluster.devices_of(pod), ""
    cluster.forget(pod)  # or it would be tried again later
    reason, message = refused
    return REASONS[reason], Counter(), message


def devices_of(trial: Trial, world: World) -> Devices:
    """All devices of the pod's claims in the simulated world."""
    names = [entry["resourceClaimName"] for entry in trial.pod["spec"]["resourceClaims"]]
    allocations = (world.claims[f"default/{name}"].allocation for name in names)
    return Counter(
        (device.request, device.driver, device.device) for found in allocations if found for device in found.devices
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_simulator_and_scheduler_agree(seed: int, control_plane: ControlPlane, agreement: Counter[str]) -> None:
    random, cluster = Random(seed), Cluster(control_plane)
    cluster.install_classes(REFERENCE)
    machines = [
        machine(kind, f"node-{index}", variant=random.choice((0, 0, -1, random.randrange(20))))
        for index, kind in enumerate(random.sample(TYPES, 4))
    ]
    world = world_of(machines)
    differences: list[object] = []
    try:
        for each in machines:
            cluster.add_node(each.node, each.slices)
        cluster.wait_until_ready(len(machines))
        for trial in trials(random, machines):
            verdict, world = simulated(trial, world)
            kind, devices, message = real(trial, cluster)
            expected = devices_of(trial, world) if isinstance(verdict, Fits) else Counter()
            agreement.update({"random": 1, kind.__name__: 1, "same verdict": type(verdict) is kind})
            agreement["same devices"] += kind is Fits and devices == expected
            if type(verdict) is not kind or devices != expected:
                claims = [write_claim(parse_resource_claim(claim))["spec"] for claim in trial.claims]
                differences.append(
                    (trial.pod["metadata"]["name"], trial.node, verdict, expected, message, devices, claims)
                )
                break  # from here on the worlds differ
    finally:
        cluster.clear()
    assert differences == []
