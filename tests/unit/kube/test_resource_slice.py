"""ResourceSlices, DeviceClasses and DeviceTaintRules as published."""

from __future__ import annotations

import pytest

from autoscaler.kube.device_class import parse_device_class, parse_device_taint_rule
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_slice import parse_resource_slice
from autoscaler.model.device_class import Selector
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import (
    CounterConsumption,
    Device,
    ListValue,
    NodeAllocatable,
    NodeMapping,
    NodeOverhead,
    NodeReach,
    Pool,
    ResourceSlice,
    Unset,
    ValidRange,
    Version,
)
from instance_catalog.kubernetes.taint import Taint

BODY = {
    "attributes": {"type": {"string": "gpu"}, "index": {"int": 0}, "ecc": {"bool": False}, "drv": {"version": "1.0.0"}},
    "capacity": {"memory": {"value": "80Gi"}},
    "consumesCounters": [{"counterSet": "s", "counters": {"c": {"value": "1"}}}],
    "taints": [{"key": "k", "effect": "None"}],
}


def slice_of(*devices: object, version: str = "v1", **spec: object) -> dict[str, object]:
    base = {"driver": "d", "pool": {"name": "p", "generation": 1, "resourceSliceCount": 2}, "nodeName": "n"}
    return {
        "apiVersion": f"resource.k8s.io/{version}",
        "metadata": {"name": "s"},
        "spec": {**base, "devices": list(devices), **spec},
    }


def parsed(raw: object) -> tuple[ResourceSlice, list[str]]:
    problems = Problems()
    found = parse_resource_slice(raw, problems)
    return found, [f"{problem.field}: {problem.message}" for problem in problems]


@pytest.mark.parametrize(
    ("version", "device"),
    [("v1", {"name": "x", **BODY}), ("v1beta2", {"name": "x", **BODY}), ("v1beta1", {"name": "x", "basic": BODY})],
)
def test_versions_agree(version: str, device: object) -> None:
    found, problems = parsed(slice_of(device, version=version))
    assert problems == []
    assert found.pool == Pool("p", 1, 2)
    assert found.reach == NodeReach(node_name="n")
    (x,) = found.devices
    assert x.attributes == {"type": "gpu", "index": 0, "ecc": False, "drv": Version("1.0.0")}
    assert x.capacity["memory"].value == Quantity.parse("80Gi")
    assert x.consumes_counters == (CounterConsumption("s", {"c": Quantity.of(1)}),)  # type: ignore[arg-type]
    assert x.taints == (Taint("k", effect="None"),)


@pytest.mark.parametrize(
    ("attribute", "value"),
    [
        ({"ints": [1, 2]}, ListValue("int", (1, 2))),
        ({"versions": ["1.0.0"]}, ListValue("version", (Version("1.0.0"),))),
        ({"bools": [True]}, ListValue("bool", (True,))),
        ({"ints": [True]}, Unset("ints")),
        ({}, Unset()),
        ({"int": 1, "string": "a"}, Unset("int, string")),
        ({"float": 1.5}, Unset("float")),
        ({"int": "1"}, Unset("int")),
        (None, Unset()),
    ],
)
def test_attribute_values(attribute: object, value: object) -> None:
    found, problems = parsed(slice_of({"name": "x", "attributes": {"a": attribute}}))
    if attribute is None:
        assert found.devices[0].attributes == {}
        return
    assert found.devices[0].attributes["a"] == value
    assert bool(problems) == isinstance(value, Unset)


def test_numbers_are_read_as_fast_as_texts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("autoscaler.kube.resource_slice._parse_attribute")
    found, problems = parsed(slice_of({"name": "x", **BODY}))
    assert problems == []
    assert found.devices[0].attributes["index"] == 0


def test_a_number_is_an_integer_of_64_bits() -> None:
    found, problems = parsed(slice_of({"name": "x", "attributes": {"index": {"int": 2**63}}}))
    assert found.devices[0].attributes["index"] == Unset("int")
    assert problems == [
        "spec.devices[0].attributes.index.int: expected a whole number, found the number 9223372036854775808"
    ]


def test_a_name_of_an_attribute_that_is_no_text_is_reported() -> None:
    found, problems = parsed(slice_of({"name": "x", "attributes": {1: {"int": 2}, "empty": None, "a": {"int": 3}}}))
    assert dict(found.devices[0].attributes) == {"a": 3}
    assert problems == ["spec.devices[0].attributes: field name 1 is not text"]


def test_binding_conditions_tell_absent_from_empty() -> None:
    found, _ = parsed(slice_of({"name": "a"}, {"name": "b", "bindingConditions": []}))
    assert [device.binding_conditions for device in found.devices] == [None, ()]


def test_fields_of_newer_versions_make_a_device_unsupported() -> None:
    found, problems = parsed(slice_of({"name": "a", "compatibilityGroups": ["x"]}))
    assert found.devices == (Device("a", unsupported=("compatibilityGroups",)),)
    assert problems == ["spec.devices[0].compatibilityGroups: unknown field 'compatibilityGroups'"]


