"""The Grafana dashboard, generated from a table of panels. A test checks every query against the table of metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

FILE: Final = Path("deploy/charts/foreslice/files/dashboards/foreslice.json")
_WIDTH: Final = 24
_HEIGHT: Final = 8


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph. `unit` is Grafana's name for it, `legend` a template over the labels; three panels fill a row."""

    title: str
    query: str
    unit: str
    legend: str


@dataclass(frozen=True, slots=True)
class Row:
    """Panels that answer one question."""

    title: str
    panels: tuple[Panel, ...]


ROWS: Final = (
    Row(
        "Why are pods pending?",
        (
            Panel("Pending pods by reason", "sum by (reason) (foreslice_pending_pods)", "short", "{{reason}}"),
            Panel("Proposed nodes", "sum by (pool) (foreslice_proposed_nodes)", "short", "{{pool}}"),
            Panel(
                "Mispredictions per hour",
                "sum by (pool) (increase(foreslice_mispredictions_total[1h]))",
                "short",
                "{{pool}}",
            ),
        ),
    ),
    Row(
        "What does it cost?",
        (
            Panel(
                "Nodes",
                "sum by (pool, capacity_type) (foreslice_nodes_usd_per_hour)",
                "currencyUSD",
                "{{pool}} {{capacity_type}}",
            ),
            Panel("Proposed", "sum by (pool) (foreslice_proposed_usd_per_hour)", "currencyUSD", "{{pool}}"),
            Panel("Spent today", "max(foreslice_spent_today_usd)", "currencyUSD", "today"),
            Panel(
                "Claims, per hour",
                "sum by (namespace) (increase(foreslice_claim_cost_usd_total[1h]))",
                "currencyUSD",
                "{{namespace}}",
            ),
            Panel("Hours left in capacity blocks", "min by (block) (foreslice_block_hours_left)", "h", "{{block}}"),
            Panel(
                "Spending guards that block launches",
                "max by (guard) (foreslice_spending_guard_binding)",
                "bool",
                "{{guard}}",
            ),
        ),
    ),
    Row(
        "What does the cluster have?",
        (
            Panel("Nodes by phase", "sum by (phase) (foreslice_nodes)", "short", "{{phase}}"),
            Panel("Devices", "sum by (product, state) (foreslice_devices)", "short", "{{product}} {{state}}"),
            Panel(
                "Launches per hour",
                "sum by (outcome, reason) (increase(foreslice_launches_total[1h]))",
                "short",
                "{{outcome}} {{reason}}",
            ),
        ),
    ),
    Row(
        "Is the controller healthy?",
        (
            Panel(
                "Reconcile duration, 95th percentile",
                "histogram_quantile(0.95, sum by (le) (rate(foreslice_reconcile_duration_seconds_bucket[5m])))",
                "s",
                "reconcile",
            ),
            Panel(
                "API requests per second",
                "sum by (outcome) (rate(foreslice_api_requests_total[5m]))",
                "reqps",
                "{{outcome}}",
            ),
            Panel(
                "Failed actions per hour",
                "sum by (kind, reason) (increase(foreslice_troubles_total[1h]))",
                "short",
                "{{kind}} {{reason}}",
            ),
        ),
    ),
)


def generated_files() -> dict[Path, str]:
    """The dashboard's JSON by its path in the repository."""
    return {FILE: json.dumps(_dashboard(), indent=1) + "\n"}


def _dashboard() -> dict[str, Any]:
    panels: list[dict[str, Any]] = []
    top = 0
    for row in ROWS:
        panels.append({"type": "row", "title": row.title, "gridPos": {"h": 1, "w": _WIDTH, "x": 0, "y": top}})
        top += 1
        for start in range(0, len(row.panels), 3):
            for column, panel in enumerate(row.panels[start : start + 3]):
                panels.append(_graph(panel, left=column * _WIDTH // 3, top=top))
            top += _HEIGHT
    return {
        "uid": "foreslice",
        "title": "Foreslice",
        "tags": ["foreslice", "autoscaling", "dra"],
        "timezone": "browser",
        "refresh": "30s",
        "time": {"from": "now-6h", "to": "now"},
        "schemaVersion": 39,
        "templating": {
            "list": [{"name": "datasource", "type": "datasource", "query": "prometheus", "label": "Prometheus"}]
        },
        "panels": [{"id": number, **panel} for number, panel in enumerate(panels, start=1)],
    }


def _graph(panel: Panel, *, left: int, top: int) -> dict[str, Any]:
    return {
        "type": "timeseries",
        "title": panel.title,
        "datasource": {"type": "prometheus", "uid": "${datasource}"},
        "gridPos": {"h": _HEIGHT, "w": _WIDTH // 3, "x": left, "y": top},
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "targets": [{"refId": "A", "expr": panel.query, "legendFormat": panel.legend}],
    }
