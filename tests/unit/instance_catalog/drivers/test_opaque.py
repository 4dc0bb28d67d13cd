"""What gpu.nvidia.com refuses in opaque configurations, whatever its gates."""

from __future__ import annotations

import json
from typing import Any

import pytest

from instance_catalog.drivers.opaque import refused, strategy


def config(sharing: Any = None, **fields: Any) -> str:
    content = {"apiVersion": "resource.nvidia.com/v1beta1", "kind": "GpuConfig", **fields}
    return json.dumps(content if sharing is None else {**content, "sharing": sharing})


def slicing(**settings: Any) -> dict[str, Any]:
    return {"strategy": "TimeSlicing", "timeSlicingConfig": settings}


def mps(**settings: Any) -> dict[str, Any]:
    return {"strategy": "MPS", "mpsConfig": settings}


@pytest.mark.parametrize(
    "parameters",
    [
        pytest.param(config(), id="nothing said"),
        pytest.param(config({"strategy": "TimeSlicing"}), id="time slices without settings"),
        *(pytest.param(config(slicing(interval=i)), id=i) for i in ("Default", "Short", "Medium", "Long")),
        pytest.param(config({"strategy": "MPS"}), id="mps without settings"),
        pytest.param(config(mps(defaultActiveThreadPercentage=0)), id="no threads"),
        pytest.param(config(mps(defaultActiveThreadPercentage=100, multiUser=True)), id="all threads"),
        pytest.param(config(mps(defaultPinnedDeviceMemoryLimit="10Gi")), id="limit"),
        pytest.param(config(mps(defaultPerDevicePinnedMemoryLimit={"0": "10Gi", "GPU-1": "1Mi"})), id="limits"),
        pytest.param(config(mps(), kind="MigDeviceConfig"), id="mig with mps"),
        pytest.param(config(kind="VfioDeviceConfig", iommu={"backendPolicy": "LegacyOnly"}), id="vfio"),
    ],
)
def test_what_the_driver_accepts(parameters: str) -> None:
    assert refused(parameters) == ""


@pytest.mark.parametrize(
    ("parameters", "problem"),
    [
        pytest.param("{", "no JSON", id="no json"),
        pytest.param("[]", "not an object", id="a list"),
        pytest.param(config(apiVersion="gpu.nvidia.com/v1alpha1"), "apiVersion is gpu.nvidia.com/v1alpha1", id="group"),
        pytest.param(config(kind="GPUConfig"), "kind is GPUConfig", id="kind"),
        pytest.param(config(shared={}), "no field shared", id="field"),
        pytest.param(config({"strategy": "MPS", "mps": {}}), "no field sharing.mps", id="field of sharing"),
        pytest.param(config({"strategy": "Mps"}), "strategy is Mps", id="strategy"),
        pytest.param(config({}), "strategy is missing", id="no strategy"),
        pytest.param(config({"strategy": ["MPS"]}), "strategy is", id="strategy is a list"),
        pytest.param(config(slicing(interval="long")), "interval is long", id="interval"),
        pytest.param(config(slicing(slice="Long")), "no field sharing.timeSlicingConfig.slice", id="field of slices"),
        pytest.param(config(mps(defaultActiveThreadPercentage=101)), "is 101", id="too many threads"),
        pytest.param(config(mps(defaultActiveThreadPercentage=-1)), "is -1", id="negative threads"),
        pytest.param(config(mps(defaultActiveThreadPercentage="50")), "is 50; it must be a whole", id="text"),
        pytest.param(config(mps(defaultPinnedDeviceMemoryLimit="1023Ki")), "the least is 1Mi", id="low limit"),
        pytest.param(config(mps(defaultPinnedDeviceMemoryLimit="much")), "not a quantity", id="no quantity"),
        pytest.param(
            config(mps(defaultPerDevicePinnedMemoryLimit={"gpu-0": "1Gi"})), "names device gpu-0", id="device"
        ),
        pytest.param(config({**mps(), "timeSlicingConfig": {"interval": "Long"}}), "cannot be used", id="both"),
        pytest.param(
            config(slicing(interval="Long"), kind="MigDeviceConfig"),
            "no field sharing.timeSlicingConfig",
            id="mig slices",
        ),
    ],
)
def test_what_the_driver_refuses(parameters: str, problem: str) -> None:
    assert problem in refused(parameters)


def test_all_that_is_refused_is_told_at_once() -> None:
    """Who corrects one should not meet the next."""
    said = refused(config({"strategy": "MPS", "mps": {}, "mig": 1, "mpsConfig": {"users": 1}}, shared=1, extra=1))
    assert "no field extra or shared, but apiVersion, kind, sharing" in said
    assert "no field sharing.mig or sharing.mps, but strategy, timeSlicingConfig, mpsConfig" in said
    assert "no field sharing.mpsConfig.users" in said
    assert "apiVersion is v1; the driver reads resource" in (both := refused(config(apiVersion="v1", kind="Gpu")))
    assert "kind is Gpu; the driver reads GpuConfig" in both


def test_the_strategy_of_a_configuration() -> None:
    assert strategy(config(mps())) == "MPS"
    assert [strategy(text) for text in (config(), "{", "[]", config([]), config({"strategy": 1}))] == [""] * 5


def test_a_configuration_of_the_example_driver_is_named_as_such() -> None:
    said = refused('{"apiVersion": "gpu.resource.example.com/v1alpha1", "kind": "GpuConfig"}')
    assert "is for the example driver of Kubernetes" in said
    assert "claim class gpu.example.com" in said
    assert "drop spec.devices.config" in said
