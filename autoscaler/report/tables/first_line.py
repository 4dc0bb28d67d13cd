"""The first line of a plan: nodes and price, the numbers of pods, and why the plan may mislead."""

from __future__ import annotations

from collections.abc import Sequence

from autoscaler.model.plan import LeftOut, Plan
from autoscaler.report.tables.given import Given
from autoscaler.report.words import counted, few, money


def first_line(plan: Plan, given: Given) -> tuple[str, str]:
    """Its text, and its level: "good", "warning" or "error"."""
    nodes = len(plan.launches)
    price = f" for {money(plan.usd_per_hour)} $/h{_price_source(plan)}" if nodes else ""
    useless, less = _total(plan, "not_working"), _total(plan, "may_cost_less")
    instead = f" ({useless} of them where they do not work: see the warnings)" if useless else ""
    asking = _asking(plan.outside)
    text = _all_ignored(plan) or (
        f"{counted(nodes, 'node')} to launch{price}; {counted(len(plan.placements), 'pod')} placed{instead}, "
        f"{len(plan.left_out)} cannot be placed, {len(plan.outside)} ignored{asking}"
    )
    if given.incomplete:
        looks = "looks like a patch" if given.incomplete == 1 else "look like patches"
        text += f"; an estimate, as {counted(given.incomplete, 'object')} {looks}: see the warnings"
    if less:
        text += f"; {counted(less, 'cheaper instance type')} may fit too: see the warnings"
    if given.suspended:
        text += f"; {counted(given.suspended, 'suspended object')} without pods: see the warnings"
    if given.skipped:
        text += f"; {counted(len(given.skipped), 'object')} left out by --skip-unknown: see the warnings"
    doubtful = useless or less or given.incomplete or asking or given.skipped
    return text, "error" if plan.left_out else "warning" if doubtful else "good"


def _total(plan: Plan, fact: str) -> int:
    return sum(found for warning in plan.warnings if isinstance(found := warning.detail.get(fact), int))


def _all_ignored(plan: Plan) -> str:
    """The totals where all pods are ignored, though some ask for devices: no number hides that."""
    asking = _asking_for_devices(plan.outside)
    if not asking or plan.launches or plan.placements or plan.left_out:
        return ""
    does = "asks for devices and is" if asking == 1 else "ask for devices and are"
    rest = len(plan.outside) - asking
    others = f"; {counted(rest, 'other pod')} {'is' if rest == 1 else 'are'} ignored" if rest else ""
    return f"0 nodes to launch; {counted(asking, 'pod')} {does} ignored: see below{others}"


def _asking(outside: Sequence[LeftOut]) -> str:
    """The number of ignored pods that ask for devices: nothing is bought for these, whatever else is placed."""
    asking = _asking_for_devices(outside)
    return f" ({asking} of them {'asks' if asking == 1 else 'ask'} for devices)" if asking else ""


def _asking_for_devices(outside: Sequence[LeftOut]) -> int:
    facts = ("resources", "asking")
    return sum(any(reason.detail.get(fact) for reason in entry.reasons for fact in facts) for entry in outside)


def _price_source(plan: Plan) -> str:
    """The sources and dates of the prices in the total."""
    sources = {
        (node.offering.price_region, node.offering.price_date) for node in plan.launches if node.offering.price_region
    }
    shown = few([f"{region}, {date}" for region, date in sorted(sources)])
    prepaid = sum(1 for node in plan.launches if node.offering.block)
    parts = [f"prices of {shown}"] if shown else []
    parts += [f"{prepaid} prepaid"] if prepaid else []
    return f" ({'; '.join(parts)})" if parts else ""
