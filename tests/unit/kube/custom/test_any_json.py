"""No JSON, however wrong, does anything but yield a value or say what is wrong."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.errors import BadInputError
from autoscaler.kube.custom.aws_node_template import parse_aws_group_node_template, parse_aws_node_template
from autoscaler.kube.custom.capacity_block import parse_capacity_block
from autoscaler.kube.custom.capacity_pool import parse_capacity_pool, parse_pool_status
from autoscaler.kube.custom.gcp_node_template import parse_gcp_node_template
from autoscaler.kube.custom.instance_type_overlay import parse_instance_type_overlay
from autoscaler.kube.custom.launch_batch import parse_launch_batch
from autoscaler.kube.custom.node_template import parse_kwok_node_template, parse_simulated_node_template
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node
from autoscaler.kube.custom.schema import duration, duration_text, moment, moment_text
from autoscaler.kube.problem import Problems

OFFERING = {"instanceType": "t", "zone": "z", "capacityType": "spot", "usdPerHour": "1"}
OBJECTS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "CapacityPool": (
        parse_capacity_pool,
        {
            "limits": {"nodes": 1, "usdPerHour": 5},
            "requirements": [{"key": "a", "operator": "Gt", "values": ["5"]}],
            "baseline": [{"replicas": 1, "schedule": "* * * * *"}],
            "disruption": {"after": "5m", "budgets": [{"nodes": "10%"}]},
            "kubeletReserved": {"cpu": "1"},
            "taints": [{"key": "a", "effect": "NoSchedule"}],
            "drivers": {"profiles": ["nvidia"]},
        },
    ),
    "CapacityBlock": (
        parse_capacity_block,
        {
            "pool": "p",
            "reservation": "r",
            "instanceType": "t",
            "zone": "z",
            "count": 1,
            "startsAt": "2027-01-30T11:30:00Z",
            "endsAt": "2027-01-31T11:30:00Z",
            "consumers": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
        },
    ),
    "InstanceTypeOverlay": (
        parse_instance_type_overlay,
        {"cloud": "aws", "instanceType": "t", "source": "s", "entry": {"a": 1}, "expiresAt": "2027-01-30T11:30:00Z"},
    ),
    "SimulatedNodeTemplate": (parse_simulated_node_template, {"boot": "1s"}),
    "KwokNodeTemplate": (parse_kwok_node_template, {"annotations": {"a": "b"}}),
    "AWSNodeTemplate": (
        parse_aws_node_template,
        {
            "cluster": {"name": "test"},
            "subnets": [{"tags": {"a": "b"}}],
            "securityGroups": [{"id": "sg-1"}],
            "ami": {"ssmParameter": "/aws/service/ami"},
            "instanceProfile": "nodes",
            "blockDevices": [{"sizeGiB": 100}],
        },
    ),
    "AWSGroupNodeTemplate": (parse_aws_group_node_template, {"autoScalingGroups": ["a"]}),
    "GCPNodeTemplate": (parse_gcp_node_template, {"instanceGroups": [{"zone": "z", "name": "a"}]}),
}
OURS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "ProvisionedNode": (
        parse_provisioned_node,
        {"pool": "p", "nodeName": "n", "offerings": [OFFERING], "prediction": {"instanceType": "t"}, "pods": ["a/b"]},
    ),
    "LaunchBatch": (
        parse_launch_batch,
        {"pool": "p", "nodes": ["n"], "offerings": [OFFERING], "pods": [["a/b"]], "kubeletReserved": {"cpu": 1}},
    ),
}
TEXTS = st.sampled_from(
    [
        "",
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "2027-13-01T00:00:00Z",
        "2027-01-30t11:30:00z",
        "9" * 5000 + "d",
        "99999999999d",
        "1e1000000000",
        "9" * 5000,
        "-1",
        "None",
        "Auto",
        "x" * 2000,
    ]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=5) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def places(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """All places inside a JSON value."""
    found = [path]
    if isinstance(value, dict):
        for key, item in value.items():
            found += places(item, (*path, key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            found += places(item, (*path, index))
    return found


def changed(value: Any, path: tuple[str | int, ...], new: Any) -> Any:
    if not path:
        return new
    copy = deepcopy(value)
    inner = copy
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = new
    return copy


@pytest.mark.parametrize("kind", OBJECTS)
@settings(deadline=None, derandomize=True)
@given(data=st.data())
def test_an_object_of_people_is_used_or_explained(kind: str, data: st.DataObject) -> None:
    parse, spec = OBJECTS[kind]
    assert parse({"metadata": {"name": "x"}, "spec": spec}) is not None
    whole = {"metadata": {"name": "x"}, "spec": spec, "status": {}}
    wrong = changed(whole, data.draw(st.sampled_from(places(whole))), data.draw(JSON))
    problems = Problems()
    found = parse(wrong, problems)
    assert (found is None) == problems.errors or kind == "CapacityBlock"
    for problem in problems:
        assert problem.message


@pytest.mark.parametrize("kind", OURS)
@settings(deadline=None, derandomize=True)
@given(data=st.data())
def test_an_object_of_ours_is_read_or_refused(kind: str, data: st.DataObject) -> None:
    parse, spec = OURS[kind]
    whole = {"metadata": {"name": "x"}, "spec": spec, "status": {}}
    assert parse(whole).name == "x"
    wrong = changed(whole, data.draw(st.sampled_from(places(whole))), data.draw(JSON))
    with suppress(BadInputError):
        assert parse(wrong).name


@settings(deadline=None, derandomize=True)
@given(JSON)
def test_any_status_of_a_pool_can_be_read(status: Any) -> None:
    assert parse_pool_status({"metadata": {"name": "x"}, "status": status}) is not None


@settings(deadline=None, derandomize=True)
@given(st.timedeltas(min_value=duration("0s"), max_value=duration("3650d")))
def test_durations_come_back(value: Any) -> None:
    seconds = value - (value % duration("1s"))
    assert duration(duration_text(seconds)) == seconds


@settings(deadline=None, derandomize=True)
@given(st.datetimes())
def test_moments_come_back(value: Any) -> None:
    aware = value.replace(tzinfo=moment("2027-01-30T11:30:00Z").tzinfo)
    assert moment(moment_text(aware)) == aware


@pytest.mark.parametrize("text", ["9" * 5000 + "d", "99999999999d", "", "5", "-5m", "1.5h", "5m "])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 30m"):
        duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00+23:59",
        "9999-12-31T23:59:59-23:59",
        "2027-W01-1T00:00:00Z",
        "2027-01-30",
        "20270130T113000Z",
    ],
)
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match="write it like 2027"):
        moment(text)
