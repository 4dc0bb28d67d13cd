"""Every change that a plan proposes is carried out as its text says, and the plan with it is what was promised.

The pool is written from the words alone: what the text does not say is not in it.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from autoscaler.cli.main import foreslice
from tests.golden.test_examples import WARNINGS

_ADVICE = re.compile(r"^(?P<pod>\S+/\S+?)(?: and (?P<more>\d+) more)?: (?P<change>.*?)→ (?P<result>.*)$")
LAUNCH = re.compile(r"(\d+) × (\S+) \(")
_TELLING = (
    r"(give \S+ a root disk of \S+ or more \(.*?\), say so"
    r"|say what \S+ costs(?: as [^,]*, of which no price is shipped)?) "
    r"\(`foreslice catalog set (?P<command>.*?)`\) and plan with (?P<options>--catalog DIR( --region REGION)?)"
    r"(; `foreslice catalog sync gcp` gets prices)?"
)
_ALLOWING = r"allow \S+ capacity: --allow ([a-z,-]+)"
_BY_DAEMON_SET = "(a plan knows of it by its DaemonSet, given with -f or read with --live)"
_PLUGIN_IMAGES = {
    "aws.amazon.com/neuron": "public.ecr.aws/neuron/neuron-device-plugin:2",
    "vpc.amazonaws.com/efa": "registry.example/aws-efa-k8s-device-plugin:0.5",
    "google.com/tpu": "gke.gcr.io/tpu-device-plugin:1",
    "habana.ai/gaudi": "vault.habana.ai/docker-k8s-device-plugin/docker-k8s-device-plugin:1",
    "amd.com/gpu": "docker.io/rocm/k8s-device-plugin:1",
}
TPU_SLICE = {"cloud.google.com/gke-tpu-accelerator": "tpu-v5-lite-podslice", "cloud.google.com/gke-tpu-topology": "4x4"}
TPU7X = {
    "cloud.google.com/gke-tpu-accelerator": "tpu7x",
    "cloud.google.com/gke-tpu-topology": "4x4x4",
    "cloud.google.com/gke-tpu-slice": "mine",
}
L4 = {"cloud.google.com/gke-accelerator": "nvidia-l4", "cloud.google.com/gke-gpu-driver-version": "disabled"}
TPU_HOST = {**TPU_SLICE, "cloud.google.com/gke-tpu-topology": "2x2"}


def template(resources: dict[str, Any], **spec: Any) -> dict[str, Any]:
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"limits": resources}}
    return {"metadata": {"labels": {"app": "x"}}, "spec": {"containers": [container], **spec}}


def workload(kind: str, version: str, spec: dict[str, Any], **metadata: Any) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "x", **metadata}, "spec": spec}


CHIPS, NEURON = {"google.com/tpu": 4}, {"aws.amazon.com/neuron": 1}
SELECTOR = {"selector": {"matchLabels": {"app": "x"}}}
WAITING = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}
TPU_V4 = {"cloud.google.com/gke-tpu-accelerator": "tpu-v4-podslice", "cloud.google.com/gke-tpu-topology": "2x2x2"}
ONE_HOST = {"cloud.google.com/gke-tpu-topology": "2x2x1"}
ONE_NODE_POOL = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "cloud.google.com/gke-nodepool"}
    ]
}
CASES = {
    "LeaderWorkerSet": workload(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/v1",
        {"replicas": 2, "leaderWorkerTemplate": {"size": 4, "workerTemplate": template(CHIPS, nodeSelector=TPU_SLICE)}},
    ),
    "StatefulSet with an unfilled slice": workload(
        "StatefulSet",
        "apps/v1",
        {"replicas": 3, "serviceName": "x", "template": template(CHIPS, nodeSelector=TPU_SLICE), **SELECTOR},
    ),
    "Deployment on one host": workload(
        "Deployment", "apps/v1", {"replicas": 2, "template": template(CHIPS, nodeSelector=TPU_HOST), **SELECTOR}
    ),
    "Job that waits for a volume": workload(
        "Job",
        "batch/v1",
        {
            "template": template(
                {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 8}, restartPolicy="Never", **WAITING
            )
        },
    ),
    "Job on Gaudi with EFA": workload(
        "Job",
        "batch/v1",
        {"template": template({"habana.ai/gaudi": 8, "vpc.amazonaws.com/efa": 4}, restartPolicy="Never")},
    ),
    "Ray workers with several hosts": workload(
        "RayCluster",
        "ray.io/v1",
        {
            "headGroupSpec": {"template": template({"cpu": 2})},
            "workerGroupSpecs": [
                {
                    "groupName": "tpu",
                    "replicas": 1,
                    "numOfHosts": 4,
                    "template": template({**CHIPS, "cpu": 8}, nodeSelector=TPU_SLICE),
                }
            ],
        },
    ),
    "Gang with a node group of its own": workload(
        "LeaderWorkerSet",
        "leaderworkerset.x-k8s.io/v1",
        {
            "leaderWorkerTemplate": {
                "size": 2,
                "workerTemplate": template(
                    {"aws.amazon.com/neuron": 16, "vpc.amazonaws.com/efa": 8}, nodeSelector={"instance-type": "large"}
                ),
            }
        },
        annotations={"leaderworkerset.sigs.k8s.io/exclusive-topology": "eks.amazonaws.com/nodegroup"},
    ),
    "disk that is larger than those assumed": workload(
        "Deployment",
        "apps/v1",
        {
            "template": template(
                {"nvidia.com/gpu": 4, "cpu": 10, "memory": "80Gi", "ephemeral-storage": "80Gi"}, nodeSelector=L4
            ),
            **SELECTOR,
        },
    ),
    "slice that people name, of a TPU without a price": workload(
        "Job",
        "batch/v1",
        {
            "completions": 16,
            "parallelism": 16,
            "completionMode": "Indexed",
            "template": template(CHIPS, nodeSelector=TPU7X, restartPolicy="Never"),
        },
    ),
    "Spot in a region without a price of it": workload(
        "Deployment",
        "apps/v1",
        {
            "template": template(
                {"nvidia.com/gpu": 8},
                nodeSelector={
                    "cloud.google.com/gke-accelerator": "nvidia-h100-mega-80gb",
                    "cloud.google.com/gke-spot": "true",
                    "cloud.google.com/gke-gpu-driver-version": "disabled",
                    "topology.kubernetes.io/zone": "us-central1-c",
                },
            ),
            **SELECTOR,
        },
    ),
    "flex-start, of which no price is shipped, in a node pool": workload(
        "Deployment",
        "apps/v1",
        {
            "template": template(
                {"nvidia.com/gpu": 8},
                nodeSelector={
                    "cloud.google.com/gke-flex-start": "true",
                    "cloud.google.com/gke-nodepool": "a3-ultragpu-8g-pool",
                },
            ),
            **SELECTOR,
        },
    ),
    "Job whose pods have to be in one node pool": workload(
        "Job",
        "batch/v1",
        {
            "completions": 2,
            "parallelism": 2,
            "completionMode": "Indexed",
            "template": template(
                CHIPS, nodeSelector=TPU_V4, affinity={"podAffinity": ONE_NODE_POOL}, restartPolicy="Never"
            ),
        },
    ),
    "JobSet with a node pool of its own": workload(
        "JobSet",
        "jobset.x-k8s.io/v1alpha2",
        {
            "replicatedJobs": [
                {
                    "name": "slice",
                    "template": {
                        "spec": {
                            "template": template(CHIPS, nodeSelector={**TPU_V4, **ONE_HOST}, restartPolicy="Never")
                        }
                    },
                }
            ]
        },
        annotations={"alpha.jobset.sigs.k8s.io/exclusive-topology": "cloud.google.com/gke-nodepool"},
    ),
    "other scheduler, labels of people": workload(
        "Deployment",
        "apps/v1",
        {"template": template(NEURON, nodeSelector={"team": "a", "disk": "b"}, schedulerName="mine"), **SELECTOR},
    ),
}


def planned(*files: Path, form: str = "table", options: Sequence[str] = ()) -> str:
    arguments = [part for file in files for part in ("-f", str(file))]
    return CliRunner().invoke(foreslice, ["plan", *arguments, *options, "-o", form], catch_exceptions=False).stdout


def told(change: str, directory: Path) -> tuple[str, list[str]]:
    """The change without what the catalog is told, which is carried out, and the options that give it to a plan."""
    words = {"DIR": str(directory), "WHY": "test", "DOLLARS": "7", "REGION": "us-central1"}
    options: list[str] = []
    for match in re.finditer(_TELLING, change):
        text = f"{match['command']} {match['options']}"
        filled = re.sub("DIR|WHY|DOLLARS|REGION", lambda found: words[found[0]], text)
        command, _, after = filled.partition(" --catalog ")
        result = CliRunner().invoke(foreslice, ["catalog", "set", *command.split()], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        options += ["--catalog", *after.split()]
    for allowed in re.findall(_ALLOWING, change):
        options += ["--allow", allowed]
    return re.sub(_ALLOWING, "", re.sub(_TELLING, "", change)), options


def proposals(text: str) -> list[re.Match[str]]:
    """The lists below the heading, one line each: pods, steps with "; " between them, and the result."""
    _, found, section = text.partition("Smallest change that places it\n")
    section = re.sub(r"\n {8,}", " ", section.partition("\n\n")[0]) if found else ""
    lists = re.split(r"\n?^  (?=\S)", re.sub(r"\n    (?=\()", "; ", section), flags=re.MULTILINE)
    lines = (" ".join(part.partition("\n    note:")[0].split()).replace(":; (1)", ": (1)") for part in lists)
    return [match for line in lines if (match := _ADVICE.match(line))]


def carried_out(change: str) -> list[dict[str, Any]] | None:
    """What a person writes who does what the text says; None where that changes another object."""
    objects: list[dict[str, Any]] = []
    rest = change
    if pool := re.search(r"create a CapacityPool with ([^;]*)", rest):
        objects += _pool(pool[1])
        rest = rest.replace(pool[0], "")
    for plugin in re.findall(r"run the device plugin of (\S+)", rest):
        objects.append(_plugin(plugin.rstrip(";")))
    for claim in re.findall(r"pod \S+: create PersistentVolumeClaim (\S+) \(.*?\)", rest):
        objects += _volume(*claim.split("/"))
    rest = rest.replace(_BY_DAEMON_SET, "")
    rest = re.sub(r"run the device plugin of \S+|pod \S+: create PersistentVolumeClaim \S+ \(.*?\)", "", rest)
    return objects if re.fullmatch(r"(;|and|\(\d\)|\s)*", rest) else None


def _pool(words: str) -> list[dict[str, Any]]:
    limit = re.match(r"spec.limits.nodes (\d+) or more\b", words)
    assert limit, words
    spec: dict[str, Any] = {"limits": {"nodes": int(limit[1])}}
    if "spec.scope.pods All" in words:
        spec.setdefault("scope", {})["pods"] = "All"
    if label := re.search(r"spec.scope.pods Selected \(podSelector: \{matchLabels: \{(\S+): (\S+)\}\}\)", words):
        spec["scope"] = {"pods": "Selected", "podSelector": {"matchLabels": {label[1]: label[2]}}}
    if scheduler := re.search(r"(\S+) in spec.scope.schedulerNames", words):
        spec.setdefault("scope", {})["schedulerNames"] = [scheduler[1]]
    if labels := re.search(r"((?:\S+=\S+ )+)in spec.labels", words):
        spec["labels"] = dict(pair.rstrip(",").split("=") for pair in labels[1].split())
    if required := re.findall(r"(\S+) In \[(.+?)\] in spec.requirements", words):
        spec["requirements"] = [{"key": k, "operator": "In", "values": v.split(", ")} for k, v in required]
    if kinds := re.search(r"spec.capacityTypes \[(.*?)\]", words):
        spec["capacityTypes"] = kinds[1].split(",")
    if drivers := re.search(r"spec.drivers.profiles \[(.*?)\]", words):
        spec["drivers"] = {"profiles": drivers[1].split(", ")}
    if "spec.fractional Allow" in words:
        spec["fractional"] = "Allow"
    written = []
    if group := re.search(r"(\S+) alone in spec.nodePools of a GCPNodeTemplate", words):
        spec["nodeTemplateRef"] = {"kind": "GCPNodeTemplate", "name": "new"}
        cluster = {"name": "c", "location": "us-central1"}
        written = [custom_object("GCPNodeTemplate", {"cluster": cluster, "nodePools": [group[1].lower()]})]
    return [*written, custom_object("CapacityPool", spec)]


def custom_object(kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "foreslice.dev/v1alpha1", "kind": kind, "metadata": {"name": "new"}, "spec": spec}


def _plugin(resource: str) -> dict[str, Any]:
    name = resource.partition("/")[2]
    content = {"containers": [{"name": name, "image": _PLUGIN_IMAGES[resource]}]}
    spec = {
        "selector": {"matchLabels": {"app": name}},
        "template": {"metadata": {"labels": {"app": name}}, "spec": content},
    }
    metadata = {"name": name, "namespace": "kube-system"}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": metadata, "spec": spec}


def _volume(namespace: str, name: str) -> list[dict[str, Any]]:
    common: dict[str, Any] = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {**common, "capacity": {"storage": "1Gi"}, "nfs": {"server": "x", "path": "/"}}
    volume["claimRef"] = {"namespace": namespace, "name": name}
    claim = {**common, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": volume},
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": namespace},
            "spec": claim,
            "status": {"phase": "Bound"},
        },
    ]


def _kept(manifest: Path, tmp_path: Path) -> int:
    """How many of the proposals were carried out, each of which kept its promise."""
    count = 0
    for number, advice in enumerate(proposals(planned(manifest))):
        rest, options = told(advice["change"], tmp_path / f"catalog-{number}")
        objects = carried_out(rest)
        if objects is None:
            continue
        written = tmp_path / f"{number}.yaml"
        written.write_text(yaml.safe_dump_all(objects), encoding="utf-8")
        plan = json.loads(planned(manifest, written, form="json", options=options))
        nodes = {p["pod"]: p["node"] for p in plan["placements"]}
        assert advice["pod"] in nodes, advice["change"]
        types = {n["name"]: plan["offerings"][n["offering"]]["instanceType"] for n in plan["launches"]}
        promised = {kind: int(many) for many, kind in LAUNCH.findall(advice["result"])}
        got = Counter(types.values())
        assert types[nodes[advice["pod"]]] in promised
        assert all(got[kind] >= many for kind, many in promised.items()), (advice["result"], got)
        count += 1
    return count


@pytest.mark.parametrize("case", CASES)
def test_what_a_plan_proposes_places_the_pods(case: str, tmp_path: Path) -> None:
    manifest = tmp_path / "manifest.yaml"
    manifest.write_text(yaml.safe_dump(CASES[case]), encoding="utf-8")
    assert _kept(manifest, tmp_path) == 1


EFA_POOL = {
    "apiVersion": "foreslice.dev/v1alpha1",
    "kind": "CapacityPool",
    "metadata": {"name": "gpu"},
    "spec": {"limits": {"nodes": 10}, "drivers": {"profiles": ["nvidia", "compute-domain", "dranet"]}},
}


def test_a_pool_gives_up_the_driver_of_what_a_plugin_hands_out(tmp_path: Path) -> None:
    files = [tmp_path / "pool.yaml", Path("docs/examples/warnings/assumed-plugin.yaml")]
    files[0].write_text(yaml.safe_dump(EFA_POOL), encoding="utf-8")
    text = planned(*files)
    assert "no CapacityPool allows it" not in text
    assert "leave out spec.drivers" not in text
    (advice,) = proposals(text)
    drivers = re.search(r"pool gpu: set spec.drivers.profiles to \[(.*?)\]; \(2\) (.*)", advice["change"])
    assert drivers is not None, advice["change"]
    reason = re.sub(r"\s+", " ", text)
    assert (
        f"set spec.drivers: {{profiles: [{drivers[1]}]}}, and run the device plugin of vpc.amazonaws.com/efa" in reason
    )
    changed = {**EFA_POOL, "spec": {"limits": {"nodes": 10}, "drivers": {"profiles": drivers[1].split(", ")}}}
    plugins = carried_out(drivers[2])
    assert plugins is not None
    files[0].write_text(yaml.safe_dump_all([changed, *plugins]), encoding="utf-8")
    plan = json.loads(planned(*files, form="json"))
    assert [node["devices"]["handedOut"] for node in plan["launches"]] == [
        {"vpc.amazonaws.com/efa": {"used": 32, "free": 0}}
    ] * 2
    assert {tuple(node["drivers"]) for node in plan["launches"]} == {("nvidia", "compute-domain")}
    assert not [text for text in plan["warnings"] if "is assumed" in str(text)]


@pytest.mark.slow
def test_so_do_the_proposals_of_the_examples(tmp_path: Path) -> None:
    kept = {example.stem: _kept(example, tmp_path) for example in WARNINGS}
    assert kept["tpu-slices"] == 1
    assert kept["ray-inferentia"] == 1  # its head asks for no device
    assert sum(kept.values()) >= 7
