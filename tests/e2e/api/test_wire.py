"""Kubernetes' own Go types read the Nodes and ResourceSlices that Cluster Autoscaler gets, field for field."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from autoscaler.externalgrpc.kubernetes_types import NODE, POD, RESOURCE_SLICE
from autoscaler.externalgrpc.templates import NAME, node_manifest, slice_bytes, template_bytes
from autoscaler.externalgrpc.wire import Message, decode, encode
from autoscaler.kube.writing.slices import slice_manifest
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import Candidate, candidates_of
from autoscaler.planning.supply.hypothetical import template_of
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.prediction.concrete import make_concrete
from tests.builders import NOW, shipped
from tests.go_binary import GoProgram

_READER: Final = GoProgram(
    "wire", Path(__file__).parents[1] / "harness" / "wire", requires="k8s.io/api", takes="about a minute"
)
_TYPES: Final = ("g6.xlarge", "p5.48xlarge", "p4d.24xlarge", "a2-highgpu-1g")


def read(*asked: tuple[str, bytes]) -> list[dict[str, Any]]:
    """What Go made of each: its JSON, and the bytes that Go writes itself."""
    lines = [json.dumps({"kind": kind, "bytes": base64.b64encode(content).decode()}) for kind, content in asked]
    done = subprocess.run([str(_READER.binary())], input="\n".join(lines), capture_output=True, text=True, check=True)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(asked)
    assert not [answer for answer in answers if "error" in answer]
    return answers


def candidates(drivers: tuple[str, ...]) -> list[Candidate]:
    pool = CapacityPool("gpu", drivers=drivers, taints=(Taint("gpu", value="yes", effect="NoSchedule"),))
    snapshot = Snapshot(pools=(pool,))
    found = {c.instance_type.name: c for c in candidates_of(snapshot, shipped(*_TYPES), Policy(), now=NOW)}
    return list(found.values())


@pytest.mark.parametrize("drivers", [("nvidia",), ("nvidia@v0.4.0:dynamic-mig",), ("nvidia", "dranet")])
def test_go_reads_templates(drivers: tuple[str, ...]) -> None:
    devices = 0
    for candidate in candidates(drivers):
        node, slices = template_bytes(candidate, Snapshot())
        read_node, *read_slices = read(("Node", node), *(("ResourceSlice", piece) for piece in slices))
        template = template_of(candidate, Snapshot(), name=NAME)
        wanted = node_manifest(template.node)
        found = read_node["object"]
        assert found["metadata"]["labels"] == wanted["metadata"]["labels"]
        assert found["spec"] == wanted["spec"]
        for part in ("capacity", "allocatable"):
            assert found["status"][part] == wanted["status"][part]
        assert found["status"]["nodeInfo"]["architecture"] == candidate.instance_type.architecture
        concrete = make_concrete(template.slices, node_name=NAME, seed=NAME)
        manifests = [slice_manifest(piece) for piece in concrete]
        assert [piece["object"]["spec"] for piece in read_slices] == [one["spec"] for one in manifests]
        devices += sum(len(one["spec"].get("devices", ())) for one in manifests)
        _same_again(NODE, node, read_node)
        for piece, answer in zip(slices, read_slices, strict=True):
            _same_again(RESOURCE_SLICE, piece, answer)
    assert devices > 8


def _same_again(message: Message, ours: bytes, answer: dict[str, Any]) -> None:
    """What Go writes of it is read back as what was written: no field is lost on the way, in either direction."""
    before, after = decode(message, ours), decode(message, base64.b64decode(answer["bytes"]))
    assert _pruned(after) == _pruned(before)


def _pruned(value: Any) -> Any:
    """Without what is empty or zero, which Go writes for fields that are no pointers."""
    if isinstance(value, dict):
        kept = {key: _pruned(each) for key, each in value.items()}
        return {key: each for key, each in kept.items() if each}
    return [_pruned(each) for each in value] if isinstance(value, list) else value


def test_go_reads_every_field_of_a_slice() -> None:
    """Fields that few drivers use, and values that are zero but present."""
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a", "b"]}]}
    device = {
        "name": "d",
        "attributes": {
            "int": {"int": 0},
            "negative": {"int": -5},
            "no": {"bool": False},
            "text": {"string": ""},
            "version": {"version": "1.2.3"},
            "ints": {"ints": [1, -2]},
            "bools": {"bools": [True, False]},
            "texts": {"strings": ["a", ""]},
            "versions": {"versions": ["1.0.0"]},
        },
        "capacity": {
            "memory": {
                "value": "80Gi",
                "requestPolicy": {
                    "default": "1Gi",
                    "validRange": {"min": "1Gi", "max": "80Gi", "step": "1Gi"},
                },
            },
            "slots": {"value": "4", "requestPolicy": {"default": "1", "validValues": ["1", "2", "4"]}},
        },
        "consumesCounters": [{"counterSet": "c", "counters": {"m": {"value": "10Gi"}}}],
        "nodeSelector": {"nodeSelectorTerms": [term]},
        "taints": [{"key": "k", "value": "v", "effect": "NoExecute"}],
        "bindsToNode": True,
        "bindingConditions": ["ready"],
        "bindingFailureConditions": ["failed"],
        "allowMultipleAllocations": True,
    }
    spec = {
        "driver": "gpu.example.com",
        "pool": {"name": "n", "generation": 3, "resourceSliceCount": 2},
        "perDeviceNodeSelection": True,
        "devices": [device, {"name": "e", "allNodes": True}, {"name": "f", "nodeName": "n"}],
    }
    counters = {
        "driver": "gpu.example.com",
        "pool": {"name": "n", "generation": 3, "resourceSliceCount": 2},
        "nodeName": "n",
        "sharedCounters": [{"name": "c", "counters": {"m": {"value": "80Gi"}}}],
    }
    for wanted in (spec, counters):
        written = slice_bytes({"metadata": {"name": "s"}, "spec": wanted})
        (answer,) = read(("ResourceSlice", written))
        assert answer["object"]["spec"] == wanted


def test_a_pod_that_go_wrote_is_known_by_its_name() -> None:
    """A Node stands for a Pod here: both begin with the same metadata."""
    written = encode(NODE, {"metadata": {"name": "work", "namespace": "team", "labels": {"a": "b"}}})
    (answer,) = read(("Node", written))
    metadata = decode(POD, base64.b64decode(answer["bytes"]))["metadata"]
    assert (metadata["namespace"], metadata["name"]) == ("team", "work")