def test_amounts_of_the_node() -> None:
    rules = {
        "cpu": {"mapping": {"capacityKey": "d/cores", "capacityMultiplier": "2"}},
        "memory": {"mapping": {"deviceMultiplier": "1Gi"}, "overhead": {"perPod": 100, "perContainer": "10Mi"}},
    }
    found, problems = parsed(slice_of({"name": "x", "nodeAllocatableResources": rules}))
    assert problems == []
    assert found.devices[0].unsupported == ()
    assert found.devices[0].node_allocatable == {
        "cpu": NodeAllocatable(NodeMapping("d/cores", Quantity.of(2))),
        "memory": NodeAllocatable(
            NodeMapping(per_device=Quantity.parse("1Gi")), NodeOverhead(Quantity.of(100), Quantity.parse("10Mi"))
        ),
    }


@pytest.mark.parametrize(
    ("fields", "unknown"),
    [
        pytest.param(
            {"nodeAllocatableResourceMappings": {"cpu": {"allocationMultiplier": "1"}}},
            "nodeAllocatableResourceMappings",
            id="the form of 1.36",
        ),
        pytest.param(
            {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": "1", "perNode": "1"}}}},
            "perNode",
            id="a part of a newer form",
        ),
        pytest.param({"nodeAllocatableResources": {"cpu": {"share": {}}}}, "share", id="another rule"),
    ],
)
def test_other_forms_of_amounts_of_the_node_make_a_device_unsupported(fields: dict[str, object], unknown: str) -> None:
    found, _ = parsed(slice_of({"name": "x", **fields}))
    assert found.devices[0].unsupported == (unknown,)


def test_request_policy() -> None:
    policy = {"default": "1Gi", "validRange": {"min": "1Gi", "step": "1Gi"}}
    capacity = {"m": {"value": "8Gi", "requestPolicy": policy}}
    found, problems = parsed(slice_of({"name": "a", "capacity": capacity}))
    assert problems == []
    gibibyte = Quantity.parse("1Gi")
    read = found.devices[0].capacity["m"].policy
    assert read is not None
    assert (read.default, read.valid_range) == (gibibyte, ValidRange(gibibyte, None, gibibyte))


def test_counters_and_selectors_of_a_slice() -> None:
    raw = slice_of(
        nodeName=None,
        nodeSelector={"nodeSelectorTerms": [{"matchExpressions": [{"key": "z", "operator": "Exists"}]}]},
        sharedCounters=[{"name": "s", "counters": {"c": {"value": "7"}}}],
    )
    found, problems = parsed(raw)
    assert problems == []
    assert found.reach.node_name is None
    assert found.reach.node_selector is not None
    assert found.shared_counters[0].counters == {"c": Quantity.of(7)}


def test_device_class() -> None:
    problems = Problems()
    raw = {
        "metadata": {"name": "gpu", "creationTimestamp": "1970-01-01T00:00:10Z"},
        "spec": {
            "selectors": [{"cel": {"expression": "true"}}, {"rego": {}}],
            "extendedResourceName": "nvidia.com/gpu",
            "config": [{"opaque": {"driver": "d", "parameters": {}}}],
        },
    }
    found = parse_device_class(raw, problems)
    assert found.selectors == (Selector("true"), Selector(None))
    assert (found.extended_resource_name, found.created) == ("nvidia.com/gpu", 10.0)
    assert {problem.field for problem in problems} == {"spec.selectors[1].cel", "spec.selectors[1].rego"}


def test_device_taint_rule() -> None:
    problems = Problems()
    raw = {
        "metadata": {"name": "r"},
        "spec": {
            "deviceSelector": {"driver": "d", "deviceClassName": "c"},
            "taint": {"key": "k", "value": "v", "effect": "NoExecute"},
        },
    }
    found = parse_device_taint_rule(raw, problems)
    assert (found.taint, found.driver, found.pool) == (Taint("k", "v", "NoExecute"), "d", None)
    assert found.unsupported == ("deviceClassName",)
    assert found.has_selector
    del raw["spec"]["deviceSelector"]
    assert not parse_device_taint_rule(raw, problems).has_selector


@pytest.mark.parametrize(
    ("written", "stored"), [("1.5Gi", "1536Mi"), ("80.0", "80"), (80.0, "80"), ("1000m", "1"), ("1024Mi", "1Gi")]
)
def test_amounts_have_the_form_of_the_api_server(written: object, stored: str) -> None:
    device = {"name": "x", "capacity": {"m": {"value": written, "requestPolicy": {"default": written}}}}
    found, problems = parsed(slice_of(device))
    assert problems == []
    capacity = found.devices[0].capacity["m"]
    assert capacity.value.same_form(Quantity.parse(stored))
    assert capacity.policy is not None
    assert capacity.policy.default is not None
    assert capacity.policy.default.same_form(Quantity.parse(stored))
