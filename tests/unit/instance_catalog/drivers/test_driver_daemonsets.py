"""`Auto`: driver profiles from the DaemonSets that run."""

from __future__ import annotations

from typing import Any

import pytest

from instance_catalog.drivers.daemonsets import profiles_from_daemonsets
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.drivers.recognition import driver_recognition

NVIDIA = "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu"
GPU = "gpu-kubelet-plugin"
SHELL = ["bash", "-c"]


def container(image: str, *args: str, command: list[str] | None = None, **environment: str) -> dict[str, Any]:
    return {
        "name": "plugin",
        "image": image,
        "command": command or [],
        "args": list(args),
        "env": [
            {"name": "NODE_NAME", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
            *({"name": name, "value": value} for name, value in environment.items()),
        ],
    }


def daemonset(*containers: dict[str, Any], name: str = "driver", namespace: str = "dra") -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": {"containers": list(containers)}}},
    }


def test_the_nvidia_chart_runs_two_drivers_in_one_daemonset() -> None:
    gates = "DynamicMIG=true,ContextualLogging=true,"
    found = profiles_from_daemonsets(
        [
            daemonset(
                container(
                    f"{NVIDIA}:v0.4.1",
                    "if true; then\n  true\nfi\ncompute-domain-kubelet-plugin -v 4",
                    command=SHELL,
                    FEATURE_GATES=gates,
                ),
                container(f"{NVIDIA}:v0.4.1", "gpu-kubelet-plugin -v 4", command=SHELL, FEATURE_GATES=gates),
            )
        ]
    )
    assert (found.text, found.notes) == ("nvidia:dynamic-mig,compute-domain", ())


# As the chart aws-dranet passes it.
AWS_FILTER = (
    '--filter=(!("dra.net/type" in attributes) || attributes["dra.net/type"].StringValue != "veth") && '
    '(!("dra.net/pciDevice" in attributes) || '
    'attributes["dra.net/pciDevice"].StringValue != "Elastic Network Adapter (ENA)")'
)


@pytest.mark.parametrize(
    ("manifest", "text"),
    [
        (container("nvcr.io/nvidia/k8s-dra-driver-gpu:v25.8.1", command=[GPU]), "nvidia@v25.8.1"),
        (
            container(f"{NVIDIA}:v0.4.0@sha256:{'0' * 64}", "--feature-gates=MPSSupport=true", command=["/bin/" + GPU]),
            "nvidia@v0.4.0:MPSSupport=true",
        ),
        (
            container(f"{NVIDIA}:v0.4.1", "--feature-gates", "$(GATES)", command=[GPU], GATES="MPSSupport=True"),
            "nvidia:MPSSupport=true",
        ),
        # As the GPU Operator renders it for a GPUCluster (v26.7.0): a shell that starts the plugin.
        (
            container(
                "nvcr.io/nvidia/dra-driver-nvidia-gpu:v0.5.0", "set -a\nexec gpu-kubelet-plugin -v 4",
                command=["bash", "-c"], FEATURE_GATES="PassthroughSupport=true",
            ),
            "nvidia@v0.5.0:PassthroughSupport=true",
        ),
        (container("localhost:5000/networking/dranet:v1.3.0", "/dranet", "--v=4"), "dranet@v1.3.0"),
        (
            container("ecr.example.com/eks/dranet:v1.2.0-eksbuild.2", "/dranet", AWS_FILTER),
            "dranet@v1.2.0:no-ena",
        ),
        (
            container("ecr.example.com/eks/networking-device-dra-plugin:v1.0.0", command=["aws-net-k8s-dra-plugin"]),
            "aws-net",
        ),
        (container("dranet:v1.4.0", "/dranet", '--filter=attributes["dra.net/type"].StringValue != "veth"'), "dranet"),
        (
            container(
                f"{NVIDIA}:v0.5.0", command=[GPU], FEATURE_GATES="ConsumableShares=true", CONSUMABLE_SHARES="4"
            ),
            "nvidia@v0.5.0:consumable-shares=4:ConsumableShares=true",
        ),
        (container(f"{NVIDIA}:v0.4.1", command=[GPU], CONSUMABLE_SHARES="4"), "nvidia"),
        (
            container(
                f"{NVIDIA}:v0.5.0", command=[GPU], FEATURE_GATES="ConsumableShares=true",
                CONSUMABLE_SHARES="disabled",
            ),
            "nvidia@v0.5.0:ConsumableShares=true",
        ),
        (
            container(
                f"{NVIDIA}:v0.5.0", command=["compute-domain-kubelet-plugin"], IMEX_MODE="hostManaged",
                FEATURE_GATES="HostManagedIMEXDaemon=true,DynamicMIG=true,ComputeDomainCliques=true",
            ),
            "compute-domain@v0.5.0:imex-mode=hostManaged:HostManagedIMEXDaemon=true",
        ),
        (
            container("rocm/k8s-gpu-dra-driver:v1.0.1", "--feature-gates=AutoPartition=true"),
            "amd:AutoPartition=true",
        ),
        (
            container(
                "dra-driver-cpu:v0.2.0", "/dracpu", "--cpu-device-mode=grouped", "--group-by=socket",
                "--reserved-cpus=0-1,48", "--expose-pcie-roots",
            ),
            "dra-cpu:group-by=socket:reserved=0-1+48:pcie-roots",
        ),
        (container("ghcr.io/intel/intel-gpu-resource-driver:v0.11.0", command=["/kubelet-gpu-plugin"]), "intel-gpu"),
        (container("ghcr.io/intel/intel-gaudi-resource-driver:v0.7.2", command=["/kubelet-gaudi-plugin"]), "gaudi"),
        (container("dra-example-driver:v0.2.0", NUM_DEVICES="4"), "example@v0.2.0:devices=4"),
        (
            container(
                "dra-example-driver:v0.4.0", NUM_DEVICES="8", GPU_PARTITIONS="4", GPU_ALLOW_MULTIPLE_ALLOCATIONS="true",
                BINDING_CONDITIONS="true",
            ),
            "example:partitions=4:shared:binding-conditions",
        ),
        (
            container(
                "dra-example-driver:v0.4.0", NUM_DEVICES="8", GPU_PARTITIONS="0", BINDING_CONDITIONS="false",
                GPU_ALLOW_MULTIPLE_ALLOCATIONS="false",
            ),
            "example",
        ),
        (container("registry.k8s.io/dra-driver-google-tpu:v0.2.0", command=["tpu-dra-kubeletplugin"]), "tpu"),
        (container("public.ecr.aws/neuron/neuron-dra-driver:2026.6"), "neuron"),
    ],
    ids=[
        "old image name", "digest and argument", "variable in argument", "GPUCluster", "registry with port",
        "the chart of AWS", "the other chart of AWS", "another filter", "shares",
        "shares without gate", "shares disabled", "host-managed IMEX", "amd", "cpu", "intel", "gaudi", "example",
        "example with everything", "example by its chart", "tpu", "without v",
    ],
)  # fmt: skip
def test_a_driver_is_read_from_its_container(manifest: dict[str, Any], text: str) -> None:
    found = profiles_from_daemonsets([daemonset(manifest)])
    assert (found.text, found.notes) == (text, ())


