"""gpu.example.com: the simulated GPUs of kubernetes-sigs/dra-example-driver (internal/profiles/gpu/gpu.go, v0.4.0).

They exist on every node where the driver runs, with any hardware. The abilities of a release are features in
data/drivers/gpu.example.com.yaml. Must not know hardware.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from instance_catalog.dataclass import replace
from instance_catalog.drivers.profile import DriverProfile
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    AttributeValue,
    Capacity,
    CounterConsumption,
    CounterSet,
    Device,
    RequestPolicy,
    ValidRange,
    Version,
)
from instance_catalog.prediction.driver import MOST_ADVANCED_DEVICES, MOST_COUNTER_SETS, Prediction, SliceContents
from instance_catalog.prediction.tokens import on_node
from instance_catalog.types.instance_type import InstanceType

_TOTALS = {"memory": Quantity.parse("80Gi"), "compute": Quantity.of(100)}
_STEPS = {"memory": Quantity.parse("1Gi"), "compute": Quantity.of(1)}
# Option, the feature of a release that it needs, and the behaviour of a release without it.
_NEEDS = (
    ("partitions", "partitions", "has no partitions"),
    ("shared", "sharing", "cannot share devices"),
    ("binding-conditions", "binding-conditions", "has no binding conditions"),
)


def runs_on(instance_type: InstanceType) -> bool:
    """The driver pretends devices everywhere."""
    return True


def why_unpredictable(instance_type: InstanceType, profile: DriverProfile) -> str | None:
    """The reason why the slices cannot be predicted, or None if they can."""
    for option, feature, able in _NEEDS:
        if profile.option(option) and feature not in profile.features:
            return f"example {profile.release} {able}; take v0.4.0"
    gpus, parts = _counts(profile)
    if not parts:
        return None
    if gpus > MOST_COUNTER_SETS:
        return f"one slice holds the counters of at most {MOST_COUNTER_SETS} partitioned GPUs, not of {gpus}"
    if (devices := gpus * (parts + 1)) > MOST_ADVANCED_DEVICES:
        return (
            f"the driver puts all partitions into one slice, which holds {MOST_ADVANCED_DEVICES}, and {devices} are "
            "wanted; lower devices or partitions"
        )
    return None


def contents(
    instance_type: InstanceType, profile: DriverProfile, kubernetes: KubernetesProfile
) -> tuple[SliceContents, ...]:
    """One slice with the GPUs; of partitioned GPUs a slice with counters, then one with the devices."""
    gpus, parts = _counts(profile)
    if not parts:
        return (SliceContents(tuple(_device(profile, f"gpu-{gpu}", _attributes(gpu), _TOTALS) for gpu in range(gpus))),)
    sets = tuple(CounterSet(_counters(gpu), FrozenMap(_TOTALS)) for gpu in range(gpus))
    devices = tuple(device for gpu in range(gpus) for device in _parts(profile, gpu, parts))
    return SliceContents((), sets), SliceContents(devices)


def _counts(profile: DriverProfile) -> tuple[int, int]:
    """GPUs, and partitions of each."""
    return int(profile.option("devices") or 0), int(profile.option("partitions") or 0)


def _parts(profile: DriverProfile, gpu: int, parts: int) -> list[Device]:
    """The partitions of one GPU and the whole of it, over the same counters."""
    share = {name: Quantity.of(total.int64_value() // parts, total.format) for name, total in _TOTALS.items()}
    shapes: list[tuple[str, dict[str, AttributeValue], Mapping[str, Quantity]]] = [
        (f"gpu-{gpu}-partition-{part}", {"partition": part, "partitionable": True}, share) for part in range(parts)
    ]
    shapes.append((f"gpu-{gpu}-full", {"full": True, "partitionable": True}, _TOTALS))
    return [
        replace(
            _device(profile, name, _attributes(gpu).with_items(own), drawn),
            consumes_counters=(CounterConsumption(_counters(gpu), FrozenMap(drawn)),),
        )
        for name, own, drawn in shapes
    ]


def _device(
    profile: DriverProfile,
    name: str,
    attributes: FrozenMap[str, AttributeValue],
    figures: Mapping[str, Quantity],
) -> Device:
    """A device with these figures, as far as the release announces them as capacities."""
    shared, bound = profile.option("shared") is not None, profile.option("binding-conditions") is not None
    announced = figures if "compute-capacity" in profile.features else {"memory": figures["memory"]}
    return Device(
        name,
        attributes,
        FrozenMap({n: Capacity(value, _policy(n, value) if shared else None) for n, value in announced.items()}),
        allow_multiple_allocations=shared,
        binding_conditions=("BindingConditions",) if bound else None,
        binding_failure_conditions=("BindingFailureConditions",) if bound else None,
    )


def _attributes(gpu: int) -> FrozenMap[str, AttributeValue]:
    values: dict[str, AttributeValue] = {
        "index": gpu,
        "uuid": on_node("string", f"gpu-{gpu}", "uuid"),
        "model": "LATEST-GPU-MODEL",
        "driverVersion": Version("1.0.0"),
    }
    return FrozenMap(values)


def _policy(name: str, value: Quantity) -> RequestPolicy:
    """Nothing requested means everything."""
    step = _STEPS[name]
    return RequestPolicy(value, valid_range=ValidRange(min=step, max=value, step=step))


def _counters(gpu: int) -> str:
    return f"gpu-{gpu}-counters"


PREDICTION: Final = Prediction(runs_on, contents, why_unpredictable=why_unpredictable, in_implicit_pools=False)
