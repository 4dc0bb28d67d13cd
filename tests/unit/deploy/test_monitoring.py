"""Dashboard and alerts ask only for metrics and labels that exist."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaler.report.metrics.table import METRICS, Kind
from tests.dashboard import ROWS, generated_files

CHART = Path(__file__).parents[3] / "deploy/charts/foreslice"
RULES: list[dict[str, Any]] = yaml.safe_load((CHART / "files/alerts.yaml").read_text(encoding="utf-8"))["groups"][0][
    "rules"
]
QUERIES = [pytest.param(panel.query, id=panel.title) for row in ROWS for panel in row.panels]
QUERIES += [pytest.param(rule["expr"], id=rule["alert"]) for rule in RULES]
SERIES = re.compile(r"foreslice_\w+")
# Labels stand in by(...), in {name="..."} and, for people, in {{...}}.
GROUPED = re.compile(r"by \(([^)]*)\)")
MATCHED = re.compile(r"(\w+)!?=")


@pytest.mark.parametrize("query", QUERIES)
def test_a_query_asks_for_what_exists(query: str) -> None:
    known = {metric.name: metric for metric in METRICS}
    names = {name.removesuffix("_bucket") for name in SERIES.findall(query)}
    assert names
    assert names <= known.keys()
    grouped = {label.strip() for labels in GROUPED.findall(query) for label in labels.split(",")}
    matched = {label for selector in re.findall(r"\{([^}]*)\}", query) for label in MATCHED.findall(selector)}
    labels = {label for name in names for label in known[name].labels}
    histograms = {"le"} if any(known[name].kind is Kind.HISTOGRAM for name in names) else set()
    assert (grouped | matched) <= labels | histograms


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: str(rule["alert"]))
def test_an_alert_says_what_happened_and_what_to_do(rule: dict[str, Any]) -> None:
    assert rule["labels"]["severity"] in {"info", "warning", "critical"}
    assert len(rule["annotations"]["summary"]) > 20
    assert len(rule["annotations"]["action"]) > 20


def test_every_alert_is_in_the_documentation() -> None:
    page = (CHART.parents[2] / "docs/operations.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^\| `(Foreslice\w+)` \|", page, re.MULTILINE)) == {rule["alert"] for rule in RULES}


def test_the_dashboard_is_json_with_a_panel_for_every_query() -> None:
    ((_, text),) = generated_files().items()
    found = json.loads(text)
    graphs = [panel for panel in found["panels"] if panel["type"] == "timeseries"]
    assert len(graphs) == sum(len(row.panels) for row in ROWS)
    assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in graphs}
    assert len(places) == len(graphs)
