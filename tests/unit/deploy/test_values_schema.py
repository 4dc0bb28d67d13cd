"""The chart knows the names of all settings, so that a misspelt one is refused before anything is installed."""

from __future__ import annotations

import json
from pathlib import Path

import yaml

from autoscaler.settings.names import all_settings

CHART = Path(__file__).parents[3] / "deploy/charts/foreslice"
SCHEMA = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))


def test_the_schema_names_every_setting_and_no_other() -> None:
    settings = SCHEMA["properties"]["settings"]
    sections = settings["properties"]
    named = {f"{section}.{name}" for section, schema in sections.items() for name in schema["properties"]}
    assert named == {setting.key for setting in all_settings()}
    assert not any(schema["additionalProperties"] for schema in (settings, *sections.values()))


def test_the_schema_names_every_value_and_no_other() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
    assert SCHEMA["properties"].keys() - {"global"} == values.keys()
