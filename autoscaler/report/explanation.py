"""The data of `foreslice explain` for one pod: what it waits for, the offerings considered, and the actions.

Computed from a snapshot and a plan, so it is the same whether a controller runs in the cluster or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from autoscaler.advice.trial import Advice
from autoscaler.checks.pool_condition import PoolCondition
from autoscaler.lifecycle.provisioned_node import last_edge
from autoscaler.model.plan import (
    Considered,
    ConsideredOutcome,
    LeftOut,
    LeftOutVerdict,
    NearMiss,
    Placement,
    Plan,
    Target,
)
from autoscaler.model.pod import Pod
from autoscaler.model.reason import NO_SUBJECT, SHORT_AMOUNTS, Code, Reason, Subject
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import why_pending
from autoscaler.report.advised.listed import NO_HELP, advice_document, listed
from autoscaler.report.checks_text import what_is_wrong
from autoscaler.report.events import offering_text
from autoscaler.report.explained.objects import section
from autoscaler.report.reasons import joined, text_of, texts_of
from autoscaler.report.tables.defragmentation import room_lines
from autoscaler.report.words import counted, money, ready_text
from instance_catalog.dataclass import replace

_EXAMPLES = 3
_PLACED: Final = frozenset({target.value for target in Target})


def explanation_of(
    pod: Pod,
    snapshot: Snapshot,
    plan: Plan,
    checked: Iterable[PoolCondition] = (),
    advice: Sequence[Advice] = (),
    *,
    scheduled: bool = True,
) -> dict[str, Any]:
    """The explanation of the pod, as plain data; docs/explain.md has the fields.

    `checked` are the conditions of the pools: one that stops keeps its pool from acting. `advice` are changes that were
    tried and place the pod.
    """
    left = next((entry for entry in (*plan.left_out, *plan.outside) if entry.pod == pod.key), None)
    placement = next((entry for entry in plan.placements if entry.pod == pod.key), None)
    waits = () if pod.node_name else why_pending(pod, snapshot)
    if not scheduled:
        waits = tuple(reason for reason in waits if reason.code is not Code.NOT_TRIED)
    return {
        "pod": pod.key,
        "phase": pod.phase,
        "node": pod.node_name,
        "waitsFor": [_reason(_of(pod, reason)) for reason in waits],
        "claims": [_claim(pod, entry.name, entry.claim, snapshot) for entry in pod.claims if entry.claim != ""],
        "decision": _decision(placement, left, snapshot, plan, checked),
        "offerings": list(_offerings(pod, plan)),
        "nearestMisses": [_miss(miss, pod) for miss in left.near_misses] if left else [],
        "wouldHelp": advice_document(advice),
        **({"room": room} if (room := list(room_lines(plan, frozenset({pod.key})))) else {}),
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
    placement: Placement | None, left: LeftOut | None, snapshot: Snapshot, plan: Plan, checked: Iterable[PoolCondition]
) -> dict[str, Any] | None:
    """The plan's decision about the pod; None for a pod that needs no node."""
    if placement is not None:
        launch = next((node for node in plan.launches if node.name == placement.node), None)
        found: dict[str, Any] = {"outcome": placement.target.value, "node": placement.node}
        if placement.target is Target.NEW and launch is not None:
            pool = next((pool for pool in snapshot.pools if pool.name == launch.pool), None)
            price = None if launch.usd_per_hour is None else str(launch.usd_per_hour)
            found |= {
                "offering": offering_text(launch.offering),
                "usdPerHour": price,
                "drivers": list(launch.publishing),
            }
            bad = [finding for finding in checked if finding.pool == launch.pool and finding.stops]
            found |= {"pool": launch.pool if pool else "", "acts": pool is not None and pool.acts and not bad}
            found |= {"readyIn": text} if (text := ready_text(launch.ready_in)) else {}
            found |= {"heldBackBy": [f"{f.type.value}: {what_is_wrong(f)}" for f in bad]}
        why = placement.reasons or (launch.reasons if launch else ())
        return {**found, "reasons": [_reason(reason) for reason in joined(why)]}
    if left is not None:
        return {"outcome": left.verdict.value, "reasons": [_reason(reason) for reason in joined(left.reasons)]}
    return None


