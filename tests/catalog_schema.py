"""The JSON schema of catalog files as a file that editors find: written by `make generate`, compared by `make lint`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from instance_catalog.drivers.schema import DriverEntry
from instance_catalog.files.node_schema import NodeEntry
from instance_catalog.files.schema import AcceleratorEntry, CatalogFile, InstanceTypeEntry

SCHEMA_FILE = Path("instance_catalog/data/schema/catalog.schema.json")


def generated_files() -> dict[Path, str]:
    """The text of every generated file by its path in the repository."""
    return {SCHEMA_FILE: json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"}


def json_schema() -> dict[str, Any]:
    """JSON schema (2020-12) of a catalog file. Entries may be partial, since defaults and overlays complete them."""
    models: tuple[type[BaseModel], ...] = (CatalogFile, InstanceTypeEntry, AcceleratorEntry, NodeEntry, DriverEntry)
    _, document = models_json_schema([(model, "validation") for model in models], by_alias=True)
    definitions = document["$defs"]
    definitions["InstanceTypeEntry"]["required"] = ["name"]
    price = {"anyOf": [{"$ref": "#/$defs/PriceEntry"}, {"type": ["number", "string", "null"], "minimum": 0}]}
    properties = definitions["InstanceTypeEntry"]["properties"]
    properties["prices"]["additionalProperties"] = price
    properties["zonePrices"]["additionalProperties"]["additionalProperties"] = price
    definitions["AcceleratorEntry"]["required"] = ["key"]
    definitions["NodeEntry"]["required"] = ["cloud"]
    definitions["DriverEntry"]["required"] = ["name"]
    definitions["AcceleratorUse"]["required"] = []
    definitions["Defaults"] = {**definitions["InstanceTypeEntry"], "required": [], "title": "Defaults"}
    root = definitions.pop("CatalogFile")
    properties = root["properties"]
    properties["types"]["items"] = {"$ref": "#/$defs/InstanceTypeEntry"}
    properties["accelerators"]["items"] = {"$ref": "#/$defs/AcceleratorEntry"}
    properties["nodes"]["items"] = {"$ref": "#/$defs/NodeEntry"}
    properties["drivers"]["items"] = {"$ref": "#/$defs/DriverEntry"}
    properties["defaults"] = {"$ref": "#/$defs/Defaults"}
    properties["provenance"] = definitions["InstanceTypeEntry"]["properties"]["provenance"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Foreslice instance catalog file",
        **{key: value for key, value in root.items() if key != "title"},
        "$defs": dict(sorted(definitions.items())),
    }
