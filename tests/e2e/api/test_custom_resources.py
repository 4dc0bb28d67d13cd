"""The CRDs in a real API server: accepted as they stand, defaulting and refusing exactly as the models do in Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import ValidationError

from autoscaler.kube.custom.capacity_block import parse_capacity_block, write_capacity_block
from autoscaler.kube.custom.capacity_pool import parse_capacity_pool
from autoscaler.kube.custom.launch_batch import parse_launch_batch, write_launch_batch
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.kube.custom.schema import API_VERSION
from instance_catalog.dataclass import replace
from tests.custom_resources import FOLDER, KINDS
from tests.e2e.harness.control_plane import ApiError, ControlPlane, Json
from tests.e2e.harness.custom_objects import BATCH, BLOCK, FULL, LEAST, NODE, POOL
from tests.pool_manifest import write_capacity_pool
from tests.structural_schema import Kind
from tests.unit.instance_catalog.kubernetes.test_label_syntax import KEYS, NO_KEYS, NO_VALUES, VALUES

ROOT: Final = Path(__file__).parents[3]
DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
BY_NAME: Final = {kind.name: kind for kind in KINDS}


@pytest.fixture(scope="module")
def api(control_plane: ControlPlane) -> ControlPlane:
    """The control plane with all CRDs of the repository, established."""
    names = []
    for path in sorted((ROOT / FOLDER).glob("*.yaml")):
        names.append(control_plane.call("POST", DEFINITIONS, yaml.safe_load(path.read_text()))["metadata"]["name"])

    def served(name: str) -> bool:
        try:
            control_plane.call("GET", f"/apis/{API_VERSION}/{name.partition('.')[0]}")
        except ApiError:
            return False
        return True

    control_plane.wait_until(lambda: all(served(name) for name in names), "the CRDs")
    return control_plane


def manifest(kind: Kind, spec: Json, name: str = "x") -> Json:
    return {"apiVersion": API_VERSION, "kind": kind.name, "metadata": {"name": name}, "spec": spec}


def dry(kind: Kind) -> str:
    """Nothing of what is only asked about is kept; unknown fields are refused instead of pruned."""
    return f"/apis/{API_VERSION}/{kind.plural}?dryRun=All&fieldValidation=Strict"


def refusal(api: ControlPlane, kind: Kind, spec: Json) -> str:
    """Why the API server refuses a spec; "" when it takes it."""
    try:
        api.call("POST", dry(kind), manifest(kind, spec))
    except ApiError as error:
        if error.code != 422:
            raise
        return error.message
    return ""


def accepted_by_model(kind: Kind, spec: Json) -> bool:
    try:
        kind.spec.model_validate(spec)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_the_definition_is_established_and_structural(kind: Kind, api: ControlPlane) -> None:
    status = api.call("GET", f"{DEFINITIONS}/{kind.plural}.{API_VERSION.partition('/')[0]}")["status"]
    conditions = {condition["type"]: condition["status"] for condition in status["conditions"]}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("specs", [FULL, LEAST], ids=["every field", "only what is required"])
def test_the_server_applies_the_defaults_of_the_models(specs: dict[str, Json], kind: Kind, api: ControlPlane) -> None:
    given = specs[kind.name]
    stored = api.call("POST", dry(kind), manifest(kind, given))
    assert stored["spec"] == kind.spec.model_validate(given).manifest()


def own_documents() -> Iterator[Any]:
    for path in sorted((ROOT / "docs/examples").glob("*.yaml")):
        for document in yaml.safe_load_all(path.read_text()):
            if document["apiVersion"] == API_VERSION and document["kind"] in BY_NAME:
                yield pytest.param(document, id=f"{path.name} {document['kind']}")


@pytest.mark.parametrize("document", list(own_documents()))
def test_objects_of_the_examples(document: Json, api: ControlPlane) -> None:
    kind = BY_NAME[document["kind"]]
    stored = api.call("POST", dry(kind), document)
    assert stored["spec"] == kind.spec.model_validate(document["spec"]).manifest()


@pytest.mark.parametrize(
    ("written", "parse"),
    [
        pytest.param(write_capacity_pool(POOL), parse_capacity_pool, id="CapacityPool"),
        pytest.param(write_capacity_block(BLOCK), parse_capacity_block, id="CapacityBlock"),
        pytest.param(write_provisioned_node(NODE), parse_provisioned_node, id="ProvisionedNode"),
        pytest.param(write_launch_batch(BATCH), parse_launch_batch, id="LaunchBatch"),
    ],
)
def test_what_we_write_comes_back_unchanged(written: Json, parse: Callable[[object], Any], api: ControlPlane) -> None:
    place = f"/apis/{API_VERSION}/{BY_NAME[written['kind']].plural}"
    stored = api.call("POST", place, written)
    path = f"{place}/{written['metadata']['name']}"
    if "status" in written:
        stored = api.call("PUT", f"{path}/status", {**stored, "status": written["status"]})
    api.call("DELETE", path)
    found = parse(stored)
    assert stored["spec"] == written["spec"]
    assert found == replace(parse(written), **identity(found))


def identity(found: Any) -> dict[str, Any]:
    """What only the server knows."""
    return {name: getattr(found, name) for name in ("uid", "generation", "resource_version") if hasattr(found, name)}


def broken(spec: Any, schema: Json, path: str = "") -> Iterator[tuple[str, Any]]:
    """The value with one limit of its schema broken at a time, everywhere; named by place and limit."""
    for keyword, value in breaches(spec, schema):
        yield f"{path}: {keyword}", value
    if isinstance(spec, dict):
        for name, inner in spec.items():
            inner_schema = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
            if inner_schema:
                yield from (
                    (place, {**spec, name: worse}) for place, worse in broken(inner, inner_schema, f"{path}.{name}")
                )
    if isinstance(spec, list) and spec:
        yield from ((place, [worse, *spec[1:]]) for place, worse in broken(spec[0], schema["items"], f"{path}[0]"))


def breaches(value: Any, schema: Json) -> Iterator[tuple[str, Any]]:
    """Replacements of one value that its schema forbids."""
    # The API server lets any list pass where a schema has a format (kube-openapi pkg/validation/validate/type.go).
    yield "type", {} if schema.get("type") == "array" or "format" in schema else [[]]
    if "enum" in schema:
        yield "enum", "Nonsense"
    if "minimum" in schema:
        yield "minimum", schema["minimum"] - 1
    if "maximum" in schema:
        yield "maximum", schema["maximum"] + 1
    if "minLength" in schema:
        yield "minLength", ""
    if "maxLength" in schema:
        yield "maxLength", "1" * (schema["maxLength"] + 1)
    if "pattern" in schema:
        yield "pattern", "!"
    if schema.get("format") == "date-time":
        yield "format", "tomorrow"
    if "minItems" in schema:
        yield "minItems", []
    if "maxItems" in schema and value:
        yield "maxItems", [deepcopy(value[0]) for _ in range(schema["maxItems"] + 1)]
    if "maxProperties" in schema and value:
        some = next(iter(value.values()))
        yield "maxProperties", {f"example.com/k{index}": some for index in range(schema["maxProperties"] + 1)}
    for name in schema.get("required", ()):
        yield f"required {name}", {key: inner for key, inner in value.items() if key != name}


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_server_and_models_refuse_the_same(kind: Kind, api: ControlPlane) -> None:
    """Every limit of every field, broken one at a time."""
    definition = yaml.safe_load((ROOT / FOLDER / f"foreslice.dev_{kind.plural}.yaml").read_text())
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    specs = list(broken(FULL[kind.name], schema))
    assert len(specs) > (5 if FULL[kind.name] else 0)  # an object without fields can only be something else
    assert [place for place, spec in specs if not refusal(api, kind, spec)] == []
    assert [place for place, spec in specs if accepted_by_model(kind, spec)] == []


RULES: Final = [
    ("CapacityPool", {"mode": "Act", "nodeTemplateRef": None}, "a pool in mode Act needs a nodeTemplateRef"),
    (
        "CapacityPool",
        {"labels": {"foreslice.dev/x": "y"}},
        "label keys under foreslice.dev/ are set by Foreslice itself",
    ),
    ("CapacityPool", {"labels": {"a b": "c"}}, "no label key: write a name of letters"),
    ("AWSNodeTemplate", {"labels": {"example.com/": "c"}}, "no label key: write a name of letters"),
    ("KwokNodeTemplate", {"labels": {"a" * 64: "c"}}, "no label key: write a name of letters"),
    ("CapacityPool", {"limits": {}}, "limits needs at least one of accelerators, nodes and usdPerHour"),
    ("CapacityPool", {"drivers": {"profiles": ["nvidia", "Auto"]}}, "Auto excludes other entries"),
    (
        "CapacityPool",
        {"scope": {"pods": "Selected"}},
        "Selected needs podSelector or namespaceSelector, and these count for Selected only",
    ),
    (
        "CapacityPool",
        {"requirements": [{"key": "a", "operator": "Gt", "values": ["four"]}]},
        "In and NotIn need values, Gt and Lt exactly one integer",
    ),
    ("CapacityBlock", {"drivers": {"profiles": ["nvidia", "Auto"]}}, "Auto excludes other entries"),
    ("CapacityBlock", {"endsAt": FULL["CapacityBlock"]["startsAt"]}, "startsAt must be before endsAt"),
    ("CapacityBlock", {"endsAt": "2027-01-31T08:30:00+01:00"}, "startsAt must be before endsAt"),
    ("CapacityBlock", {"reservation": ""}, "exactly one of reservation and reservationTags"),
    ("CapacityBlock", {"reservationTags": {"a": "b"}}, "exactly one of reservation and reservationTags"),
    (
        "CapacityBlock",
        {"consumers": {"podSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}},
        "In and NotIn need values, Exists and DoesNotExist take none",
    ),
    ("AWSNodeTemplate", {"userData": {"kind": "Custom"}}, "Custom user data needs a text"),
    ("AWSNodeTemplate", {"subnets": [{}]}, "select by id or by tags: exactly one of them"),
    (
        "AWSNodeTemplate",
        {"securityGroups": [{"id": "sg-1", "tags": {"a": "b"}}]},
        "select by id or by tags: exactly one of them",
    ),
    ("AWSNodeTemplate", {"ami": {}}, "name the image by id or by ssmParameter: exactly one of them"),
    ("AWSNodeTemplate", {"blockDevices": [{}]}, "give sizeGiB, snapshotId or both"),
    ("AWSGroupNodeTemplate", {"autoScalingGroups": [], "nodeGroups": []}, "name at least one group"),
    ("AWSGroupNodeTemplate", {"clusterName": ""}, "nodeGroups need clusterName"),
    ("GCPNodeTemplate", {"nodePools": [], "instanceGroups": []}, "name at least one group"),
    ("GCPNodeTemplate", {"cluster": None}, "nodePools need cluster"),
    ("LaunchBatch", {"minimum": 3}, "minimum cannot exceed the number of nodes"),
]
CHANGES: Final = [
    ("CapacityBlock", {"instanceType": "p5en.48xlarge"}, "reservation, instanceType and zone cannot change"),
    ("CapacityBlock", {"zone": "us-east-1b"}, "reservation, instanceType and zone cannot change"),
    ("CapacityBlock", {"reservation": "cr-2"}, "reservation, instanceType and zone cannot change"),
    ("InstanceTypeOverlay", {"cloud": "gcp"}, "cloud and instanceType cannot change"),
    ("InstanceTypeOverlay", {"instanceType": "p4d.24xlarge"}, "cloud and instanceType cannot change"),
    ("ProvisionedNode", {"pods": []}, "a ProvisionedNode's spec cannot change"),
    ("LaunchBatch", {"minimum": 1}, "a LaunchBatch's spec cannot change"),
]


def changed(spec: Json, change: Json) -> Json:
    """The spec with some fields replaced; those that become None are removed."""
    return {name: value for name, value in {**spec, **change}.items() if value is not None}


@pytest.mark.parametrize(("name", "change", "message"), RULES, ids=lambda value: str(value)[:60])
def test_each_rule_refuses(name: str, change: Json, message: str, api: ControlPlane) -> None:
    kind, spec = BY_NAME[name], changed(FULL[name], change)
    assert message in refusal(api, kind, spec)
    assert not accepted_by_model(kind, spec)


@pytest.mark.parametrize(("name", "change", "message"), CHANGES, ids=lambda value: str(value)[:60])
def test_each_rule_about_changes_refuses(name: str, change: Json, message: str, api: ControlPlane) -> None:
    kind = BY_NAME[name]
    place = f"/apis/{API_VERSION}/{kind.plural}"
    stored = api.call("POST", place, manifest(kind, FULL[name], "changing"))
    try:
        with pytest.raises(ApiError, match=message) as caught:
            api.call("PUT", f"{place}/changing", {**stored, "spec": changed(stored["spec"], change)})
    finally:
        api.call("DELETE", f"{place}/changing")
    assert caught.value.code == 422


@pytest.mark.parametrize("text", [*KEYS, *NO_KEYS, *VALUES, *NO_VALUES], ids=ascii)
def test_server_and_models_know_the_same_labels(text: str, api: ControlPlane) -> None:
    kind = BY_NAME["CapacityPool"]
    taint = {"key": "a", "effect": "NoSchedule"}
    for change in (
        {"labels": {text: "x"}},
        {"labels": {"a": text}},
        {"taints": [{**taint, "key": text}]},
        {"taints": [{**taint, "value": text}]},
    ):
        spec = changed(FULL["CapacityPool"], change)
        assert (refusal(api, kind, spec) == "") == accepted_by_model(kind, spec), change


def test_every_rule_is_broken_above() -> None:
    tested = [message for _, _, message in (*RULES, *CHANGES)]

    def rules(schema: Any) -> Iterator[str]:
        if isinstance(schema, dict):
            yield from (rule["message"] for rule in schema.get("x-kubernetes-validations", ()))
            for inner in schema.values():
                yield from rules(inner)

    for kind in KINDS:
        definition = yaml.safe_load((ROOT / FOLDER / f"foreslice.dev_{kind.plural}.yaml").read_text())
        for rule in rules(definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]):
            assert any(message in rule for message in tested), rule


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_a_name_must_fit_a_label(kind: Kind, api: ControlPlane) -> None:
    api.call("POST", dry(kind), manifest(kind, FULL[kind.name], "n" * 63))
    with pytest.raises(ApiError, match="it becomes a label"):
        api.call("POST", dry(kind), manifest(kind, FULL[kind.name], "n" * 64))
