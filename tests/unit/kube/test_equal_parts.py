"""Equal parts of objects are read once, and read as if each was read for itself."""

from __future__ import annotations

import copy
import random
from datetime import date
from typing import Any

import pytest

from autoscaler.kube import pod, resource_claim, resource_slice
from autoscaler.kube.equal_parts import read_once
from autoscaler.kube.fields import Fields
from autoscaler.kube.pod import parse_pod
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim
from autoscaler.kube.resource_slice import parse_resource_slice
from instance_catalog.diagnostic import Diagnostic

SLICE: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceSlice",
    "metadata": {"name": "node-gpu"},
    "spec": {
        "driver": "gpu.example.com",
        "pool": {"name": "node", "generation": 1, "resourceSliceCount": 1},
        "nodeName": "node",
        "devices": [
            {
                "name": "gpu-0",
                "attributes": {
                    "model": {"string": "H100"},
                    "index": {"int": 1},
                    "shared": {"bool": True},
                    "release": {"version": "1.2.3"},
                    "modes": {"strings": ["a", "b"]},
                },
                "capacity": {"memory": {"value": "80Gi"}},
                "taints": [{"key": "broken", "effect": "NoSchedule"}],
            }
        ],
    },
}
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "gpu", "namespace": "default", "uid": "1"},
    "spec": {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com", "count": 1}}],
            "constraints": [{"requests": ["gpu"], "matchAttribute": "gpu.example.com/model"}],
        }
    },
}
POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "pod", "namespace": "default", "uid": "2", "labels": {"app": "a"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "example",
                "ports": [{"containerPort": 80}],
                "resources": {"requests": {"cpu": "1", "memory": "1Gi"}},
                "volumeMounts": [{"name": "token", "mountPath": "/t"}],
            }
        ],
        "hostNetwork": False,
        "affinity": {"nodeAffinity": {}},
    },
    "status": {"phase": "Pending"},
}
READERS = ((SLICE, parse_resource_slice), (CLAIM, parse_resource_claim), (POD, parse_pod))
# Values that Python takes for equal, that are of another type, or that no field has.
VALUES: tuple[Any, ...] = (
    None,
    True,
    False,
    0,
    1,
    1.0,
    -1,
    2**70,
    "1",
    "1000m",
    "",
    "H100",
    [],
    ["a"],
    [1],
    {},
    {"int": 1},
    date.min,
)


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every object or list in it, with each of its keys."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    return [place for key in keys for place in ((value, key), *_places(value[key]))]


def _changed(base: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    found = copy.deepcopy(base)
    for _ in range(draw.randrange(3)):
        holder, key = draw.choice(_places(found["spec"]) or [(found, "spec")])
        if isinstance(holder, dict) and draw.random() < 0.3:
            holder[f"{key}s"] = copy.deepcopy(holder[key])
        holder[key] = copy.copy(draw.choice(VALUES))
        if not isinstance(found["spec"], dict):
            break
    return found


def _read(parse: Any, raw: object) -> tuple[str, list[Diagnostic]]:
    problems = Problems()
    return repr(parse(raw, problems)), list(problems)


@pytest.mark.parametrize(("base", "parse"), READERS, ids=("slice", "claim", "pod"))
def test_what_is_read_does_not_depend_on_what_was_read_before(
    base: dict[str, Any], parse: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    draw = random.Random(5)
    raws = [_changed(base, draw) for _ in range(1500)]
    after_others = [_read(parse, raw) for raw in raws]
    for module, name in ((pod, "_parse_container"), (resource_claim, "_parse_spec"), (resource_slice, "_parse_body")):
        monkeypatch.setattr(module, name, getattr(module, name).__wrapped__)
    assert after_others == [_read(parse, raw) for raw in raws]
    assert sum(not problems for _, problems in after_others) > 300  # a good part is without a problem, and is kept


def _count() -> tuple[Any, list[Any]]:
    read: list[Any] = []

    @read_once
    def parse(fields: Fields, *, flag: bool = False) -> tuple[str, bool]:
        read.append(fields.path)
        return fields.text("name"), flag

    return parse, read


def test_an_equal_part_is_read_once() -> None:
    parse, read = _count()
    assert [parse(Fields({"name": "a"}, None, (place,))) for place in range(3)] == [("a", False)] * 3
    assert read == [(0,)]


def test_what_a_reader_is_told_is_a_part_of_the_question() -> None:
    parse, _ = _count()
    assert [parse(Fields({"name": "a"}), flag=flag) for flag in (False, True)] == [("a", False), ("a", True)]


def test_a_problem_is_reported_at_each_place() -> None:
    parse, _ = _count()
    problems = Problems()
    for place in range(2):
        parse(Fields({"name": 1}, problems, (place,)))
    assert [problem.path for problem in problems] == [(0, "name"), (1, "name")]


def test_values_that_json_does_not_have_are_read_each_time() -> None:
    parse, read = _count()
    for _ in range(2):
        parse(Fields({"name": "a", "since": date.min}))
    assert len(read) == 2


def test_few_parts_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autoscaler.kube.equal_parts._MOST", 10)
    parse, read = _count()
    for _ in range(2):
        for number in range(100):
            parse(Fields({"name": str(number)}))
    assert len(read) > 150


def test_an_unread_field_is_reported_when_an_equal_device_was_read() -> None:
    """A device's attributes are read apart from the rest: a mistake in its name is still a mistake."""
    raw = copy.deepcopy(SLICE)
    raw["spec"]["devices"][0]["attribute"] = {}
    found = []
    for _ in range(2):
        parse_resource_slice(raw, problems := Problems())
        found.append(list(problems))
    assert [problem.message for each in found for problem in each] == ["unknown field 'attribute'"] * 2
    assert "attributes" in found[0][0].next_step
