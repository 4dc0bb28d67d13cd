"""The JSON schema that editors use accepts what the loader accepts, and says so in time."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest

from instance_catalog.diagnostic import Path as FieldPath
from instance_catalog.files.loader import DATA
from instance_catalog.files.schema import InstanceTypeEntry
from instance_catalog.files.schema_fields import known_choices, known_fields
from instance_catalog.files.yaml_text import read
from tests.catalog_schema import SCHEMA_FILE, generated_files, json_schema

FILES = sorted(path for pattern in ("*.yaml", "aws/*.yaml", "gcp/*.yaml") for path in DATA.glob(pattern))


@pytest.fixture(scope="module")
def validator() -> jsonschema.Draft202012Validator:
    schema = json_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DATA)))
def test_shipped_files_pass(validator: jsonschema.Draft202012Validator, path: Path) -> None:
    assert [error.message for error in validator.iter_errors(read(path.read_text()))] == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(DATA)))
def test_shipped_files_name_the_schema(path: Path) -> None:
    first = path.read_text().splitlines()[0]
    assert first.startswith("# yaml-language-server: $schema=")
    named = (path.parent / first.partition("=")[2]).resolve()
    assert named == (DATA.parent.parent / SCHEMA_FILE).resolve()


@pytest.mark.parametrize(
    "document",
    [
        {"typs": []},
        {"types": [{"vcpu": 4}]},
        {"types": [{"name": "x", "vcpu": 0}]},
        {"types": [{"name": "x", "architecture": "x86_64"}]},
        {"types": [{"name": "x", "capacityTypes": ["ondemand"]}]},
        {"types": [{"name": "x", "prices": {"on-demand": -1}}]},
        {"accelerators": [{"model": "no key"}]},
        {"defaults": {"acelerator": {}}},
        {"nodes": [{"image": "no cloud"}]},
    ],
    ids=lambda document: json.dumps(document)[:40],
)
def test_mistakes_are_seen_while_typing(validator: jsonschema.Draft202012Validator, document: object) -> None:
    assert not validator.is_valid(document)


@pytest.mark.parametrize(
    "document",
    [
        {"types": [{"name": "p5.48xlarge", "prices": {"on-demand": 40.5}}]},
        {"types": [{"name": "p5.48xlarge", "prices": {"on-demand": None}}]},
        {"types": [{"name": "p5.48xlarge", "accelerator": {"count": 4}}]},
        {"accelerators": [{"key": "nvidia-l4", "memory": "23034Mi"}]},
        {"nodes": [{"cloud": "aws", "memoryOverhead": 0.02}]},
    ],
    ids=["price", "no price", "count", "accelerator", "nodes"],
)
def test_partial_entries_are_fine(validator: jsonschema.Draft202012Validator, document: object) -> None:
    assert validator.is_valid(document)


def test_the_committed_schema_is_current() -> None:
    for path, text in generated_files().items():
        assert (DATA.parent.parent / path).read_text() == text, "run `make generate`"


@pytest.mark.parametrize(
    ("path", "known"),
    [
        ((), "vcpu"),
        (("accelerator",), "productName"),
        (("networkCards", 0), "subsystem"),
        (("prices", "on-demand"), "usdPerHour"),
        (("provenance", "shape"), "guess"),
    ],
)
def test_known_fields_follow_the_path(path: FieldPath, known: str) -> None:
    assert known in known_fields(InstanceTypeEntry, path)


def test_known_fields_of_nowhere_are_none() -> None:
    assert known_fields(InstanceTypeEntry, ("vcpu", "x")) == ()


@pytest.mark.parametrize(
    ("path", "choices"),
    [
        (("architecture",), ("amd64", "arm64")),
        (("capacityTypes",), ("capacity-block", "reserved", "flex-start", "spot", "on-demand")),
        (("networkCards", 0, "kind"), ("ena", "efa", "gvnic", "rdma")),
        (("vcpu",), ()),
        (("nowhere", 0), ()),
    ],
    ids=["literal", "list of enums", "in a list", "too many", "nowhere"],
)
def test_choices_are_listed_where_they_are_few(path: FieldPath, choices: tuple[str, ...]) -> None:
    assert known_choices(InstanceTypeEntry, path) == choices
