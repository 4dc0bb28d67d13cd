"""What is said of a type without predicting it holds for every device that is predicted for it in implicit pools."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from instance_catalog.drivers.facts import driver_facts
from instance_catalog.drivers.profile import DriverSet, with_gates
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import PROFILES, KubernetesProfile
from instance_catalog.kubernetes.resource_slice import Capacity, Device
from instance_catalog.prediction.predict import PREDICTIONS, at_most, predict, unpredictable
from instance_catalog.prediction.variants import implicit_driver_sets, with_drivers
from instance_catalog.types.instance_type import InstanceType

GATES = frozenset(
    (name, gate)
    for name, facts in driver_facts().items()
    for gate in (*facts.sharing_gates.values(), *(o for o, option in facts.options.items() if option.switch))
)
CHOSEN = frozenset(driver_facts()[name].driver for name, found in PREDICTIONS.items() if not found.in_implicit_pools)


def _sets(machine: InstanceType, kubernetes: KubernetesProfile) -> Iterator[DriverSet]:
    for found in (*implicit_driver_sets(machine, kubernetes), *with_drivers(machine, kubernetes, CHOSEN)):
        yield found
        for gate in GATES:
            if (gated := with_gates(found, frozenset({gate}))) and unpredictable(machine, gated) is None:
                yield gated


def _bound(amount: Capacity) -> float:
    if amount.guess and amount.bounds is None:
        return float("inf")
    return float(amount.bounds[1].value if amount.guess and amount.bounds else amount.value.value)


def _holds(most: Device, domain: str, driver: str, device: Device) -> Iterator[bool]:
    for ours, theirs in ((most.attributes, device.attributes), (most.capacity, device.capacity)):
        for key, value in _of(theirs, domain, driver).items():
            if key in ours:
                bound = ours[key]
                within = isinstance(value, Capacity) and isinstance(bound, Capacity) and _bound(value) <= _bound(bound)
                yield within or value == bound


def _of(values: Mapping[str, object], domain: str, driver: str) -> dict[str, object]:
    """What has the domain's name, of whichever driver the device is."""
    named = {k.removeprefix(f"{domain}/"): v for k, v in values.items() if k.startswith(f"{domain}/")}
    return {**named, **(values if driver == domain else {})}


@pytest.mark.slow
def test_every_predicted_device_keeps_to_it() -> None:
    kubernetes, checked = PROFILES[-1], 0
    for machine in load_catalog():
        for domain, most in at_most(machine):
            for drivers in _sets(machine, kubernetes):
                for piece in predict(machine, drivers, kubernetes=kubernetes):
                    for device in piece.devices:
                        held = list(_holds(most, domain, piece.driver, device))
                        assert all(held), (machine.name, drivers.text, device.name)
                        checked += len(held)
    assert checked > 10_000
