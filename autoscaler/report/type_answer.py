"""The reason why a plan uses an instance type for a pod or does not, in sentences and as data: `--why TYPE`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from autoscaler.advice.type_question import DeviceAnswer, PoolAnswer, TypeAnswer
from autoscaler.model.plan import Considered, ConsideredOutcome, Target
from autoscaler.model.reason import Code
from autoscaler.report.explained.objects import section
from autoscaler.report.plan_document import dollars
from autoscaler.report.reasons import joined, text_of
from autoscaler.report.words import counted, money
from instance_catalog.prediction.runnable import what_else_it_needs
from instance_catalog.types.instance_type import InstanceType, Price
from instance_catalog.types.provenance import Provenance

_OUTCOMES: Final = {ConsideredOutcome.DOES_NOT_FIT: "does not fit"}


def type_answer_document(answer: TypeAnswer) -> dict[str, Any]:
    """The answer as plain data; the lines are made from it."""
    return {
        "instanceType": answer.instance_type.name,
        "pod": answer.pod,
        "verdict": _verdict(answer),
        "facts": list(_facts(answer.instance_type)),
        "pools": [_pool(pool, answer.instance_type.name) for pool in answer.pools],
        "devices": list(map(_device, answer.devices)),
        "offerings": list(_offerings(answer)),
    }


def type_answer_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield f"{found['instanceType']} for pod {found['pod']}: {found['verdict']}"
    yield from section("Facts", (_fact_line(fact) for fact in found["facts"]))
    yield from section("Pools", (pool["text"] for pool in found["pools"]))
    yield from section("Offerings", map(_offering_line, found["offerings"]))
    yield from section("Selectors on its devices", (device["text"] for device in found["devices"]))


def _offering_line(found: Mapping[str, Any]) -> str:
    """ "3 do not fit: …"."""
    text = str(found["text"])
    if found["offerings"] > 1:
        for one, many in (("does not fit", "do not fit"), ("fits", "fit")):
            text = f"{many}{text.removeprefix(one)}" if text.startswith(one) else text
    return f"{found['offerings']} {text}"


def _verdict(answer: TypeAnswer) -> str:
    """The first step that decides, in one sentence."""
    best, dearer = answer.cheapest, answer.dearer
    if answer.is_chosen:
        return "chosen"
    if answer.placement is not None and answer.placement.target is not Target.NEW:
        return f"not needed: the pod fits the {answer.placement.target.value} node {answer.placement.node}"
    if best is not None and dearer is not None and answer.chosen is not None:
        chosen = f"{answer.chosen.instance_type} ({_hourly(answer.chosen.usd_per_hour)})"
        price = _hourly(best.offering.usd_per_hour)
        if dearer > 0:
            return f"fits at {price}, but {money(dearer)} $/h dearer than {chosen}, which was chosen"
        better = f"{chosen} is better for all pods together"
        return f"fits this pod alone at {price}, but {better} (docs/plan.md, How it decides)"
    if best is not None:
        return "fits"
    refusing = [pool for pool in answer.pools if pool.refused_by or not pool.bought or not pool.drivers]
    if not answer.considered and refusing:
        return "not offered"
    if not answer.considered:
        return "not offered"
    fits = [entry for entry in answer.considered if entry.outcome is ConsideredOutcome.FITS]
    if fits:
        return f"fits, but is not bought: {_first(fits[0])}"
    failing = next((device for device in answer.devices if device.devices and device.met < device.devices), None)
    if failing is not None:
        return str(_device(failing)["text"])
    return _first(min(answer.considered, key=_farness)).removeprefix(f"pod {answer.pod}: ")


def _farness(entry: Considered) -> int:
    """The sort key: other layouts of a machine, such as MIG, lack devices of a class that the plain machine has."""
    return int(any(reason.code is Code.NO_DEVICE_OF_CLASS for reason in entry.reasons[:1]))


def _hourly(usd_per_hour: Decimal | None) -> str:
    """ "1.20 $/h"."""
    return "no price" if usd_per_hour is None else f"{money(usd_per_hour)} $/h"


def _pool(found: PoolAnswer, name: str) -> dict[str, Any]:
    called = "no CapacityPool" if found.implicit else f"pool {found.pool}"
    refused = [f"{r.key} {r.operator} [{', '.join(r.values)}]" for r in found.refused_by]
    if not found.bought:
        text = f"{called}: not offered, sold as {', '.join(found.sold) or 'nothing'} only"
    elif refused:
        text = f"{called}: not admitted by requirement {'; '.join(refused)}"
    elif not found.drivers:
        text = f"{called}: not offered: none of the pool's drivers has devices on {name}, or it is not sold there"
    else:
        text = f"{called}: offered as {', '.join(found.bought)}"
    return {
        "pool": "" if found.implicit else found.pool,
        "offeredAs": list(found.bought),
        "refusedBy": refused,
        "text": text,
    }


def _device(found: DeviceAnswer) -> dict[str, Any]:
    if found.devices == 0:
        text = f"{found.request}: the node has no device of the class"
    else:
        values = ", ".join(f"{name} = {value}" for name, value in found.values)
        seen = f" ({values})" if values else ""
        unknown = ", unknown for the others" if found.unknown else ""
        text = f"{found.request}: {found.met} of {found.devices} devices meet {found.condition}{unknown}{seen}"
    return {
        "request": found.request,
        "condition": found.condition,
        "met": found.met,
        "devices": found.devices,
        "values": dict(found.values),
        "text": text,
    }


def _offerings(answer: TypeAnswer) -> Iterator[dict[str, Any]]:
    """Offerings with the same answer, counted."""
    groups: dict[tuple[ConsideredOutcome, str], list[Considered]] = {}
    for entry in answer.considered:
        groups.setdefault((entry.outcome, _first(entry)), []).append(entry)
    order = tuple(ConsideredOutcome)
    for (outcome, why), entries in sorted(groups.items(), key=lambda g: (order.index(g[0][0]), -len(g[1]))):
        best = entries[0]
        drivers = ", ".join(best.drivers) or "none"
        about = f"{best.offering.capacity_type} {_hourly(best.offering.usd_per_hour)}, drivers {drivers}"
        more = "" if len(entries) == 1 else f" and {counted(len(entries) - 1, 'more offering')}"
        reason = f"{', but' if outcome is ConsideredOutcome.FITS else ':'} {why}" if why else ""
        yield {
            "outcome": outcome.value,
            "offerings": len(entries),
            "reason": why,
            "codes": sorted({r.code.value for e in entries for r in e.reasons[:1]}),
            "text": f"{_OUTCOMES.get(outcome, outcome)}{reason} ({about}{more})",
        }


def _first(entry: Considered) -> str:
    """The decisive reason, without the name of the offering; "" if there is none."""
    if entry.outcome is ConsideredOutcome.CHOSEN:
        return text_of(entry.reasons[0]) if entry.reasons else ""
    found = joined(entry.reasons)[:1]
    return "; ".join(text_of(reason).removeprefix(f"offering {entry.offering.instance_type}: ") for reason in found)


# -- facts and their sources


def _facts(found: InstanceType) -> Iterator[dict[str, str]]:
    yield _fact("machine", f"{found.cloud}, {found.vcpu} vCPU, {found.memory} memory", found.provenance.get("shape"))
    accelerator = found.accelerator
    if accelerator is not None:
        count = f"{found.accelerator_count} × {accelerator.product_name or accelerator.model}"
        yield _fact("accelerators", count, found.provenance.get("accelerator"))
        memory = accelerator.memory
        text = f"{memory} each" if memory else "not in the catalog: selectors on it are unknown"
        yield _fact("accelerator memory", text, accelerator.provenance.get("memory"))
    if needed := what_else_it_needs(found):
        yield _fact("needs more", f"{needed.problem}; {needed.next_step}", Provenance(needed.source))
    for kind in found.capacity_types:
        price = found.prices.get(kind)
        if price is None and not kind.needs_reservation:
            yield _fact(f"{kind.value} price", "not in the catalog: never bought so", None)
        elif price is not None:
            yield _fact(f"{kind.value} price", _price(price), found.provenance.get("price"))


def _price(price: Price) -> str:
    return f"{dollars(price.usd_per_hour)} $/h in {price.region} ({price.date}{', a guess' if price.guess else ''})"


def _fact(name: str, text: str, source: Provenance | None) -> dict[str, str]:
    found = {"name": name, "text": text}
    return found if source is None else {**found, "source": source.source, "date": source.date}


def _fact_line(fact: Mapping[str, str]) -> str:
    source = f" (source: {fact['source']})" if fact.get("source") else ""
    return f"{fact['name']}: {fact['text']}{source}"
