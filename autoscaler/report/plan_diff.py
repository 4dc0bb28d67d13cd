"""The difference between two plans, by the documents that `plan -o json` prints: nodes, places of pods, cost."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final, TypeAlias

from autoscaler.report.plan_document import dollars
from autoscaler.report.tables.plan_tables import Table
from autoscaler.report.words import counted, money
from instance_catalog.dataclass import dataclass, field

# instance type, zone, capacity type, pool
Kind: TypeAlias = tuple[str, str, str, str]
NOWHERE: Final = "not placed"
_AMOUNT: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?", re.ASCII)
_CENT: Final = Decimal("0.01")  # amounts of a document are rounded


class NotAPlanError(ValueError):
    """A document that is no Plan of this version; the message names what is missing."""


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The parts of a plan that are compared. Names of new nodes differ between plans, so nodes are compared by kind."""

    nodes: Counter[Kind]
    prices: Mapping[Kind, Decimal | None]
    places: Mapping[str, str]  # by pod: a kind of new node, or the name of an existing node
    left: frozenset[str]
    usd_per_hour: Decimal = field(default=Decimal(0))

    @staticmethod
    def of(document: Mapping[str, Any]) -> PlanFacts:
        """Raises NotAPlanError."""
        if document.get("kind") != "Plan":
            raise NotAPlanError(f"kind is {document.get('kind')!r}, not 'Plan'")
        try:
            return _facts(document)
        except (KeyError, TypeError, AttributeError) as error:
            raise NotAPlanError(f"{type(error).__name__}: {error}") from error


def _facts(document: Mapping[str, Any]) -> PlanFacts:
    nodes: Counter[Kind] = Counter()
    prices: dict[Kind, Decimal | None] = {}
    names: dict[str, str] = {}
    for launch in document["launches"]:
        # v1alpha1 repeats the offering in each launch, v1alpha2 refers to it.
        named = launch["offering"]
        offering = document["offerings"][named] if isinstance(named, str) else named
        facts = (offering["instanceType"], offering["zone"], offering["capacityType"], launch["pool"])
        instance_type, zone, capacity_type, pool = map(_text, facts)
        kind = (instance_type, zone, capacity_type, pool)
        nodes[kind] += 1
        prices[kind] = None if launch["usdPerHour"] is None else _dollars(launch["usdPerHour"])
        names[_text(launch["name"])] = f"new {instance_type}"
    total = _dollars(document["summary"]["usdPerHour"])
    found = sum(((prices[kind] or Decimal(0)) * count for kind, count in nodes.items()), Decimal(0))
    if abs(total - found) > _CENT * max(1, nodes.total()):
        raise NotAPlanError(f"summary.usdPerHour is {total:f}, and its launches cost {found:f}")
    places = {_text(p["pod"]): _text(p["node"]) for p in document["placements"]}
    return PlanFacts(
        nodes,
        prices,
        {pod: names.get(node, f"node {node}") for pod, node in places.items()},
        frozenset(_text(entry["pod"]) for entry in document["leftOut"]),
        total,
    )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise NotAPlanError(f"expected a text, found {value!r:.60}")
    return value


def _dollars(value: object) -> Decimal:
    """An amount in the form that `plan` writes: any other form might be a number with a billion digits."""
    if not isinstance(value, str) or not _AMOUNT.fullmatch(value):
        raise NotAPlanError(f"expected an amount such as '6.88', found {value!r:.60}")
    return Decimal(value)


def diff_document(before: PlanFacts, after: PlanFacts) -> dict[str, Any]:
    """All differences, as plain data."""
    return {
        "nodes": list(_nodes(before, after)),
        "pods": list(_pods(before, after)),
        "usdPerHour": {
            "before": dollars(before.usd_per_hour),
            "after": dollars(after.usd_per_hour),
            "difference": _signed(after.usd_per_hour - before.usd_per_hour),
        },
    }


def _nodes(before: PlanFacts, after: PlanFacts) -> Iterator[dict[str, Any]]:
    for kind in sorted(before.nodes.keys() | after.nodes.keys()):
        change = after.nodes[kind] - before.nodes[kind]
        one = (after.prices if kind in after.prices else before.prices)[kind]
        if change or before.prices.get(kind, one) != one:
            instance_type, zone, capacity_type, pool = kind
            cost = (after.prices.get(kind) or Decimal(0)) * after.nodes[kind]
            cost -= (before.prices.get(kind) or Decimal(0)) * before.nodes[kind]
            yield {
                "instanceType": instance_type,
                "zone": zone,
                "capacityType": capacity_type,
                "pool": pool,
                "before": before.nodes[kind],
                "after": after.nodes[kind],
                "usdPerHour": _signed(cost),
            }


def _pods(before: PlanFacts, after: PlanFacts) -> Iterator[dict[str, str]]:
    """Pods whose place differs; pods in one plan only are new or gone."""
    names = before.places.keys() | after.places.keys() | before.left | after.left
    for pod in sorted(names):
        was = before.places.get(pod, NOWHERE if pod in before.left else "")
        now = after.places.get(pod, NOWHERE if pod in after.left else "")
        if was != now:
            yield {"pod": pod, "change": _change(was, now), "before": was, "after": now}


def _change(was: str, now: str) -> str:
    match was, now:
        case "", _:
            return "added"
        case _, "":
            return "removed"
        case _, found if found == NOWHERE:
            return "no longer placed"
        case found, _ if found == NOWHERE:
            return "placed now"
    return "moved"


def lost_places(found: Mapping[str, Any]) -> tuple[str, ...]:
    """The pods that the first plan places and the second does not."""
    return tuple(entry["pod"] for entry in found["pods"] if entry["change"] == "no longer placed")


def diff_tables(found: Mapping[str, Any]) -> Iterator[Table]:
    rows = tuple(
        (
            f"{entry['after'] - entry['before']:+d}" if entry["after"] != entry["before"] else "price",
            entry["instanceType"],
            entry["zone"],
            entry["capacityType"],
            entry["pool"],
            f"{entry['before']} → {entry['after']}",
            entry["usdPerHour"],
        )
        for entry in found["nodes"]
    )
    yield Table("Nodes", ("", "type", "zone", "capacity", "pool", "nodes", "$/h"), rows)
    pods = tuple((p["pod"], p["change"], p["before"] or "-", p["after"] or "-") for p in found["pods"])
    yield Table("Pods", ("pod", "change", "before", "after"), pods)


def _with_sign(text: str) -> str:
    return f"{text[0]}{money(text[1:])}"


def diff_summary(found: Mapping[str, Any]) -> str:
    """One line."""
    cost = found["usdPerHour"]
    changes = Counter(entry["change"] for entry in found["pods"])
    parts = [f"{counted(count, 'pod')} {change}" for change, count in sorted(changes.items())]
    costs = f"{money(cost['before'])} → {money(cost['after'])} $/h ({_with_sign(cost['difference'])})"
    parts += ["no saving, since pods lose their places"] if lost_places(found) and cost["difference"][0] == "-" else []
    return "; ".join([costs, *parts])


def _signed(amount: Decimal) -> str:
    return f"{'-' if amount < 0 else '+'}{dollars(abs(amount))}"
