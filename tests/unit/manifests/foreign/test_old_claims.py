"""Claims of v1alpha2: what is translated, and what is said to be lost."""

from __future__ import annotations

import io

import pytest

from autoscaler.manifests.load import Loaded, load

OLD_CLAIM = """apiVersion: resource.k8s.io/v1alpha2
kind: ResourceClaimTemplate
metadata: {name: g, namespace: t}
spec:
  spec:
    resourceClassName: gpu.nvidia.com
    %s
---
"""


def read(text: str, *, skip: bool = False) -> Loaded:
    return load(["-"], stdin=io.StringIO(text), skip_unknown=skip)


def problems(found: Loaded) -> str:
    return "\n".join(f"{one.severity.value}: {one.block}" for one in found.problems)


def test_count_and_class_of_inline_parameters_are_kept() -> None:
    told = problems(read(OLD_CLAIM % "parameters: {count: 4}"))
    assert "deviceClassName: gpu.nvidia.com\n" in told
    assert "count: 4" in told
    assert "cannot be kept" not in told


def test_a_mig_profile_becomes_a_selector_and_sharing_a_config() -> None:
    reference = "parametersRef: {apiGroup: gpu.resource.nvidia.com, kind: MigDeviceClaimParameters, name: m}"
    told = problems(
        read(
            OLD_CLAIM % reference + "apiVersion: gpu.resource.nvidia.com/v1alpha1\nkind: MigDeviceClaimParameters\n"
            "metadata: {name: m, namespace: t}\n"
            "spec: {profile: 1g.5gb, gpuClaimName: whole, sharing: {strategy: MPS}}\n"
        )
    )
    assert "deviceClassName: mig.nvidia.com" in told
    assert 'device.attributes["gpu.nvidia.com"].profile == "1g.5gb"' in told
    assert "kind: MigDeviceConfig" in told
    assert "strategy: MPS" in told
    assert "# cannot be kept: gpuClaimName whole: a MIG device is of any GPU; several of one GPU are" in told
    assert "requests of one claim, with matchAttribute gpu.nvidia.com/parentUUID in its constraints" in told


@pytest.mark.parametrize("selector", ["{migEnabled: true}", "{andExpression: [{index: 0}, {migEnabled: true}]}"])
def test_a_claim_of_the_gpu_of_mig_devices_is_left_out(selector: str) -> None:
    told = problems(read(OLD_CLAIM % f"parameters: {{selector: {selector}}}"))
    assert "leave it out, and its entries in pods (spec.resourceClaims" in told
    assert "deviceClassName" not in told


def test_a_claim_of_a_gpu_without_mig_is_written_for_v1() -> None:
    told = problems(read(OLD_CLAIM % "parameters: {selector: {migEnabled: false}}"))
    assert "deviceClassName: gpu.nvidia.com" in told
    assert "# cannot be kept: selector migEnabled" in told


@pytest.mark.parametrize(
    ("selector", "expression"),
    [
        ("{productName: '*a100*'}", 'productName.lowerAscii().contains("a100")'),
        ("{memory: {operator: GreaterThanOrEqualTo, value: 40Gi}}", 'memory.compareTo(quantity("40Gi")) >= 0'),
        (
            "{orExpression: [{architecture: Hopper}, {architecture: Ampere}]}",
            '(device.attributes["gpu.nvidia.com"].architecture == "Hopper" || '
            'device.attributes["gpu.nvidia.com"].architecture == "Ampere")',
        ),
        (
            "{cudaComputeCapability: {operator: GreaterThan, value: '8'}}",
            'cudaComputeCapability.compareTo(semver("8.0.0")) > 0',
        ),
    ],
)
def test_selectors_of_parameters_become_cel(selector: str, expression: str) -> None:
    assert expression in problems(read(OLD_CLAIM % f"parameters: {{selector: {selector}}}"))


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (
            "parametersRef: {kind: GpuClaimParameters, name: x}",
            "parametersRef GpuClaimParameters x, which is not among the files",
        ),
        ("parameters: {selector: {index: 3}}", "selector index"),
        ("parameters: {colour: red}", "colour of its parameters"),
        ("allocationMode: Immediate", "allocationMode Immediate"),
    ],
)
def test_what_cannot_be_kept_is_said(said: str, lost: str) -> None:
    assert f"# cannot be kept: {lost}" in problems(read(OLD_CLAIM % said))


def test_the_class_of_an_old_claim_has_to_be_given_too() -> None:
    """Unless a chart of a predicted driver installs it."""
    for name, told in (("fake.acme.org", True), ("gpu.nvidia.com", False)):
        head = "apiVersion: resource.k8s.io/v1alpha2\nkind: ResourceClaim\nmetadata: {name: c}\n"
        text = f"{head}spec: {{resourceClassName: {name}}}"
        assert (f"# give DeviceClass {name}, too: ResourceClass {name} becomes one" in problems(read(text))) == told
