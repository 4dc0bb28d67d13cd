"""From a pydantic model to a structural schema, and from a kind to its CustomResourceDefinition.

Structural (apiextensions.k8s.io/v1): every field has a type and every schema is written where it is used; $ref, titles,
`additionalProperties: false` and alternatives are not allowed. Absent fields stay absent, so nothing is nullable.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from autoscaler.kube.custom.schema import NAME_LENGTH, VERSION, ApiModel
from instance_catalog.kubernetes.labels import GROUP

Schema: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`; those with `wide` only show with -o wide."""

    name: str
    path: str
    type: str = "string"
    wide: bool = False
    description: str = ""


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of the API group. All are cluster-scoped and have a status subresource."""

    name: str
    plural: str
    short: tuple[str, ...]
    spec: type[ApiModel]
    status: type[ApiModel]
    columns: tuple[Column, ...] = ()
    description: str = ""


AGE: Final = Column("Age", ".metadata.creationTimestamp", "date")
READY: Final = Column("Ready", ".status.conditions[?(@.type=='Ready')].status")
STATE: Final = Column("State", ".status.conditions[?(@.type=='Ready')].reason")


def crd(kind: Kind) -> Schema:
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(kind.short),
                "categories": ["foreslice"],
            },
            "scope": "Cluster",
            "versions": [
                {
                    "name": VERSION,
                    "served": True,
                    "storage": True,
                    "additionalPrinterColumns": [_column(column) for column in kind.columns],
                    "subresources": {"status": {}},
                    "schema": {"openAPIV3Schema": _root(kind)},
                }
            ],
        },
    }


def structural(model: type[ApiModel]) -> Schema:
    """The structural schema of a model, every reference replaced by its target."""
    schema = model.model_json_schema(by_alias=True, mode="validation")
    inlined: Schema = _structural(schema, schema.get("$defs", {}))
    return inlined


def _root(kind: Kind) -> Schema:
    return {
        "type": "object",
        "description": kind.description,
        "required": ["spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": structural(kind.spec),
            "status": structural(kind.status),
        },
        "x-kubernetes-validations": [
            {
                "rule": f"size(self.metadata.name) <= {NAME_LENGTH}",
                "message": f"the name must have {NAME_LENGTH} or fewer characters: it becomes a label",
            }
        ],
    }


def _column(column: Column) -> Schema:
    optional = {"description": column.description} if column.description else {}
    priority = {"priority": 1} if column.wide else {}
    return {"name": column.name, "type": column.type, "jsonPath": column.path, **optional, **priority}


def _structural(schema: Schema, definitions: Schema) -> Schema:
    schema = _resolved(schema, definitions)
    result: Schema = {}
    for key, value in schema.items():
        match key, value:
            case "properties", dict():
                result[key] = {name: _structural(inner, definitions) for name, inner in value.items()}
            case "items", dict():
                result[key] = _structural(value, definitions)
            case "additionalProperties", dict():
                result[key] = _structural(value, definitions)
            case "additionalProperties", _:
                continue  # unknown fields are pruned
            case "const", _:
                result["enum"] = [value]
            case "default", None:
                continue
            case "default", dict() if "properties" in schema:
                continue  # made below, from the defaults of the fields
            case _ if key not in _DROPPED:
                result[key] = value
    if isinstance(schema.get("default"), dict) and "properties" in schema:
        # The server checks a default against the rules before it would fill in the fields.
        fields = result["properties"].items()
        result["default"] = {name: field["default"] for name, field in fields if "default" in field}
    return dict(sorted(result.items(), key=lambda item: _ORDER.get(item[0], len(_ORDER))))


def _resolved(schema: Schema, definitions: Schema) -> Schema:
    """The schema itself, with a reference or "X or null" replaced by X; what is written beside it takes precedence."""
    beside = dict(schema)
    while True:
        alternatives = [branch for branch in beside.get("anyOf", []) if branch != {"type": "null"}]
        if "$ref" in beside:
            beside = {**definitions[beside.pop("$ref").rpartition("/")[2]], **beside}
        elif len(alternatives) == 1:
            del beside["anyOf"]
            beside = {**alternatives[0], **beside}
        else:
            return beside


_DROPPED: Final = frozenset({"title", "$defs"})
# Columns that people need most are first.
_FIRST: Final = ("description", "type", "enum", "default", "required", "properties")
_ORDER: Final = {key: rank for rank, key in enumerate(_FIRST)}
