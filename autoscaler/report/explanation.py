"""Why one pod waits: what it waits for, what was looked at for it, what was done. The data of `foreslice explain`.

Made from a snapshot and a plan, so it is the same whether a controller runs in the cluster or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from autoscaler.model.plan import Considered, LeftOut, NearMiss, Placement, Plan, Target
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand import why_pending
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import text_of, texts_of

_EXAMPLES = 3


def explanation_of(pod: Pod, snapshot: Snapshot, plan: Plan) -> dict[str, Any]:
    """Everything that is known of the pod, as plain data; docs/doctor.md has the fields."""
    left = next((entry for entry in (*plan.left_out, *plan.outside) if entry.pod == pod.key), None)
    placement = next((entry for entry in plan.placements if entry.pod == pod.key), None)
    waits = () if pod.node_name else why_pending(pod, snapshot)
    return {
        "pod": pod.key,
        "phase": pod.phase,
        "node": pod.node_name,
        "waitsFor": [_reason(reason) for reason in waits],
        "claims": [_claim(pod, entry.name, entry.claim, snapshot) for entry in pod.claims if entry.claim != ""],
        "decision": _decision(placement, left, snapshot, plan),
        "offerings": list(_offerings(pod, plan)),
        "nearestMisses": [_miss(miss) for miss in left.near_misses] if left else [],
        "done": list(_done(pod, snapshot)),
    }


def _reason(reason: Reason) -> dict[str, str]:
    return {"code": reason.code.value, "text": text_of(reason)}


def _claim(pod: Pod, entry: str, name: str | None, snapshot: Snapshot) -> dict[str, Any]:
    claim = snapshot.claims.get(f"{pod.namespace}/{name}") if name else None
    devices = (
        [f"{d.driver}/{d.pool}/{d.device}" for d in claim.allocation.devices] if claim and claim.allocation else []
    )
    state = "missing" if claim is None else "allocated" if claim.allocation else "pending"
    return {"entry": entry, "claim": name or "", "state": state, "devices": devices}


def _decision(
    placement: Placement | None, left: LeftOut | None, snapshot: Snapshot, plan: Plan
) -> dict[str, Any] | None:
    """What the plan makes of the pod; None for a pod that looks for no node."""
    if placement is not None:
        launch = next((node for node in plan.launches if node.name == placement.node), None)
        found: dict[str, Any] = {"outcome": placement.target.value, "node": placement.node}
        if placement.target is Target.NEW and launch is not None:
            pool = next((pool for pool in snapshot.pools if pool.name == launch.pool), None)
            price = None if launch.usd_per_hour is None else str(launch.usd_per_hour)
            found |= {"offering": offering_text(launch.offering), "usdPerHour": price, "drivers": list(launch.drivers)}
            found |= {"pool": launch.pool if pool else "", "acts": pool is not None and pool.acts}
        why = placement.reasons or (launch.reasons if launch else ())
        return {**found, "reasons": [_reason(reason) for reason in why]}
    if left is not None:
        return {"outcome": left.verdict, "reasons": [_reason(reason) for reason in left.reasons]}
    return None


def _offerings(pod: Pod, plan: Plan) -> Iterator[dict[str, Any]]:
    """What was looked at, counted by outcome and reason; what was chosen and what fits first."""
    groups: dict[tuple[str, str], list[Considered]] = {}
    for demand in plan.demands:
        if pod.key in demand.pods:
            for entry in demand.considered:
                groups.setdefault((entry.outcome, _why(entry)), []).append(entry)
    order = ("chosen", "fits", "unknown", "fatal", "does-not-fit")
    for (outcome, why), entries in sorted(groups.items(), key=lambda g: (order.index(g[0][0]), -len(g[1]), g[0][1])):
        types = list(dict.fromkeys(entry.offering.instance_type for entry in entries))
        yield {
            "outcome": outcome,
            "reason": why,
            "codes": sorted({reason.code.value for entry in entries for reason in entry.reasons[:1]}),
            "offerings": len(entries),
            "types": len(types),
            "examples": types[:_EXAMPLES],
        }


def _why(entry: Considered) -> str:
    """The reason that decided: the first, which a check found before looking further; without the offering's name."""
    own = f"offering {entry.offering.instance_type}"
    return texts_of(tuple(replace(r, subject="") if r.subject == own else r for r in entry.reasons[:1]))


def _miss(miss: NearMiss) -> dict[str, Any]:
    return {**_reason(miss.reason), "types": miss.types, "example": miss.example}


def _done(pod: Pod, snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    for node in snapshot.provisioned:
        if pod.key in node.pods:
            why = node.history[-1][2] if node.history else ""
            since = node.phase_since.isoformat() if node.phase_since else None
            yield {
                "provisionedNode": node.name,
                "node": node.node_name,
                "offering": offering_text(node.offering),
                "phase": node.phase.value,
                "since": since,
                "why": why,
            }


def explanation_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The explanation for people."""
    where = f"runs on {found['node']}" if found["node"] else f"is {found['phase']}"
    yield f"Pod {found['pod']} {where}"
    yield from _section("Waits for", (entry["text"] for entry in found["waitsFor"]))
    yield from _section("Claims", map(_claim_line, found["claims"]))
    if found["decision"]:
        yield from _section("Decision", _decision_lines(found["decision"]))
    yield from _section("Offerings looked at", map(_offering_line, found["offerings"]))
    yield from _section(
        "Nearest misses",
        (
            f"{m['types']} type{'' if m['types'] == 1 else 's'}: {m['text']} (e.g. {m['example']})"
            for m in found["nearestMisses"]
        ),
    )
    yield from _section(
        "Done", (f"{d['provisionedNode']}: {d['offering']} is {d['phase']} ({d['why']})" for d in found["done"])
    )


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    listed = list(lines)
    if listed:
        yield ""
        yield f"{title}:"
        yield from (f"  {line}" for line in listed)


def _claim_line(entry: Mapping[str, Any]) -> str:
    devices = f" {', '.join(entry['devices'])}" if entry["devices"] else ""
    return f"{entry['entry']} ({entry['claim'] or 'not created yet'}): {entry['state']}{devices}"


def _decision_lines(found: Mapping[str, Any]) -> Iterator[str]:
    match found["outcome"]:
        case "new":
            price = f" at {found['usdPerHour']} $/h" if found["usdPerHour"] else ""
            who = f"pool {found['pool']}" if found["pool"] else "a CapacityPool that there is not yet"
            does = "launches" if found["acts"] else "would launch"
            yield f"{who} {does} {found['offering']}{price}, drivers {', '.join(found['drivers'])}"
        case "existing" | "coming":
            yield f"fits {found['outcome']} node {found['node']}"
        case "out-of-scope":
            yield "no pool serves it"
        case verdict:
            yield f"gets no node: {verdict}"
    yield from (entry["text"] for entry in found["reasons"])


def _offering_line(entry: Mapping[str, Any]) -> str:
    examples = ", ".join(entry["examples"])
    why = f": {entry['reason']}" if entry["reason"] else ""
    return f"{entry['offerings']} {entry['outcome']}{why} (e.g. {examples})"
