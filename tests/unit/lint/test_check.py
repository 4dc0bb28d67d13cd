"""What lint says about claims and classes, on the devices of a few instance types."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

from autoscaler.lint.check import lint
from autoscaler.lint.devices.effort import Effort
from autoscaler.lint.devices.offers import Offer, offers_of, type_offers
from autoscaler.lint.releases import names_of_releases
from autoscaler.lint.rules import Finding
from autoscaler.lint.subjects import subject_of
from autoscaler.model.device_class import DeviceClass, DeviceTaintRule, Selector
from autoscaler.model.origin import Origin
from autoscaler.model.snapshot import Snapshot
from instance_catalog.drivers.facts import builtin_device_classes
from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.files.loader import load_catalog
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.profile import REFERENCE, KubernetesProfile, profile_for
from instance_catalog.kubernetes.resource_slice import Device, Pool, ResourceSlice
from instance_catalog.kubernetes.taint import Taint

TYPES = ("p5.48xlarge", "p4d.24xlarge", "g6.xlarge", "a3-highgpu-8g")
GPU = 'device.attributes["gpu.nvidia.com"]'
GPU_CAPACITY = 'device.capacity["gpu.nvidia.com"]'


@cache
def offers() -> tuple[Offer, ...]:
    catalog = load_catalog()
    return tuple(offer for name in TYPES for offer in type_offers(catalog.get(name), REFERENCE))


def claim(*requests: dict[str, Any], name: str = "gpu", **devices: Any) -> dict[str, Any]:
    """A v1 ResourceClaim; requests are the fields of `exactly`, named r0, r1, …"""
    listed = [{"name": f"r{index}", "exactly": exactly} for index, exactly in enumerate(requests)]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "ml"},
        "spec": {"devices": {"requests": listed, **devices}},
    }


def request(*expressions: str, device_class: str = "gpu.nvidia.com", **fields: Any) -> dict[str, Any]:
    selectors = [{"cel": {"expression": text}} for text in expressions]
    return {"deviceClassName": device_class, "selectors": selectors, **fields}


def device_class(*expressions: str) -> dict[str, Any]:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "mine"},
        "spec": {"selectors": [{"cel": {"expression": text}} for text in expressions]},
    }


def found(
    *objects: dict[str, Any], profile: KubernetesProfile = REFERENCE, effort: Effort | None = None, **snapshot: Any
) -> tuple[Finding, ...]:
    subjects = [s for o in objects if (s := subject_of(o, o["metadata"]["name"], Origin("a.yaml", 7))) is not None]
    builtin = [DeviceClass(r.name, tuple(map(Selector, r.selectors))) for r in builtin_device_classes(profile)]
    mine = [
        DeviceClass(o["metadata"]["name"], tuple(Selector(s["cel"]["expression"]) for s in o["spec"]["selectors"]))
        for o in objects
        if o["kind"] == "DeviceClass"
    ]
    world = Snapshot(profile=profile, classes=(*builtin, *mine), **snapshot)
    return lint(subjects, world, offers(), effort=effort)


def rules(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.rule.id for finding in findings]


CLEAN = {
    "no selector": claim(request()),
    "product": claim(request(f'{GPU}.productName == "NVIDIA H100 80GB HBM3"')),
    "guarded": claim(request(f'has({GPU}.uuid) && {GPU}.architecture == "Hopper"')),
    "eight": claim(request(count=8)),
    "nic and gpu on one root": claim(
        request(),
        request(device_class="dra.net"),
        constraints=[{"matchAttribute": "resource.kubernetes.io/pcieRoot", "requests": ["r0", "r1"]}],
    ),
    "guarded class": device_class(f'device.driver == "gpu.nvidia.com" && {GPU}.type == "gpu"'),
    "class guarded by domain": device_class('"gpu.nvidia.com" in device.attributes'),
}


@pytest.mark.parametrize("written", CLEAN.values(), ids=CLEAN)
def test_sound_objects_have_no_findings(written: dict[str, Any]) -> None:
    assert found(written) == ()


MISTAKES: dict[str, tuple[dict[str, Any], str, str, str]] = {
    "does not compile": (
        claim(request(f'{GPU_CAPACITY}.memory > quantity("40Gi")')),
        "cel-compile",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "isGreaterThan",
    ),
    "estimated cost": (
        claim(request(f'{GPU_CAPACITY}.memory != quantity("80G")')),
        "cel-cost",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "!(a == b)",
    ),
    "too long": (
        claim(request("true || " * 1400 + "true")),
        "cel-size",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "split",
    ),
    "arithmetic on a capacity": (
        claim(request(f'{GPU_CAPACITY}.memory.sub(1).isGreaterThan(quantity("1Gi"))')),
        "cel-unreliable",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "compareTo",
    ),
    "product does not exist": (
        claim(request(f'{GPU}.architecture == "Hoper"')),
        "never-matches",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "did you mean 'Hopper'?",
    ),
    "too much memory": (
        claim(request(f'{GPU}.architecture == "Hopper"', f'{GPU_CAPACITY}.memory.isGreaterThan(quantity("99Gi"))')),
        "never-matches",
        "spec.devices.requests[0].exactly.selectors[1].cel.expression",
        "memory = 81152Mi, 81559Mi",
    ),
    "uuid": (
        claim(request(f'{GPU}.uuid == "GPU-1"')),
        "run-time-only",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "matchAttribute",
    ),
    "more than a node has": (
        claim(request(f'{GPU}.architecture == "Hopper"', count=9)),
        "more-than-a-node",
        "spec.devices.requests[0].exactly.count",
        "fewer",
    ),
    "bare name": (
        claim(request(), constraints=[{"matchAttribute": "productName"}]),
        "unqualified-name",
        "spec.devices.constraints[0].matchAttribute",
        "gpu.nvidia.com/productName",
    ),
    "constraint on an unknown attribute": (
        claim(request(), constraints=[{"matchAttribute": "gpu.nvidia.com/computeDomain"}]),
        "unknown-attribute",
        "spec.devices.constraints[0].matchAttribute",
        "compute-domain.nvidia.com",
    ),
    "constraint on what the devices lack": (
        claim(
            request(device_class="compute-domain-default-channel.nvidia.com"),
            request(),
            constraints=[{"distinctAttribute": "resource.kubernetes.io/pcieRoot"}],
        ),
        "constraint-unmet",
        "spec.devices.constraints[0].distinctAttribute",
        "requests",
    ),
    "misspelt attribute behind a guard": (
        claim(request(f'!has({GPU}.productname) || {GPU}.type == "gpu"')),
        "unknown-attribute",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "did you mean gpu.nvidia.com/productName?",
    ),
    "qualified name as domain": (
        claim(request('!has(device.attributes["dra.net/rdma"].bool)')),
        "unknown-attribute",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        'read device.attributes["dra.net"].rdma',
    ),
    "capacity read as attribute": (
        claim(request(f"!has({GPU}.memory)")),
        "unknown-attribute",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "read device.capacity",
    ),
    "capacity request": (
        claim(request(capacity={"requests": {"memry": "4Gi"}})),
        "unknown-attribute",
        "spec.devices.requests[0].exactly.capacity.requests.memry",
        "did you mean gpu.nvidia.com/memory?",
    ),
    "driver misspelt": (
        claim(request('device.driver == "gpu.nvida.com"')),
        "unknown-driver",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "did you mean 'gpu.nvidia.com'?",
    ),
    "driver without prediction": (
        claim(request('device.attributes["gpu.amd.com"].family == "AI"', device_class="gpu.amd.com")),
        "driver-not-predicted",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "ResourceSlices",
    ),
    "driver of one's own": (
        device_class('device.driver == "acme.example.com" && device.attributes["acme.example.com"].size == 3'),
        "driver-not-predicted",
        "spec.selectors[0].cel.expression",
        "ResourceSlices",
    ),
    "domain misspelt": (
        claim(request('!has(device.attributes["gpu.nvidia.co"].type)')),
        "unknown-attribute",
        "spec.devices.requests[0].exactly.selectors[0].cel.expression",
        "did you mean 'gpu.nvidia.com'?",
    ),
    "allocation mode": (
        claim(request(allocationMode="Most")),
        "invalid-object",
        "spec.devices.requests[0].exactly.allocationMode",
        "ExactCount or All",
    ),
    "admin access": (
        claim(request(adminAccess=True)),
        "admin-namespace",
        "spec.devices.requests[0].exactly.adminAccess",
        "label the namespace",
    ),
    "class for everything": (device_class(), "unguarded-class", "spec", "add a selector"),
    "class that lets strangers in": (
        device_class(f'!has({GPU}.type) || {GPU}.type == "gpu"'),
        "unguarded-class",
        "spec.selectors[0].cel.expression",
        "device.driver ==",
    ),
}


@pytest.mark.parametrize(("written", "rule", "place", "fix"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_are_found_with_place_and_fix(written: dict[str, Any], rule: str, place: str, fix: str) -> None:
    (finding,) = found(written)
    assert (finding.rule.id, finding.diagnostic.field) == (rule, place)
    assert fix in finding.diagnostic.next_step
    assert finding.diagnostic.place == "a.yaml:7"


def test_a_class_that_reads_without_guard_fails_on_the_devices_beside() -> None:
    (finding,) = found(device_class(f'{GPU}.type == "gpu"'))
    assert finding.rule.id == "selector-fails"
    assert "p5.48xlarge" in finding.diagnostic.message
    assert "no such key: type" in finding.diagnostic.message
    assert finding.diagnostic.next_step == 'put `device.driver == "gpu.nvidia.com" && …` in front'


def test_no_guard_is_proposed_for_a_name_that_no_device_has() -> None:
    """Behind it nothing would match: releases of the driver have dropped the attribute."""
    findings = found(claim(request(f"{GPU}.index == 0")))
    steps = [one.diagnostic.next_step for one in findings if "no such key" in one.diagnostic.message]
    assert steps == [
        "drop it: no device has gpu.nvidia.com/index, or name a release that publishes it in spec.drivers.profiles of "
        "a CapacityPool"
    ]


def test_an_attribute_of_partitions_fails_on_types_that_are_whole() -> None:
    (finding,) = found(claim(request(f'{GPU_CAPACITY}.multiprocessors.isGreaterThan(quantity("50"))')))
    assert finding.rule.id == "selector-fails-elsewhere"
    assert finding.diagnostic.next_step == 'guard it: `has(device.capacity["gpu.nvidia.com"].multiprocessors) && …`'


def test_an_attribute_of_an_old_release_names_the_release() -> None:
    catalog = load_catalog()
    subject = subject_of(claim(request(f"has({GPU}.index) && {GPU}.index == 0")), "x", Origin())
    assert subject is not None
    classes = (DeviceClass("gpu.nvidia.com", (Selector('device.driver == "gpu.nvidia.com"'),)),)
    findings = lint([subject], Snapshot(classes=classes), offers(), releases=names_of_releases(catalog, REFERENCE))
    assert rules(findings) == ["unknown-attribute", "never-matches"]
    assert "nvidia@v25.3.2" in findings[0].diagnostic.message


def test_a_pool_with_the_old_release_makes_it_right() -> None:
    catalog = load_catalog()
    old = parse_driver_set("nvidia@v25.3.2")
    subject = subject_of(claim(request(f"has({GPU}.index) && {GPU}.index == 0")), "x", Origin())
    assert subject is not None
    classes = (DeviceClass("gpu.nvidia.com", (Selector('device.driver == "gpu.nvidia.com"'),)),)
    assert lint([subject], Snapshot(classes=classes), offers_of(catalog, old, REFERENCE)) == ()


def test_the_scheduler_gives_a_claim_at_most_32_devices() -> None:
    findings = found(claim(request(count=8), *[request(count=5, device_class="dra.net")] * 5))
    assert rules(findings) == ["too-many-devices"]
    assert "33" in findings[0].diagnostic.message


def test_alternatives_count_by_the_smallest() -> None:
    written = claim()
    alternatives = [{"name": f"a{n}", "deviceClassName": "dra.net", "count": n} for n in (32, 1)]
    written["spec"]["devices"]["requests"] = [
        {"name": "one", "firstAvailable": alternatives},
        {"name": "two", "exactly": request(device_class="dra.net", count=31)},
    ]
    assert found(written) == ()


def test_lists_have_limits() -> None:
    tolerations = [{"key": f"k{n}", "operator": "Exists"} for n in range(17)]
    findings = found(claim(*[request()] * 33, constraints=[{"matchAttribute": "gpu.nvidia.com/type"}] * 33))
    assert rules(findings) == ["too-many-entries", "too-many-entries", "too-many-devices"]
    assert [f.diagnostic.field for f in found(claim(request(tolerations=tolerations)))] == [
        "spec.devices.requests[0].exactly.tolerations"
    ]


def test_gates_that_are_off_are_named() -> None:
    findings = found(claim(request(capacity={"requests": {"memory": "4Gi"}})), profile=profile_for("1.34"))
    assert rules(findings) == ["feature-off"]
    assert "DRAConsumableCapacity" in findings[0].diagnostic.message


def test_taints_that_rules_put_on_matching_devices_need_a_toleration() -> None:
    rule = DeviceTaintRule("drain", Taint("maintenance", "", "NoSchedule"), driver="gpu.nvidia.com")
    newer = profile_for("1.37")
    (finding,) = found(claim(request()), taint_rules=(rule,), profile=newer)
    assert finding.rule.id == "missing-toleration"
    assert "all matching devices carry the taint maintenance:NoSchedule" in finding.diagnostic.message
    tolerant = claim(request(tolerations=[{"key": "maintenance", "operator": "Exists"}]))
    assert found(tolerant, taint_rules=(rule,), profile=newer) == ()
    assert found(claim(request()), taint_rules=(rule,)) == ()  # the gate is off in 1.36


def test_published_slices_count_as_devices() -> None:
    expression = 'device.attributes["gpu.amd.com"].family == "AI"'
    device = Device("gpu-0", FrozenMap({"family": "AI"}))
    slices = (ResourceSlice("s", "gpu.amd.com", Pool("node-1"), (device,)),)
    assert found(claim(request(expression, device_class="gpu.amd.com")), slices=slices) == ()


def test_versions_should_not_be_mixed() -> None:
    flat = claim(name="flat")
    flat["apiVersion"] = "resource.k8s.io/v1beta1"
    flat["spec"]["devices"]["requests"] = [{"name": "r0", **request(f'{GPU}.architecture == "Hoper"')}]
    findings = found(claim(request()), flat)
    assert rules(findings) == ["mixed-versions", "never-matches"]
    assert findings[0].diagnostic.subject == "flat"
    assert findings[1].diagnostic.field == "spec.devices.requests[0].selectors[0].cel.expression"


def test_a_template_is_linted_without_a_pod() -> None:
    template = claim(request(f'{GPU}.architecture == "Hoper"'))
    template |= {"kind": "ResourceClaimTemplate", "spec": {"spec": template["spec"]}}
    (finding,) = found(template)
    assert finding.diagnostic.field == "spec.spec.devices.requests[0].exactly.selectors[0].cel.expression"


def test_what_an_api_server_has_accepted_is_judged_as_the_scheduler_does() -> None:
    stored = claim(request(f'{GPU_CAPACITY}.memory != quantity("80G")'))
    stored["metadata"]["uid"] = "4b1f"
    assert found(stored) == ()


def test_a_misspelt_product_gets_the_nearest_known_one_where_the_catalog_has_gaps() -> None:
    catalog = load_catalog()
    more = tuple(type_offers(catalog.get("g4-standard-12"), REFERENCE))
    subject = subject_of(claim(request(f'{GPU}.productName == "NVIDIA H100 80GB HBM"')), "x", Origin())
    assert subject is not None
    classes = (DeviceClass("gpu.nvidia.com", (Selector('device.driver == "gpu.nvidia.com"'),)),)
    (finding,) = lint([subject], Snapshot(classes=classes), (*offers(), *more))
    assert finding.rule.id == "catalog-gap"
    assert "did you mean 'NVIDIA H100 80GB HBM3'?" in finding.diagnostic.next_step


LOOP = (
    "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(a, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9].all(b, [0, 1, 2, 3].all(c, a + b + c < 99)))"
)


def test_selectors_that_take_too_much_work_are_not_tried_and_it_is_said() -> None:
    (finding,) = found(claim(request(LOOP)), effort=Effort(allowed=1_000))
    assert (finding.rule.id, finding.diagnostic.field) == ("not-tried", "spec.devices.requests[0].exactly.selectors")
    (finding,) = found(device_class(LOOP), effort=Effort(allowed=1_000))
    assert (finding.rule.id, finding.diagnostic.field) == ("not-tried", "spec.selectors")


def test_looking_for_the_closest_device_ends_with_the_effort() -> None:
    (finding,) = found(claim(request(f"false && {LOOP}")), effort=Effort(allowed=1_000))
    assert (finding.rule.id, finding.diagnostic.message) == ("never-matches", "no device of the catalog meets it")


def test_ordinary_selectors_take_no_effort() -> None:
    (finding,) = found(claim(request(f'{GPU}.architecture == "Hoper"')), effort=Effort(allowed=1))
    assert finding.diagnostic.next_step == "did you mean 'Hopper'?"
