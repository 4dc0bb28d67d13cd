"""The CRDs are structural, accept what we write, refuse what parsing refuses, and say the same in CEL as in Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from datetime import datetime
from typing import Any

import celpy
import jsonschema
import pytest
import yaml
from celpy.adapter import json_to_cel
from pydantic import BaseModel

from autoscaler.kube.custom.aws_node_template import (
    AWSGroupNodeTemplateSpec,
    AwsImage,
    AWSNodeTemplateSpec,
    AwsSelector,
    AwsVolume,
)
from autoscaler.kube.custom.capacity_block import (
    CapacityBlockSpec,
    parse_capacity_block,
)
from autoscaler.kube.custom.capacity_pool import (
    CapacityPoolSpec,
    DriversSpec,
    LimitsSpec,
    ScopeSpec,
    parse_capacity_pool,
)
from autoscaler.kube.custom.gcp_node_template import GCPNodeTemplateSpec
from autoscaler.kube.custom.launch_batch import LaunchBatchSpec
from autoscaler.kube.custom.schema import ApiModel, RequirementSpec, Rule
from autoscaler.kube.custom.selectors import SelectorRequirement
from tests.custom_resources import KINDS, generated_files
from tests.structural_schema import Kind, crd, structural

BY_NAME = {kind.name: kind for kind in KINDS}
# What apiextensions.k8s.io/v1 allows in a structural schema.
ALLOWED = {
    "type",
    "description",
    "default",
    "enum",
    "format",
    "items",
    "properties",
    "required",
    "additionalProperties",
    "minimum",
    "maximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "maxProperties",
    "pattern",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
}
INT_OR_STRING = [{"type": "integer"}, {"type": "string"}]


def root(kind: Kind) -> dict[str, Any]:
    schema: dict[str, Any] = crd(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return schema


def schemas(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield path, schema
    for name, inner in schema.get("properties", {}).items():
        yield from schemas(inner, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from schemas(schema["additionalProperties"], f"{path}{{}}")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_schema_is_structural(kind: Kind) -> None:
    for path, schema in schemas(root(kind)):
        if schema.get("x-kubernetes-int-or-string"):
            assert "type" not in schema, path
            assert schema["anyOf"] == INT_OR_STRING, path
            assert set(schema) <= ALLOWED | {"anyOf"}, path
            continue
        assert schema.get("type") in {"object", "array", "string", "integer", "boolean", "number"}, path
        assert set(schema) <= ALLOWED, path
        assert not ({"properties", "additionalProperties"} <= set(schema)), path
        assert (schema["type"] == "array") == ("items" in schema), path
        assert set(schema.get("required", ())) <= set(schema.get("properties", ())), path
        assert "default" not in schema or schema["default"] is not None, path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_what_rules_read_is_bounded(kind: Kind) -> None:
    """The API server estimates the cost of a rule from the bounds of what it may read."""
    for path, schema in schemas(root(kind)):
        if schema.get("type") == "array":
            assert "maxItems" in schema, path
        if "additionalProperties" in schema:
            assert "maxProperties" in schema, path
        if schema.get("type") == "string" and "enum" not in schema and "format" not in schema and ".spec" in path:
            assert "maxLength" in schema, path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_defaults_are_valid(kind: Kind) -> None:
    for path, schema in schemas(root(kind)):
        if "default" in schema:
            assert list(jsonschema.Draft7Validator(dict(schema)).iter_errors(schema["default"])) == [], path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_default_obeys_the_rules_as_it_stands(kind: Kind) -> None:
    for path, schema in schemas(root(kind)):
        if "default" in schema:
            for validation in schema.get("x-kubernetes-validations", ()):
                environment = celpy.Environment()
                program = environment.program(environment.compile(validation["rule"]))
                assert program.evaluate({"self": json_to_cel(schema["default"])}), path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_rule_points_to_a_field_that_exists(kind: Kind) -> None:
    for path, schema in schemas(root(kind)):
        for validation in schema.get("x-kubernetes-validations", ()):
            field = validation.get("fieldPath", "")
            assert not field or field.removeprefix(".") in schema["properties"], path


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_every_kind_has_status_conditions_short_name_and_columns(kind: Kind) -> None:
    definition = crd(kind)["spec"]
    (version,) = definition["versions"]
    assert version["subresources"] == {"status": {}}
    status = root(kind)["properties"]["status"]["properties"]
    assert status["observedGeneration"]["type"] == "integer"
    assert status["conditions"]["x-kubernetes-list-map-keys"] == ["type"]
    assert status["conditions"]["items"]["properties"]["observedGeneration"]["type"] == "integer"
    assert definition["names"]["shortNames"]
    assert version["additionalPrinterColumns"][-1]["name"] == "Age"
    for column in version["additionalPrinterColumns"]:
        path = re.sub(r"\[\?.*?\]", "[]", column["jsonPath"])
        known = {name for name, _ in schemas(root(kind))} | {".metadata.creationTimestamp"}
        assert path in known, column


def test_short_names_and_plurals_are_unique() -> None:
    names = [name for kind in KINDS for name in (*kind.short, kind.plural)]
    assert len(names) == len(set(names))


def test_the_files_are_plain_yaml_without_anchors() -> None:
    files = generated_files()
    assert len(files) == 2 * len(KINDS)  # plain, and in the chart
    for path, text in files.items():
        assert path.parts[:2] in {("deploy", "crds"), ("deploy", "charts")}
        assert "&id" not in text
        assert yaml.safe_load(text)["metadata"]["name"] == path.stem.partition("_")[2] + ".foreslice.dev"


POOL: dict[str, Any] = {
    "mode": "Act",
    "limits": {"nodes": 2},
    "nodeTemplateRef": {"kind": "KwokNodeTemplate", "name": "default"},
    "requirements": [{"key": "a", "operator": "In", "values": ["b"]}],
    "labels": {"team": "x"},
}
AWS_TEMPLATE: dict[str, Any] = {
    "cluster": {"name": "test"},
    "subnets": [{"tags": {"kubernetes.io/cluster/test": "owned"}}],
    "securityGroups": [{"id": "sg-1"}],
    "ami": {"ssmParameter": "/aws/service/ami"},
    "instanceProfile": "nodes",
}
BLOCK: dict[str, Any] = {
    "pool": "p",
    "reservation": "cr-1",
    "instanceType": "p5.48xlarge",
    "zone": "us-east-1a",
    "count": 2,
    "startsAt": "2027-01-30T11:30:00Z",
    "endsAt": "2027-01-31T11:30:00Z",
}


def errors_of(kind: str, spec: dict[str, Any]) -> list[str]:
    schema = root(BY_NAME[kind])["properties"]["spec"]
    return [error.message for error in jsonschema.Draft7Validator(schema).iter_errors(spec)]


@pytest.mark.parametrize(
    ("kind", "spec", "change"),
    [
        pytest.param("CapacityPool", POOL, {"mode": "act"}, id="mode"),
        pytest.param("CapacityPool", POOL, {"weight": 101}, id="weight"),
        pytest.param("CapacityPool", POOL, {"weight": "5"}, id="weight as text"),
        pytest.param("CapacityPool", POOL, {"capacityTypes": []}, id="no capacity type"),
        pytest.param("CapacityPool", POOL, {"limits": {"usdPerHour": "1e3"}}, id="exponent"),
        pytest.param("CapacityPool", POOL, {"disruption": {"after": "5 min"}}, id="duration"),
        pytest.param("CapacityPool", POOL, {"disruption": {"budgets": [{"nodes": "150%"}]}}, id="percentage"),
        pytest.param("CapacityPool", POOL, {"kubeletReserved": {"cpu": "much"}}, id="quantity"),
        pytest.param("CapacityPool", POOL, {"baseline": [{"replicas": 1, "schedule": "often"}]}, id="schedule"),
        pytest.param("CapacityBlock", BLOCK, {"count": 0}, id="count"),
        pytest.param("CapacityBlock", BLOCK, {"hold": "always"}, id="hold"),
        pytest.param("CapacityBlock", BLOCK, {"pool": "Not A Name"}, id="name"),
    ],
)
def test_the_schema_refuses_what_parsing_refuses(kind: str, spec: dict[str, Any], change: dict[str, Any]) -> None:
    parse = {"CapacityPool": parse_capacity_pool, "CapacityBlock": parse_capacity_block}[kind]
    assert parse({"metadata": {"name": "x"}, "spec": spec}) is not None
    assert errors_of(kind, spec) == []
    changed = {**deepcopy(spec), **change}
    assert parse({"metadata": {"name": "x"}, "spec": changed}) is None
    assert errors_of(kind, changed) != []


def cel(rule: Rule, value: dict[str, Any], schema: Mapping[str, Any]) -> bool:
    environment = celpy.Environment()
    program = environment.program(environment.compile(rule.cel))
    return bool(program.evaluate({"self": in_cel(value, schema)}))


def in_cel(value: Any, schema: Mapping[str, Any]) -> Any:
    """A value as the API server hands it to a rule: defaults filled in, times as timestamps."""
    if schema.get("format") == "date-time":
        return celpy.celtypes.TimestampType(datetime.fromisoformat(value))
    if isinstance(value, dict) and "properties" in schema:
        fields = schema["properties"]
        defaults = {name: field["default"] for name, field in fields.items() if "default" in field}
        filled = {**defaults, **value}
        return celpy.celtypes.MapType(
            {celpy.celtypes.StringType(name): in_cel(item, fields[name]) for name, item in filled.items()}
        )
    return json_to_cel(value)


REQUIREMENTS = [
    {"key": "a", "operator": operator, "values": values}
    for operator in ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
    for values in ([], ["x"], ["5"], ["-7"], ["5", "6"])
]
RULES: list[tuple[type[ApiModel], list[dict[str, Any]]]] = [
    (RequirementSpec, REQUIREMENTS),
    (SelectorRequirement, [r for r in REQUIREMENTS if r["operator"] not in ("Gt", "Lt")]),
    (
        ScopeSpec,
        [
            {},
            {"pods": "Selected"},
            {"pods": "Selected", "podSelector": {}},
            {"pods": "Selected", "namespaceSelector": {}},
            {"pods": "All", "podSelector": {}},
        ],
    ),
    (LimitsSpec, [{}, {"nodes": 0}, {"accelerators": 1}, {"usdPerHour": "1.5"}]),
    (DriversSpec, [{}, {"profiles": ["Auto"]}, {"profiles": ["nvidia"]}, {"profiles": ["nvidia", "Auto"]}]),
    (
        CapacityPoolSpec,
        [
            POOL,
            {"limits": {"nodes": 1}},
            {"limits": {"nodes": 1}, "mode": "Act"},
            {**POOL, "labels": {"foreslice.dev/pool": "x"}},
            {**POOL, "labels": {"foreslice.developers/x": "y"}},
        ],
    ),
    (
        CapacityBlockSpec,
        [
            BLOCK,
            {**BLOCK, "endsAt": BLOCK["startsAt"]},
            {**BLOCK, "endsAt": "2027-01-30T12:00:00+01:00"},
            {**BLOCK, "reservationTags": {"a": "b"}},
            {**BLOCK, "reservation": ""},
            {**BLOCK, "reservation": "", "reservationTags": {"a": "b"}},
        ],
    ),
    (
        LaunchBatchSpec,
        [
            {
                "pool": "p",
                "nodes": nodes,
                "minimum": 2,
                "offerings": [{"instanceType": "t", "zone": "z", "capacityType": "spot"}],
            }
            for nodes in (["a"], ["a", "b"])
        ],
    ),
    (AwsSelector, [{"id": "subnet-1"}, {"tags": {"a": "b"}}, {}, {"id": "subnet-1", "tags": {"a": "b"}}]),
    (AwsImage, [{"id": "ami-1"}, {"ssmParameter": "/p"}, {}, {"id": "ami-1", "ssmParameter": "/p"}]),
    (AwsVolume, [{"sizeGiB": 100}, {"snapshotId": "snap-1"}, {}]),
    (
        AWSNodeTemplateSpec,
        [
            {**AWS_TEMPLATE, "userData": data}
            for data in ({}, {"kind": "Custom"}, {"kind": "Custom", "text": "#!/bin/sh"}, {"text": "#!/bin/sh"})
        ],
    ),
    (
        AWSGroupNodeTemplateSpec,
        [
            {},
            {"autoScalingGroups": ["a"]},
            {"nodeGroups": ["a"]},
            {"nodeGroups": ["a"], "clusterName": "c"},
        ],
    ),
    (
        GCPNodeTemplateSpec,
        [
            {},
            {"instanceGroups": [{"zone": "z", "name": "a"}]},
            {"nodePools": ["a"]},
            {"nodePools": ["a"], "cluster": {"name": "c", "location": "l"}},
        ],
    ),
]


@pytest.mark.parametrize(("model", "values"), RULES, ids=lambda value: getattr(value, "__name__", ""))
def test_rules_say_the_same_in_cel_and_in_python(model: type[ApiModel], values: list[dict[str, Any]]) -> None:
    schema = structural(model)
    answers = set()
    for rule in model.RULES:
        if rule.holds is None:
            continue
        for value in values:
            found = cel(rule, value, schema)
            assert rule.holds(unchecked(model, value)) is found, (rule.message, value)
            answers.add((rule.message, found))
    # Each rule was seen to hold and to be broken.
    assert len(answers) == 2 * sum(rule.holds is not None for rule in model.RULES)


def unchecked(model: type[ApiModel], value: dict[str, Any]) -> BaseModel:
    """The model of a value that may break its rules."""
    lenient: type[ApiModel] = type(model.__name__, (model,), {"RULES": ()})
    return lenient.model_validate(value)


def test_every_rule_is_compared() -> None:
    found = {m for kind in KINDS for top in (kind.spec, kind.status) for m in models_in(top)}
    with_rules = {model for model in found if any(rule.holds is not None for rule in model.RULES)}
    assert with_rules == {model for model, _ in RULES}


def models_in(model: type[ApiModel]) -> Iterator[type[ApiModel]]:
    names = set(model.model_json_schema().get("$defs", {})) | {model.__name__}
    yield from (found for found in subclasses(ApiModel) if found.__name__ in names)


def subclasses(model: type[ApiModel]) -> Iterator[type[ApiModel]]:
    for child in model.__subclasses__():
        if child.__module__.startswith("autoscaler."):
            yield child
            yield from subclasses(child)


def test_fields_are_described_by_the_text_below_them() -> None:
    described = structural(CapacityPoolSpec)["properties"]["requirements"]["items"]["properties"]["key"]
    assert described["description"] == "A label or requirement key, such as node.kubernetes.io/instance-type."
    # pydantic would read the source of every class for that, whenever a manifest has a pool.
    assert not ApiModel.model_config.get("use_attribute_docstrings")
