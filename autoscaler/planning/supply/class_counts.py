"""Counts devices by DeviceClass: the least that claims need, and the most that a machine has.

These numbers are bounds: the order of pods, the selectors of requests and the choice of devices are ignored.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from autoscaler.dra.inventory.selectors import Answer, SelectorEngine
from autoscaler.model.device_class import DeviceClass
from autoscaler.model.resource_claim import DeviceRequest, ResourceClaim
from instance_catalog.kubernetes.resource_slice import ResourceSlice


def devices_wanted(claims: Iterable[ResourceClaim]) -> Mapping[str, int]:
    """By class, the least number of devices that these claims use for themselves, whatever alternatives are chosen."""
    wanted = Counter[str]()
    for claim in claims:
        for request in claim.requests:
            wanted.update(_least_of([_wanted(one) for one in request.alternatives]))
    return wanted


def _wanted(request: DeviceRequest) -> Counter[str]:
    counted = request.allocation_mode == "ExactCount" and not request.admin_access
    return Counter({request.device_class: request.count} if counted else {})


def _least_of(alternatives: list[Counter[str]]) -> Counter[str]:
    least = alternatives[0] if alternatives else Counter[str]()
    for other in alternatives[1:]:
        least &= other
    return least


def devices_there(slices: Iterable[ResourceSlice], device_class: DeviceClass, engine: SelectorEngine) -> int | None:
    """The devices that the class may select; None if one of them serves several claims, because a count then means
    nothing."""
    count = 0
    for slice_ in slices:
        for device in slice_.devices:
            answers = (
                engine.evaluate(selector.expression, driver=slice_.driver, device=device).answer
                for selector in device_class.selectors
                if selector.expression is not None
            )
            if any(answer is Answer.NO for answer in answers):
                continue
            if device.allow_multiple_allocations:
                return None
            count += 1
    return count
