"""The checks of `foreslice gcp check`: the project, its permissions, and every group that a template lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from providers.errors import GoneError, ProviderError
from providers.finding import Finding, missing, note, ok
from providers.gcp.calls import CALLS
from providers.gcp.errors import enabled
from providers.gcp.names import FILTER
from providers.gcp.node_template.sold import not_sold
from providers.gcp.node_template.status import Verdicts
from providers.gcp.session import Gcp

_RESOURCE_MANAGER: Final = "cloudresourcemanager.googleapis.com"


def findings(gcp: Gcp, verdicts: Verdicts) -> tuple[Finding, ...]:
    """The results, read-only. The check ends if the project cannot be called, because all other calls would fail."""
    project = _project(gcp)
    if not project.passed:
        return (project,)
    return (project, _permitted(gcp), *_templates(verdicts), *_sold(gcp, verdicts))


def _project(gcp: Gcp) -> Finding:
    try:
        for _ in gcp.pages("instances.aggregatedList", filter=FILTER):
            break
    except GoneError as error:
        step = "give the id of the project, which `gcloud projects list` shows: --project, gcp.project of the settings"
        return missing("project", error.message, step)
    except ProviderError as error:
        return missing("project", error.message, error.next_step)
    return ok("project", f"machines of {gcp.project} can be listed")


def _permitted(gcp: Gcp) -> Finding:
    """Check that the caller has the permissions of all the controller's calls, without making these calls."""
    needed = {name for call in CALLS if not call.by_person for name in call.permissions}
    subject = "permissions"
    try:
        lacking = sorted(needed - gcp.granted(needed))
    except ProviderError as error:
        step = enabled(error.code, error.message, _RESOURCE_MANAGER) or "`foreslice gcp trial` shows it"
        return note(subject, f"whether machines may be started and ended is not known: {error.message}", step)
    if lacking:
        step = (
            "give the controller's service account the role of deploy/gcp, and run this with its credentials. A role "
            "that a condition grants for some groups is not seen here: `foreslice gcp trial` shows if it is enough"
        )
        return missing(subject, f"not granted in project {gcp.project}: {', '.join(lacking)}", step)
    tried = "whether the groups take launches, `foreslice gcp trial` shows"
    return ok(subject, f"all {len(needed)} of the controller are granted in project {gcp.project}; {tried}")


def _sold(gcp: Gcp, verdicts: Verdicts) -> tuple[Finding, ...]:
    try:
        return tuple(not_sold(gcp, verdicts.readable_groups()))
    except ProviderError:
        return ()  # the templates' own findings report it


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
