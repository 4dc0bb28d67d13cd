"""What `foreslice gcp check` and the first tick look at: the project, and every group that a template names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from providers.errors import GoneError, ProviderError
from providers.finding import Finding, missing, ok
from providers.gcp.names import FILTER
from providers.gcp.node_template.sold import not_sold
from providers.gcp.node_template.status import Verdicts
from providers.gcp.session import Gcp


def findings(gcp: Gcp, verdicts: Verdicts) -> tuple[Finding, ...]:
    """Reads only. A project that cannot be called ends the check: nothing else could be seen."""
    project = _project(gcp)
    if not project.passed:
        return (project,)
    return (project, *_templates(verdicts), *_sold(gcp, verdicts))


def _project(gcp: Gcp) -> Finding:
    try:
        for _ in gcp.pages("instances.aggregatedList", filter=FILTER):
            break
    except GoneError as error:
        step = "give the id of the project, which `gcloud projects list` shows: --project, gcp.project of the settings"
        return missing("project", error.message, step)
    except ProviderError as error:
        return missing("project", error.message, error.next_step)
    tried = "whether they may be started and ended, `foreslice gcp trial` shows"
    return ok("project", f"machines of {gcp.project} can be listed; {tried}")


def _sold(gcp: Gcp, verdicts: Verdicts) -> tuple[Finding, ...]:
    try:
        return tuple(not_sold(gcp, verdicts.readable_groups()))
    except ProviderError:
        return ()  # the templates' own findings say so


def _templates(verdicts: Verdicts) -> Iterator[Finding]:
    try:
        statuses = verdicts.all()
    except ProviderError as error:
        yield missing("GCPNodeTemplates", error.message, error.next_step)
        return
    if not statuses:
        yield missing("GCPNodeTemplates", "there is none", "create one: docs/gcp.md shows a small one")
    for status in statuses:
        subject = f"GCPNodeTemplate {status.template.name}"
        for fault in status.faults:
            yield missing(f"{subject}: {fault.field}", fault.message, fault.next_step)
        if not status.faults:
            groups = ", ".join(map(_shown, status.resolved.get("groups", ())))
            yield ok(subject, f"groups: {groups}")


def _shown(row: Mapping[str, Any]) -> str:
    placement = f" ({row['placement']})" if "placement" in row else ""
    return f"{row['zone']}/{row['name']}{placement}"