def _offerings(pod: Pod, plan: Plan) -> Iterator[dict[str, Any]]:
    """The offerings considered, counted by outcome and reason: the chosen one first, then those that fit."""
    groups: dict[tuple[object, ...], list[Considered]] = {}
    for demand in plan.demands:
        if pod.key in demand.pods:
            for entry in demand.considered:
                groups.setdefault(_cause(entry, pod), []).append(entry)
    order = tuple(ConsideredOutcome)
    for entries in sorted(groups.values(), key=lambda g: (order.index(g[0].outcome), -len(g), _why(g[0], pod))):
        types = list(dict.fromkeys(entry.offering.instance_type for entry in entries))
        yield {
            "outcome": entries[0].outcome.value,
            "reason": _why(max(entries, key=_free), pod),
            "codes": sorted({reason.code.value for entry in entries for reason in entry.reasons[:1]}),
            "offerings": len(entries),
            "types": len(types),
            "examples": types[:_EXAMPLES],
        }


def _cause(entry: Considered, pod: Pod) -> tuple[object, ...]:
    """The key that is equal for offerings with the same reason, whatever the amount that is missing of a resource."""
    for reason in _decisive(entry):
        if reason.code in SHORT_AMOUNTS:
            return entry.outcome, reason.subject, reason.detail["resource"]
    return entry.outcome, _why(entry, pod)


def _free(entry: Considered) -> int:
    """The free amount of the resource that is insufficient."""
    found = [reason.detail.get("free") for reason in _decisive(entry)]
    return next((amount for amount in found if isinstance(amount, int)), 0)


def _decisive(entry: Considered) -> Iterator[Reason]:
    """The decisive reason: the first one, because a check stops there. Without the offering's name."""
    own = Subject("offering", entry.offering.instance_type)
    yield from (
        replace(reason, subject=NO_SUBJECT) if reason.subject == own else reason for reason in entry.reasons[:1]
    )


def _why(entry: Considered, pod: Pod) -> str:
    return texts_of(tuple(_of(pod, reason) for reason in _decisive(entry)))


def _of(pod: Pod, reason: Reason) -> Reason:
    """The reason without the pod as subject, for a text that is about the pod."""
    return replace(reason, subject=NO_SUBJECT) if reason.subject == Subject("pod", pod.key) else reason


def _miss(miss: NearMiss, pod: Pod) -> dict[str, Any]:
    return {**_reason(_of(pod, miss.reason)), "types": miss.types, "example": miss.example}


def _done(pod: Pod, snapshot: Snapshot) -> Iterator[dict[str, Any]]:
    for node in snapshot.provisioned:
        if pod.key in node.pods:
            why = last_edge(node)
            since = node.phase_since.isoformat() if node.phase_since else None
            yield {
                "provisionedNode": node.name,
                "node": node.node_name,
                "offering": offering_text(node.offering),
                "phase": node.phase.value,
                "since": since,
                "why": why,
                "waitingSince": held.isoformat() if (held := snapshot.waiting.get(node.name)) else None,
            }


def explanation_lines(found: Mapping[str, Any]) -> Iterator[str]:
    where = f"runs on {found['node']}" if found["node"] else f"is {found['phase']}"
    yield f"Pod {found['pod']} {where}"
    yield from section("Waits for", (entry["text"] for entry in found["waitsFor"]))
    yield from section("Claims", map(_claim_line, found["claims"]))
    if found["decision"]:
        yield from section("Decision", _decision_lines(found["decision"]))
    yield from section("Offerings considered", map(_offering_line, found["offerings"]))
    yield from section(
        "Nearest misses",
        (f"{counted(m['types'], 'type')}: {m['text']} (e.g. {m['example']})" for m in found["nearestMisses"]),
    )
    # No change was tried for a pod that no pool serves.
    asked = found["wouldHelp"] or (found["decision"] and found["decision"]["outcome"] != LeftOutVerdict.OUT_OF_SCOPE)
    if asked and found["decision"] and found["decision"]["outcome"] not in _PLACED and not _waits(found["decision"]):
        yield from section("Smallest changes that place it", _advice_lines(found["wouldHelp"]))
    yield from section("Moves that would make room", found.get("room", ()))
    yield from section("Done", _done_lines(found))


