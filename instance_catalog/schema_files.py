"""The JSON schema of catalog files as a file that editors find: written by `make generate`, compared by `make lint`."""

from __future__ import annotations

import json
from pathlib import Path

from instance_catalog.schema import json_schema

SCHEMA_FILE = Path("instance_catalog/data/schema/catalog.schema.json")


def generated_files() -> dict[Path, str]:
    """The text of every generated file by its path in the repository."""
    return {SCHEMA_FILE: json.dumps(json_schema(), indent=2, ensure_ascii=False) + "\n"}
