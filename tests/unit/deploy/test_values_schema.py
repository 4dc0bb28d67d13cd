"""The chart knows all settings, so that a misspelt or impossible one is refused before anything is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from autoscaler.settings.names import SETTINGS, all_settings

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


@pytest.mark.parametrize(
    ("key", "refused", "accepted"),
    [
        ("spending.max_usd_per_hour", ["abc", -1, "-1", True], [0, 12.5, "250"]),
        ("spending.max_launches_per_hour", ["abc", -1, 1.5], [0, 10]),
        ("spending.buy_unpriced", ["perhaps", 7], [True]),
        ("work.per_round", [-5, 0, "many", None], [5_000_000]),
        ("loop.retry", [5, "5", "5 s", "1w", "0s", ""], ["5s", "1m30s", "1.5h", "2d"]),
        ("batch.idle", ["soon"], ["0s", "0", "500ms"]),
        ("log.level", ["verbose", "INFO", 3], ["debug", "error"]),
        ("drift.policy", ["matters"], ["Always"]),
        ("cluster.name", [7, ["a"]], ["prod"]),
        ("cluster.providers", [[1], 7], [["aws", "kwok"], "aws,kwok"]),
        ("serve.metrics_address", [8080, "8080", "on"], [":9090", "127.0.0.1:0", "[::1]:8080", "off"]),
    ],
)
def test_the_schema_refuses_what_the_controller_refuses(key: str, refused: list[Any], accepted: list[Any]) -> None:
    setting = next(found for found in all_settings() if f"{found.section}.{found.field}" == key)
    section, _, name = setting.key.partition(".")
    validator = jsonschema.Draft7Validator(SCHEMA["properties"]["settings"])
    assert [value for value in refused if validator.is_valid({section: {name: value}})] == []
    for value in accepted:
        assert validator.is_valid({section: {name: value}}), value
        SETTINGS.validate_python({setting.section: {setting.field: value}})


def test_every_setting_has_a_type() -> None:
    sections = SCHEMA["properties"]["settings"]["properties"]
    untyped = [name for s in sections.values() for name, schema in s["properties"].items() if not schema]
    assert untyped == []
