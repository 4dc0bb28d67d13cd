"""neuron.aws.com: device groups as published, and the EFA devices that belong to them."""

from __future__ import annotations

from fractions import Fraction

import pytest

from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import Device
from instance_catalog.prediction.predict import predict, unpredictable
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.instance_type import InstanceType
from tests.unit.instance_catalog.prediction import machines

TRN2 = machines.trainium("trn2.48xlarge", 16)
TRN1 = machines.trainium("trn1.32xlarge", 8)


def devices_of(machine: InstanceType, drivers: str) -> tuple[Device, ...]:
    (piece,) = predict(machine, parse_driver_set(drivers), kubernetes=profile_for("1.36"))
    return piece.devices


def ids(devices: tuple[Device, ...], size: int) -> list[object]:
    """The distinct group ids in the order of the devices."""
    return list(dict.fromkeys(d.attributes[f"resource.aws.com/devicegroup{size}_id"] for d in devices))


def test_group_ids_are_those_of_the_published_trn2_slice() -> None:
    devices = devices_of(TRN2, "neuron")
    assert [d.name for d in devices] == [f"neuron-device-{i}" for i in range(16)]
    assert ids(devices, 4) == ["13713e551cd37c19", "671622785349fddf", "237e3ef7b968b4d3", "b3d6ce1919d29f8f"]
    assert ids(devices, 8) == ["3593812b8066a078", "614e16dab9ba2f1f"]
    assert ids(devices, 16) == ["821d14afaf11327d"]
    assert ids(devices, 1)[2] == "0000:b3:00.0"


def test_devices_that_share_an_efa_device_count_it_once() -> None:
    devices = devices_of(TRN1, "neuron")
    assert ids(devices, 4) == ["88a3c6ad1661fe1d", "69b2225fd72a59dd", "e3c29faa0cd11323", "178a9e264a26793e"]
    assert ids(devices, 8) == ["86c451036f622685", "aa86c05423d6e8cd"]
    assert ids(devices, 16) == ["fb838249c99a6341"]


def test_devices_know_their_place_in_the_torus() -> None:
    seventh = devices_of(TRN2, "neuron")[7].attributes
    assert (seventh["deviceId"], seventh["topology_x"], seventh["topology_y"]) == (7, 1, 3)
    assert (seventh["instanceType"], seventh["resourceType"]) == ("trn2.48xlarge", "neuron_device")
    (single,) = devices_of(machines.machine("trn2.3xlarge", machines.TRAINIUM, 1), "neuron")
    assert "topology_x" not in single.attributes
    assert "resource.aws.com/devicegroup4_id" not in single.attributes


@pytest.mark.parametrize("machine", [TRN1, TRN2], ids=lambda m: str(m.name))
def test_every_device_group_has_its_efa_devices(machine: InstanceType) -> None:
    neuron, cards = devices_of(machine, "neuron"), devices_of(machine, "dranet")
    for size in (4, 8, 16):
        assert set(ids(cards, size)) == set(ids(neuron, size))
    by_address = {card.attributes["dra.net/pciAddress"]: card for card in cards}
    for device in neuron:
        card = by_address[device.attributes["resource.aws.com/devicegroup1_id"]]
        for size in (1, 4, 8, 16):
            name = f"resource.aws.com/devicegroup{size}_id"
            assert card.attributes[name] == device.attributes[name]


@pytest.mark.parametrize(
    ("machine", "reason"),
    [
        (machines.trainium("trn2u.48xlarge", 16), "part of an UltraServer"),
        (
            machines.machine("inf2", machines.Accelerator("aws-inferentia2", "AWS", "Inferentia2"), 1),
            "publishes for Inferentia2 is not documented",
        ),
    ],
    ids=["UltraServer", "Inferentia"],
)
def test_what_is_not_documented_is_not_predicted(machine: InstanceType, reason: str) -> None:
    assert reason in (unpredictable(machine, parse_driver_set("neuron")) or "")
    assert implicit_driver_sets(machine, profile_for("1.36")) == ()


def test_neuron_types_are_offered_with_their_cards() -> None:
    (driver_set,) = implicit_driver_sets(TRN2, profile_for("1.36"))
    assert driver_set.text == "neuron,dranet"


def test_more_devices_than_recorded_efa_addresses_are_not_predicted() -> None:
    larger = replace(TRN2, accelerator_count=Fraction(99))
    reason = unpredictable(larger, parse_driver_set("neuron")) or ""
    assert "recorded for 16 devices, not for 99" in reason
