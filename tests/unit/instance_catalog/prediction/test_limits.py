"""Every catalog type with every implicit driver set publishes only what an API server accepts.

Limits and formats: k8s.io/api resource/v1 types.go and pkg/apis/resource/validation, v0.34 and v0.36.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

import pytest

from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.files.loader import load_catalog
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.resource_slice import Device, ResourceSlice, RuntimeOnly, Version
from instance_catalog.kubernetes.semver import SemanticVersion
from instance_catalog.prediction.concrete import make_concrete
from instance_catalog.prediction.predict import predict
from instance_catalog.prediction.variants import implicit_driver_sets, slice_variants
from instance_catalog.types.instance_type import InstanceType
from tests.unit.instance_catalog.prediction import machines

LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,31}")
PCI_BUS_ID = re.compile(r"[0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-9a-f]")
VERSIONS = ("1.34", "1.36")
LONGEST_NODE_NAME = "a" + "b" * 61 + "c"


@cache
def catalog() -> tuple[InstanceType, ...]:
    return tuple(load_catalog())


def predictions(version: str) -> Iterator[tuple[InstanceType, DriverSet, tuple[ResourceSlice, ...]]]:
    kubernetes = profile_for(version)
    for machine in catalog():
        for driver_set in implicit_driver_sets(machine, kubernetes):
            yield machine, driver_set, predict(machine, driver_set, kubernetes=kubernetes)


def broken_limits(piece: ResourceSlice) -> Iterator[str]:
    if not SUBDOMAIN.fullmatch(piece.name) or len(piece.name) > 253:
        yield f"name {piece.name}"
    special = any(d.consumes_counters or d.taints for d in piece.devices)
    if len(piece.devices) > (64 if special else 128):
        yield f"{len(piece.devices)} devices"
    if len({d.name for d in piece.devices}) != len(piece.devices):
        yield "two devices of one name"
    if len(piece.shared_counters) > 8 or any(len(s.counters) > 32 for s in piece.shared_counters):
        yield "counter sets"
    for device in piece.devices:
        yield from (f"{device.name}: {text}" for text in broken_device_limits(device))


def broken_device_limits(device: Device) -> Iterator[str]:
    if not LABEL.fullmatch(device.name):
        yield "name"
    if len(device.attributes) + len(device.capacity) > 32:
        yield f"{len(device.attributes)} attributes, {len(device.capacity)} capacities"
    for name in (*device.attributes, *device.capacity):
        domain, _, identifier = name.rpartition("/")
        if not IDENTIFIER.fullmatch(identifier) or (domain and not SUBDOMAIN.fullmatch(domain)) or len(domain) > 63:
            yield f"attribute name {name}"
    for name, value in device.attributes.items():
        if isinstance(value, RuntimeOnly):
            yield f"{name} is a token"
        if isinstance(value, str) and len(value) > 64:
            yield f"{name} is too long: {value}"
        if isinstance(value, Version) and str(SemanticVersion.parse(value.text)) == "":
            yield f"{name} is no version: {value.text}"
        if name.endswith("/pciBusID") and not PCI_BUS_ID.fullmatch(str(value)):
            yield f"{name} is no bus id: {value}"
    if len(device.consumes_counters) > 2 or any(len(c.counters) > 32 for c in device.consumes_counters):
        yield "consumed counters"


@pytest.mark.parametrize("version", VERSIONS)
def test_slices_keep_the_limits_of_the_api(version: str) -> None:
    found = {
        f"{machine.name} {driver_set.text} {piece.name}": broken
        for machine, driver_set, slices in predictions(version)
        for piece in make_concrete(slices, node_name=LONGEST_NODE_NAME)
        if (broken := list(broken_limits(piece)))
    }
    assert found == {}


@pytest.mark.parametrize("version", VERSIONS)
def test_pools_are_complete_and_counters_are_declared(version: str) -> None:
    for machine, driver_set, slices in predictions(version):
        for driver in {piece.driver for piece in slices}:
            pool = [piece for piece in slices if piece.driver == driver]
            assert {p.pool.slice_count for p in pool} == {len(pool)}, (machine.name, driver_set.text)
            assert len({p.name for p in pool}) == len(pool)
            names = [d.name for p in pool for d in p.devices]
            assert len(names) == len(set(names))
            declared = {s.name: s.counters for p in pool for s in p.shared_counters}
            for device in (d for p in pool for d in p.devices):
                for consumption in device.consumes_counters:
                    available = declared[consumption.counter_set]
                    assert all(value <= available[name] for name, value in consumption.counters.items())


def test_from_1_35_on_no_slice_has_both_devices_and_counter_sets() -> None:
    both = [
        piece.name
        for _, _, slices in predictions("1.36")
        for piece in slices
        if piece.devices and piece.shared_counters
    ]
    assert both == []


def test_every_nvidia_and_tpu_type_of_the_catalog_can_be_predicted() -> None:
    kubernetes = profile_for("1.36")
    silent = [
        machine.name
        for machine in catalog()
        if machine.accelerator is not None
        and machine.accelerator.vendor in ("NVIDIA", "Google")
        and not implicit_driver_sets(machine, kubernetes)
    ]
    assert silent == ["ct3p-hightpu-4t"]  # exists in slices of several hosts only
    v3_pod = next(machine for machine in catalog() if machine.name == "ct3p-hightpu-4t")
    assert slice_variants(v3_pod, (), {"4x4"})


def test_the_catalog_has_everything_that_a_p4d_node_was_seen_to_publish() -> None:
    drivers, kubernetes = parse_driver_set("nvidia:driver=580.126.09:cuda=13.0,dranet"), profile_for("1.36")
    of_catalog = next(machine for machine in catalog() if machine.name == "p4d.24xlarge")
    expected = predict(machines.p4d(), drivers, kubernetes=kubernetes)
    assert predict(of_catalog, drivers, kubernetes=kubernetes) == expected


def test_every_device_of_a_type_is_published_once_without_mig() -> None:
    kubernetes = profile_for("1.36")
    for machine in catalog():
        if machine.accelerator is None or machine.accelerator.vendor != "NVIDIA":
            continue
        plain = implicit_driver_sets(machine, kubernetes)[0]
        gpus, *_ = predict(machine, plain, kubernetes=kubernetes)
        assert len(gpus.devices) == machine.device_count, machine.name
