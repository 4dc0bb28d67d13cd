"""The pages as HTML: for the site, and as one file that needs no server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import cache
from importlib import resources
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.page import Explanation, explanation, status_page

_NUMBERS: Final = frozenset({"$/h", "$/h proposed", "nodes", "offerings"})
_EXPLAINED = 100  # pods explained below a page that is one file


def rendered(template: str, *, cluster: str = "", shown: str = "", values: Mapping[str, object]) -> str:
    """A page; `shown` is the namespace that it is limited to."""
    facts = {"cluster": cluster, "shown": shown, "numbers": _NUMBERS, "style": "", "explained": (), **values}
    return _templates().get_template(template).render(facts)


def one_file(snapshot: Snapshot, plan: Plan, now: datetime, *, title: str) -> str:
    """The status page with the explanation of every pending pod below it; nothing is loaded from anywhere."""
    page = status_page(snapshot, plan, now)
    found = (explanation(snapshot, plan, now, pod=f"{p.namespace}/{p.name}") for p in page.waiting[:_EXPLAINED])
    explained: tuple[Explanation, ...] = tuple(each for each in found if each is not None)
    values = {"page": page, "style": style_sheet(), "explained": explained}
    return rendered("status.html", cluster=title, values=values)


def style_sheet() -> str:
    """The style of all pages."""
    return (resources.files("autoscaler.serve") / "templates" / "style.css").read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    return Environment(
        loader=PackageLoader("autoscaler.serve"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
