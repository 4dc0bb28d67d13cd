"""Whether kube-scheduler would find a place for every pod of a ProvisioningRequest on the nodes that it got.

The pods of one request get one node label, so kube-scheduler chooses among all of its nodes. Pods of different sizes
may then stand in each other's way: small ones spread over nodes that the large ones need whole. The plan knows a
packing that holds all; this asks what becomes of the pods in other orders and with unlucky ties.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.requested_capacity import ProvisioningRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.virtual_pods import owner_of, pod_set_of
from autoscaler.scheduling.schedule import adversarial, first, schedule
from autoscaler.scheduling.world import World

# The unlucky order costs a look at every node for every pod, for each of its choices.
MOST: Final = 16


def scattered(request: ProvisioningRequest, snapshot: Snapshot, nodes: Collection[str]) -> Mapping[str, int]:
    """How many pods of each pod set may be left without a place; {} if every pod surely finds one.

    Equal pods never stand in each other's way, so only requests with several pod sets are looked at; and of these only
    small ones, because nothing else is decided meanwhile.
    """
    if len(request.pod_sets) < 2 or request.pods > MOST:
        return {}
    pods = _own_pods(request, snapshot)
    world = World.of(snapshot)
    world = replace(world, nodes={name: state for name, state in world.nodes.items() if name in nodes})
    most: Counter[str] = Counter()
    for order in (pods, pods[::-1]):
        for choose in (first, adversarial):
            left = Counter(pod_set_of(pod.name)[0] for pod in schedule(order, world, choose).left)
            most |= left
    return dict(most)


def _own_pods(request: ProvisioningRequest, snapshot: Snapshot) -> list[Pod]:
    """The pods that will come: without the spare ones that only keep room."""
    counts = {pod_set.template: pod_set.count for pod_set in request.pod_sets}
    found = []
    for pod in snapshot.pods:
        owner = owner_of(pod.key)
        if owner is not None and (owner.kind, owner.key) == ("ProvisioningRequest", request.key):
            template, index = pod_set_of(pod.name)
            if index < counts.get(template, 0):
                found.append(pod)
    return found