@pytest.mark.parametrize(
    ("manifest", "text", "note"),
    [
        (container("dranet:stable"), "dranet", "image dranet:stable of DaemonSet dra/driver names no release"),
        (container(f"dranet@sha256:{'0' * 64}"), "dranet", "image dranet of DaemonSet dra/driver names no release"),
        (
            container("dranet:v1.9.9-ubi9"), "dranet",
            "dranet v1.9.9 is not known; predicting as v1.4.0, the nearest release that is (DaemonSet dra/driver)",
        ),
        (
            container(f"{NVIDIA}:v0.4.1", command=[GPU], FEATURE_GATES="SomethingNew=true"), "nvidia",
            "gate SomethingNew of nvidia in DaemonSet dra/driver is not known; taken to change nothing",
        ),
        (
            container(f"{NVIDIA}:v0.4.1", command=[GPU], FEATURE_GATES="DynamicMIG=true,MPSSupport=true"), "",
            "DaemonSet dra/driver runs nvidia, which is left out: gates DynamicMIG and MPSSupport",
        ),
    ],
    ids=["tag without a number", "digest only", "unknown release", "unknown gate", "impossible gates"],
)  # fmt: skip
def test_what_is_assumed_is_said(manifest: dict[str, Any], text: str, note: str) -> None:
    found = profiles_from_daemonsets([daemonset(manifest)])
    assert found.text == text
    (said,) = found.notes
    assert said.startswith(note)


def test_two_daemonsets_that_run_one_driver_differently_are_told_apart() -> None:
    old = daemonset(container("dranet:v1.3.0"), name="a")
    new = daemonset(container("dranet:v1.4.0"), name="b")
    found = profiles_from_daemonsets([new, old])
    assert found.text == "dranet@v1.3.0"
    assert found.notes == (
        "dranet runs differently in DaemonSets dra/a and dra/b; the first counts. "
        "Name the drivers in the CapacityPool to decide",
    )
    assert profiles_from_daemonsets([old, old]).notes == ()


@pytest.mark.parametrize(
    "manifest",
    [
        {},
        {"spec": None},
        {"metadata": {"name": "x"}, "spec": {"template": {"spec": {"containers": [{}]}}}},
        daemonset(container("quay.io/prometheus/node-exporter:v1.9.0")),
        daemonset(container(f"{NVIDIA}:v0.4.1", command=["sleep"])),
    ],
    ids=["nothing", "no spec", "no image", "another daemon", "the image without the plugin"],
)
def test_what_is_no_driver_is_ignored(manifest: dict[str, Any]) -> None:
    found = profiles_from_daemonsets([manifest])
    assert (found.profiles, found.notes) == ((), ())


def test_every_rule_names_a_profile_and_its_options() -> None:
    for rule in driver_recognition():
        assert rule.profile in driver_facts()
        assert rule.images
        assert {option.option for option in rule.options} <= set(driver_facts()[rule.profile].options)
