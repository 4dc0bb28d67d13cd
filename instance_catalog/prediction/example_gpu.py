"""gpu.example.com: the pretended GPUs of kubernetes-sigs/dra-example-driver (internal/profiles/gpu/gpu.go, 31914ce).

They exist on every node where the driver runs, whatever the node has. Must not know hardware.
"""

from __future__ import annotations

from instance_catalog.driver_profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.instance_type import InstanceType
from instance_catalog.kubernetes_profile import KubernetesProfile
from instance_catalog.prediction.contents import MOST_COUNTER_SETS, SliceContents
from instance_catalog.prediction.tokens import on_node
from instance_catalog.quantity import Quantity
from instance_catalog.resource_slice import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    RequestPolicy,
    ValidRange,
    Version,
)

_TOTALS = {"memory": Quantity.parse("80Gi"), "compute": Quantity.of(100)}
_STEPS = {"memory": Quantity.parse("1Gi"), "compute": Quantity.of(1)}


def runs_on(instance_type: InstanceType) -> bool:
    """The driver pretends devices everywhere."""
    return True


def why_unpredictable(instance_type: InstanceType, profile: DriverProfile) -> str | None:
    """Why the slices cannot be predicted, or None if they can."""
    parts, gpus = profile.option("partitions"), int(profile.option("devices") or 0)
    if parts and "partitions" not in profile.features:
        return f"example {profile.release} has no partitions; take v0.3.0-dev"
    if profile.option("shared") and "sharing" not in profile.features:
        return f"example {profile.release} cannot share devices; take v0.3.0-dev"
    if parts and gpus > MOST_COUNTER_SETS:
        return f"one slice holds the counters of at most {MOST_COUNTER_SETS} partitioned GPUs, not of {gpus}"
    return None


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice with the GPUs; of partitioned GPUs a slice with counters, then one with the devices."""
    gpus, parts = range(int(profile.option("devices") or 0)), int(profile.option("partitions") or 0)
    if not parts:
        return (SliceContents(tuple(_gpu(profile, gpu) for gpu in gpus)),)
    sets = tuple(CounterSet(_counters(gpu), FrozenMap(_TOTALS)) for gpu in gpus)
    devices = tuple(device for gpu in gpus for device in _parts(profile, gpu, parts))
    return SliceContents((), sets), SliceContents(devices)


def _gpu(profile: DriverProfile, gpu: int) -> Device:
    totals = _TOTALS if "compute-capacity" in profile.features else {"memory": _TOTALS["memory"]}
    shared = profile.option("shared") is not None
    capacity = {name: Capacity(total, _policy(name) if shared else None) for name, total in totals.items()}
    return Device(f"gpu-{gpu}", _attributes(gpu), FrozenMap(capacity), allow_multiple_allocations=shared)


def _parts(profile: DriverProfile, gpu: int, parts: int) -> list[Device]:
    """The partitions of one GPU and the whole of it, over the same counters."""
    share = {name: Quantity.of(total.int64_value() // parts, total.format) for name, total in _TOTALS.items()}
    shapes: list[tuple[str, dict[str, AttributeValue], dict[str, Quantity]]] = [
        (f"gpu-{gpu}-partition-{part}", {"partition": part, "partitionable": True}, share) for part in range(parts)
    ]
    shapes.append((f"gpu-{gpu}-full", {"full": True, "partitionable": True}, _TOTALS))
    return [
        Device(
            name,
            _attributes(gpu).with_items(own),
            FrozenMap({figure: Capacity(value) for figure, value in drawn.items()}),
            (CounterConsumption(_counters(gpu), FrozenMap(drawn)),),
        )
        for name, own, drawn in shapes
    ]


def _attributes(gpu: int) -> FrozenMap[str, AttributeValue]:
    values: dict[str, AttributeValue] = {
        "index": gpu,
        "uuid": on_node("string", f"gpu-{gpu}", "uuid"),
        "model": "LATEST-GPU-MODEL",
        "driverVersion": Version("1.0.0"),
    }
    return FrozenMap(values)


def _policy(name: str) -> RequestPolicy:
    """Nothing requested means everything."""
    step = _STEPS[name]
    return RequestPolicy(_TOTALS[name], valid_range=ValidRange(min=step, step=step))


def _counters(gpu: int) -> str:
    return f"gpu-{gpu}-counters"
