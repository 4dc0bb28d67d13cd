"""docs/metrics.md, from the table of autoscaler/report/metrics/table.py."""

from __future__ import annotations

from pathlib import Path

from autoscaler.report.metrics.table import METRICS, Metric

_IDLE = "sum(foreslice_nodes_usd_per_hour) - 3600 * sum(rate(foreslice_claim_cost_usd_total[1h]))"
_HEAD = f"""# Metrics

Generated from `autoscaler/report/metrics/table.py` by `make generate`.

Served at `/metrics` of `serve.metricsAddress` (port 8080), in Prometheus' text format or as OpenMetrics. Stable metrics
keep name, labels and meaning until the next major version; alpha ones may change with any release. No label names a pod
or a node. Gauges are those of the last reconcile of the leader. Other replicas serve only `foreslice_leader`,
`foreslice_catalog_age_seconds`, `foreslice_build_info` and their own requests. Counters begin at 0 with the process.
Together they have at most 5,000 series: what would need another one is counted in that of its metric with empty labels.

| question | query |
|---|---|
| What would acting cost? | `sum(foreslice_proposed_usd_per_hour)` |
| Why do pods wait? | `foreslice_pending_pods > 0` |
| What does a team's use of devices cost a day? | `sum by (namespace) (increase(foreslice_claim_cost_usd_total[1d]))` |
| What is paid for, and used by no claim? | `{_IDLE}` |
| Does anybody act? | `max(foreslice_leader) == 1` |
| Which block ends soon? | `foreslice_block_hours_left < 2 and foreslice_block_nodes > 0` |
"""


def generated_files() -> dict[Path, str]:
    """The reference page."""
    return {Path("docs/metrics.md"): "\n".join((_HEAD, *map(_section, METRICS)))}


def _section(metric: Metric) -> str:
    facts = [f"{metric.kind.value}, {'stable' if metric.stable else 'alpha'}", f"unit: {metric.unit}"]
    if metric.labels:
        facts.append("labels: " + ", ".join(f"`{label}`" for label in metric.labels))
    return f"## {metric.name}\n\n{'; '.join(facts)}\n\n{metric.help}\n"
