"""Work of the first plan of a process that is done in advance.

It loads the grammar of selectors, adds up what runs on every node, and collects and converts the devices; later plans
find all of it cached. In a cluster of 1,000 nodes with 42 devices each this takes seconds.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import Final

from autoscaler.dra.outcome import FatalError
from autoscaler.model.device_class import DeviceClass, Selector
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.scheduling.world import World, WorldMemory

CLASS: Final = DeviceClass("rehearsal")
# It reads attributes, so devices are converted completely; the result is not used.
REQUEST: Final = DeviceRequest("device", CLASS.name, (Selector('"rehearsal" in device.attributes'),))
# Each is evaluated for every device of the cluster.
_MOST_CLASSES: Final = 4


def warm_up(snapshot: Snapshot, memory: WorldMemory) -> None:
    """Evaluate every device of the cluster, also for the most frequent DeviceClasses of claims. `memory`: that of later
    plans. Plans without pending pods do not fill it."""
    world = World.of(snapshot, kept=memory)
    rehearsals = [CLASS, *_asked(snapshot)]
    for state in world.states():
        with suppress(FatalError):  # a slice with a malformed node selector: reported when a pod needs it
            pools, memo = world.devices.pools_of(state.node)
            for device_class in rehearsals:
                matches = memo.matches(device_class, REQUEST)
                for pooled in pools.devices:
                    matches.of(pooled)


def _asked(snapshot: Snapshot) -> list[DeviceClass]:
    """The DeviceClasses that most claims name, because later pods probably name one of them."""
    asked: Counter[str] = Counter()
    for claim in snapshot.claims.values():
        asked.update(request.device_class for request in claim.exact_requests)
    often = sorted(asked, key=lambda name: (-asked[name], name))[:_MOST_CLASSES]
    return [found for found in snapshot.classes if found.name in often]
