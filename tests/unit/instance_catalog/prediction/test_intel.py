"""gpu.intel.com and gaudi.intel.com."""

from __future__ import annotations

from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import Device, RuntimeOnly
from instance_catalog.prediction.predict import predict
from instance_catalog.prediction.variants import implicit_driver_sets
from instance_catalog.types.instance_type import Accelerator, InstanceType, PciPlacement
from tests.unit.instance_catalog.prediction import machines

FLEX = Accelerator(key="intel-flex-140", vendor="Intel", model="Flex 140", memory=Quantity.parse("5068Mi"))
GAUDI3 = Accelerator(key="habana-gaudi3", vendor="Habana", model="Gaudi3")
GAUDI = Accelerator(key="habana-gaudi-hl-205", vendor="Habana", model="Gaudi HL-205")
PLACED = (PciPlacement("0000:53:00.0", "pci0000:44"),)


def devices_of(machine: InstanceType, drivers: str) -> tuple[Device, ...]:
    (piece,) = predict(machine, parse_driver_set(drivers), kubernetes=profile_for("1.36"), node_name="n")
    return piece.devices


def test_a_gpu_is_named_by_address_and_model() -> None:
    (gpu,) = devices_of(machines.machine("flex", FLEX, 1, placements=PLACED), "intel-gpu")
    assert gpu.name == "0000-53-00-0-0x56c1"
    known = {name: value for name, value in gpu.attributes.items() if not isinstance(value, RuntimeOnly)}
    assert known == {
        "model": "Flex 140",
        "family": "Flex",
        "driver": "i915",
        "type": "gpu",
        "pciId": "0x56c1",
        "pciAddress": "0000:53:00.0",
        "pciRoot": "44",
        "resource.kubernetes.io/pciBusID": "0000:53:00.0",
        "resource.kubernetes.io/pcieRoot": "pci0000:44",
    }
    assert set(gpu.attributes) - set(known) == {"sriov", "health"}
    assert {name: str(c.value) for name, c in gpu.capacity.items()} == {"memory": "5068Mi", "millicores": "1k"}


def test_what_is_not_known_of_a_gpu_is_a_token() -> None:
    other = Accelerator(key="intel-new", vendor="Intel", model="Battle 1")
    (gpu,) = devices_of(machines.machine("new", other, 1), "intel-gpu")
    assert gpu.name == "gpu-00"
    assert gpu.attributes["family"] == "Unknown"
    assert isinstance(gpu.attributes["pciId"], RuntimeOnly)
    assert gpu.capacity["memory"].guess


def test_gaudi_devices_have_a_model_and_no_capacity() -> None:
    (device,) = devices_of(machines.machine("gaudi3", GAUDI3, 1, placements=PLACED), "gaudi")
    assert device.name == "0000-53-00-0-0x1060"
    assert (device.attributes["model"], device.attributes["healthy"], device.attributes["pciRoot"]) == (
        "Gaudi3",
        True,
        "44",
    )
    assert device.capacity == {}


def test_eight_gaudi_devices_without_addresses_are_told_apart() -> None:
    devices = devices_of(machines.machine("dl1.24xlarge", GAUDI, 8), "gaudi")
    assert [device.name for device in devices] == [f"gaudi-{i:02d}" for i in range(8)]
    assert len({device.attributes["serial"] for device in devices}) == 8
    assert {device.attributes["model"] for device in devices} == {"Gaudi"}


def test_types_come_with_the_driver_of_their_hardware() -> None:
    kubernetes = profile_for("1.36")
    for accelerator, expected in ((FLEX, ["intel-gpu"]), (GAUDI3, ["gaudi"])):
        found = implicit_driver_sets(machines.machine("x", accelerator, 1), kubernetes)
        assert [s.text for s in found] == expected