def _advice_lines(found: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Each change as a list; below its steps, result and notes are indented, which sets it apart from the next."""
    for entry in found:
        lines, steps = listed(entry["steps"], entry["result"]["text"], entry["notes"]), len(entry["steps"])
        yield from (*lines[:steps], *(f"  {line}" for line in lines[steps:]))
    if not found:
        yield NO_HELP


def _claim_line(entry: Mapping[str, Any]) -> str:
    devices = f" {', '.join(entry['devices'])}" if entry["devices"] else ""
    return f"{entry['entry']} ({entry['claim'] or 'not created yet'}): {entry['state']}{devices}"


_NO_NODE: Final = {
    LeftOutVerdict.DOES_NOT_FIT: "gets no node",
    LeftOutVerdict.UNKNOWN: "gets no node: whether it fits cannot be decided before a node runs",
    LeftOutVerdict.FATAL: "gets no node: kube-scheduler gives up on it",
}


def _waits(decision: Mapping[str, Any]) -> bool:
    """True if no change is needed: the wait ends by itself."""
    codes = {reason["code"] for reason in decision["reasons"]}
    return codes == {Code.WAITS_FOR_BLOCK.value}


def _decision_lines(found: Mapping[str, Any]) -> Iterator[str]:
    match found["outcome"]:
        case "new":
            price = f" at {money(found['usdPerHour'])} $/h" if found["usdPerHour"] else ""
            who = f"pool {found['pool']}" if found["pool"] else "a CapacityPool that there is not yet"
            does = "launches" if found["acts"] else "would launch"
            yield f"{who} {does} {found['offering']}{price}, drivers {', '.join(found['drivers'])}"
            yield from [found["readyIn"]] if "readyIn" in found else []
        case "existing" | "coming":
            yield f"fits {found['outcome']} node {found['node']}"
        case LeftOutVerdict.OUT_OF_SCOPE:
            yield "no pool serves it"
        case _ if _waits(found):
            yield "waits, as its block or the pod itself allows"
        case verdict:
            yield _NO_NODE.get(verdict, f"gets no node: {verdict}")
    yield from (entry["text"] for entry in found["reasons"])


_OUTCOMES: Final = {ConsideredOutcome.FITS: "fit", ConsideredOutcome.DOES_NOT_FIT: "do not fit"}


def _offering_line(entry: Mapping[str, Any]) -> str:
    what = f"{entry['offerings']} {_OUTCOMES.get(entry['outcome'], entry['outcome'])}"
    joint = ", but " if entry["outcome"] == ConsideredOutcome.FITS else ": "
    return f"{what}{joint if entry['reason'] else ''}{entry['reason']} (e.g. {', '.join(entry['examples'])})"


def _done_lines(found: Mapping[str, Any]) -> Iterator[str]:
    yield from (f"{d['provisionedNode']}: {d['offering']} is {d['phase']} ({d['why']})" for d in found["done"])
    decision = found["decision"]
    if found["done"] or not decision or decision["outcome"] != "new":
        return
    if decision["acts"]:
        yield "nothing yet; a pool in mode Act launches in its controller's next reconcile"
    elif not decision["pool"]:
        yield "nothing: create a CapacityPool that offers this type with these drivers (docs/install.md)"
    elif decision["heldBackBy"]:
        yield f"nothing: pool {decision['pool']} is held back, see `foreslice doctor`"
        yield from decision["heldBackBy"]
    else:
        patch = f'kubectl patch capacitypool {decision["pool"]} --type merge -p \'{{"spec": {{"mode": "Act"}}}}\''
        yield f"nothing: pool {decision['pool']} observes; to let it launch: {patch}"
