"""The pages as HTML: for the site, and as one file that needs no server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.page import Explanation, explanation, status_page
from autoscaler.report.printable import printable
from autoscaler.report.words import counted
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import EMPTY

_NUMBERS: Final = frozenset({"$/h", "$/h proposed", "nodes", "offerings"})
_EXPLAINED = 100  # pods explained below a page that is one file


def rendered(template: str, *, cluster: str = "", shown: str = "", values: Mapping[str, object]) -> str:
    """A page; `shown` is the namespace that it is limited to."""
    facts = {
        "cluster": cluster,
        "shown": shown,
        "numbers": _NUMBERS,
        "style": "",
        "explained": (),
        "helping": {},
        **values,
    }
    return _templates().get_template(template).render(facts)


def one_file(
    snapshot: Snapshot, plan: Plan, now: datetime, *, title: str, helping: Mapping[str, Sequence[str]] = EMPTY
) -> str:
    """The status page with the explanation of every pending pod below it; nothing is loaded from anywhere.

    `helping` are, by pod, the lines of a change that would place it.
    """
    page = status_page(snapshot, plan, now)
    launches = f"{counted(len(plan.launches), 'node')} to launch, {plan.usd_per_hour:.2f} $/h"
    # Of a plan for files, what a controller does in a cluster says nothing.
    known = page.summary if snapshot.provisioned else page.summary[2:]
    page = replace(page, summary=(launches, *known), tables=tuple(table for table in page.tables if table.rows))
    found = (explanation(snapshot, plan, now, pod=f"{p.namespace}/{p.name}") for p in page.waiting[:_EXPLAINED])
    explained: tuple[Explanation, ...] = tuple(each for each in found if each is not None)
    values = {"page": page, "style": style_sheet(), "explained": explained, "helping": helping}
    return rendered("status.html", cluster=title, values=values)


def style_sheet() -> str:
    return (resources.files("autoscaler.serve") / "templates" / "style.css").read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("autoscaler.serve"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        finalize=_shown,
    )


def _shown(value: object) -> object:
    """Text from objects without characters that reorder or hide it; text that a template marks as safe is Foreslice's
    own."""
    return printable(value) if type(value) is str else value
