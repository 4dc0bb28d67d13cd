"""The status page and the explanation of one pod as values; serve/ renders them as HTML.

It has plain text only, and none of it is trusted: names and messages come from anyone who may create objects. With a
namespace, pods of others are counted and not named; the explanation of a pod names no other pod.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from autoscaler.lifecycle.provisioned_node import counts_against_limits, is_over
from autoscaler.lifecycle.spending import price_of, spent_today
from autoscaler.model.capacity import CapacityPool
from autoscaler.model.plan import LeftOut, LeftOutVerdict, Placement, Plan, PlannedNode, Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.report.events import offering_text
from autoscaler.report.reasons import joined, text_of, texts_of
from autoscaler.report.redaction import Readable, of_namespace, of_pod, redacted
from autoscaler.report.tables.cluster_tables import block_entries, blocks_table
from autoscaler.report.tables.defragmentation import fragmentation_lines, room_lines
from autoscaler.report.tables.plan_tables import Table
from autoscaler.report.words import age_text, counted, money, ready_text, waiting_text
from instance_catalog.dataclass import dataclass

SHOWN_WAITING = 500  # pods on one page; one namespace at a time has fewer
_SHOWN_PODS = 5
_SHOWN_REASONS = 12


@dataclass(frozen=True, slots=True)
class WaitingPod:
    """A pending pod in one line."""

    namespace: str
    name: str
    state: str
    why: str
    age: str = ""
    bad: bool = False  # no node is planned or starting for it


@dataclass(frozen=True, slots=True)
class StatusPage:
    """The page in reading order. `as_of` is the time of the reconcile that it shows."""

    as_of: datetime
    namespace: str
    summary: tuple[str, ...]
    waiting: tuple[WaitingPod, ...]
    tables: tuple[Table, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The reason why one pod waits, or its node."""

    as_of: datetime
    pod: str
    state: str
    why: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    tables: tuple[Table, ...]


def status_page(snapshot: Snapshot, plan: Plan, now: datetime, *, namespace: str = "") -> StatusPage:
    """The page after a reconcile, for the pods of one namespace or of all."""
    outcomes, readable = _Outcomes.of(snapshot, plan), of_namespace(namespace)
    pending = [pod for pod in snapshot.pods if pod.key in outcomes.planned and pod.node_name is None]
    shown = [pod for pod in pending if namespace in ("", pod.namespace)]
    return StatusPage(
        as_of=now,
        namespace=namespace,
        summary=(
            *_summary(snapshot, plan, now, readable, waiting=len(shown)),
            *fragmentation_lines(plan),
            *(() if namespace else room_lines(plan)),  # those name pods of all namespaces
        ),
        waiting=tuple(_waiting(pod, outcomes, readable, now) for pod in shown[:SHOWN_WAITING]),
        tables=(
            _launches(snapshot, plan, namespace),
            _pools(snapshot, plan, now),
            _nodes(snapshot, now, namespace),
            _blocks(snapshot, now),
        ),
    )


def explanation(snapshot: Snapshot, plan: Plan, now: datetime, *, pod: str) -> Explanation | None:
    """The explanation of a pod (namespace/name); None if there is no such pod."""
    found = next((each for each in snapshot.pods if each.key == pod), None)
    if found is None:
        return None
    readable = of_pod(found)
    state, why = _state(found, _Outcomes.of(snapshot, plan), readable)
    return Explanation(
        as_of=now,
        pod=pod,
        state=state,
        why=why,
        facts=tuple(_facts(found, snapshot, now)),
        tables=tuple(table for table in _considered(pod, plan, readable) if table.rows),
    )


# -- pods


@dataclass(frozen=True, slots=True)
class _Outcomes:
    """The plan's results by key of the pod; launches by name; names of the pools that act."""

    placements: Mapping[str, Placement]
    left: Mapping[str, LeftOut]
    launches: Mapping[str, PlannedNode]
    acting: Set[str]
    pools: Set[str]

    @staticmethod
    def of(snapshot: Snapshot, plan: Plan) -> _Outcomes:
        return _Outcomes(
            placements={placement.pod: placement for placement in plan.placements},
            left={left.pod: left for left in (*plan.left_out, *plan.outside)},
            launches={launch.name: launch for launch in plan.launches},
            acting=_acting(snapshot),
            pools={pool.name for pool in snapshot.pools},
        )

    @property
    def planned(self) -> Set[str]:
        """The pods in the plan."""
        return self.placements.keys() | self.left.keys()


def _waiting(pod: Pod, outcomes: _Outcomes, readable: Readable, now: datetime) -> WaitingPod:
    state, why = _state(pod, outcomes, readable)
    age = age_text(timedelta(seconds=now.timestamp() - pod.created)) if pod.created else ""
    return WaitingPod(pod.namespace, pod.name, state, "; ".join(why), age, bad=pod.key in outcomes.left)


def _state(pod: Pod, outcomes: _Outcomes, readable: Readable) -> tuple[str, tuple[str, ...]]:
    """The pod's state in a few words, and the reasons as sentences."""
    if pod.node_name is not None:
        return f"runs on node {pod.node_name}", ()
    placement = outcomes.placements.get(pod.key)
    if placement is not None:
        launch = outcomes.launches.get(placement.node)
        reasons = placement.reasons or (launch.reasons if launch else ())
        # The state already shows the kind of node.
        shown = joined(redacted(tuple(r for r in reasons if r.code not in _SHOWN_BY_STATE), readable))
        return _destination(placement, launch, outcomes), tuple(map(text_of, shown))
    left = outcomes.left.get(pod.key)
    if left is None:
        return "not planned yet: the next reconcile decides", ()
    return _STATES.get(left.verdict, "no node fits"), tuple(_why_not(left, readable))


_SHOWN_BY_STATE: Final = frozenset({Code.EXISTING_NODE, Code.COMING_NODE})
_STATES: Final = {
    LeftOutVerdict.FATAL: "kube-scheduler fails on it",
    LeftOutVerdict.UNKNOWN: "undecided: it depends on values that are not known before launch",
    LeftOutVerdict.OUT_OF_SCOPE: "ignored: no pool serves it",
}


def _destination(placement: Placement, launch: PlannedNode | None, outcomes: _Outcomes) -> str:
    if placement.target is Target.EXISTING:
        return f"fits node {placement.node}"
    if placement.target is Target.COMING and any("since" in reason.detail for reason in placement.reasons):
        return f"waits for node {placement.node}, which the provider starts when it has capacity"
    if placement.target is Target.COMING:
        return f"waits for node {placement.node}, which is starting"
    if launch is None:
        return f"waits for new node {placement.node}"
    if launch.pool in outcomes.acting:
        ready = f", {text}" if (text := ready_text(launch.ready_in)) else ""
        return f"a node is being launched: {offering_text(launch.offering)}{ready}"
    if launch.pool not in outcomes.pools:
        return f"would get a new node: {offering_text(launch.offering)}"
    return f"would get a new node if pool {launch.pool} were in mode Act: {offering_text(launch.offering)}"


def _why_not(left: LeftOut, readable: Readable) -> Iterator[str]:
    yield from map(text_of, joined(redacted(left.reasons, readable)))
    for miss in left.near_misses[:1]:
        (reason,) = redacted([miss.reason], readable)
        if miss.reason.code in {each.code for each in left.reasons}:
            continue
        yield f"nearest miss: {text_of(reason)} ({miss.types} instance types, such as {miss.example})"


def _facts(pod: Pod, snapshot: Snapshot, now: datetime) -> Iterator[tuple[str, str]]:
    yield "phase", "being deleted" if pod.deleting else pod.phase
    if pod.unscheduled:
        yield "kube-scheduler says", f"{pod.unscheduled}: {pod.unscheduled_why}".removesuffix(": ")
    if pod.scheduling_gates:
        yield "scheduling gates", ", ".join(pod.scheduling_gates)
    if pod.owner:
        yield "belongs to", pod.owner
    if pod.gang is not None:
        yield "gang", pod.gang.key
    for node in snapshot.provisioned:
        if pod.key in node.pods:
            since = "" if node.phase_since is None else f" for {age_text(now - node.phase_since)}"
            yield "node asked for", f"{node.name}, {offering_text(node.offering)}, {node.phase.value}{since}"
            if (held := snapshot.waiting.get(node.name)) is not None:
                yield "request to the provider", waiting_text(now - held)


def _considered(pod: str, plan: Plan, readable: Readable) -> Iterator[Table]:
    demand = next((each for each in plan.demands if pod in each.pods), None)
    if demand is None:
        return
    fitting = tuple(
        (
            offering_text(each.offering),
            each.pool,
            each.outcome,
            money(each.offering.usd_per_hour, "unpriced"),
            texts_of(redacted(each.reasons, readable)),
        )
        for each in demand.considered
        if each.outcome.fits
    )
    yield Table("Offerings that fit", ("offering", "pool", "outcome", "$/h", "why"), fitting)
    rejected = [each for each in demand.considered if not each.outcome.fits]
    texts = [texts_of(redacted(each.reasons, readable)) or each.outcome for each in rejected]
    why = Counter(texts)
    examples = {text: each.offering.instance_type for text, each in reversed(list(zip(texts, rejected, strict=True)))}
    rows = tuple((reason, str(count), examples[reason]) for reason, count in why.most_common(_SHOWN_REASONS))
    yield Table("Offerings that do not fit", ("why", "offerings", "such as"), rows)


# -- what there is


def _summary(snapshot: Snapshot, plan: Plan, now: datetime, readable: Readable, *, waiting: int) -> Iterator[str]:
    alive = [node for node in snapshot.provisioned if counts_against_limits(node)]
    yield f"{counted(len(alive), 'managed node')} for {money(price_of(alive))} $/h"
    yield f"{money(spent_today(snapshot.spending, now))} $ spent since midnight UTC"
    shown = f", of which {SHOWN_WAITING} are shown: choose a namespace" if waiting > SHOWN_WAITING else ""
    yield f"{counted(waiting, 'pending pod')}{shown}"
    if snapshot.spending and snapshot.spending.binding:
        yield f"spending limits that block launches: {', '.join(snapshot.spending.binding)}"
    # A text about a pod of others is of no use without the name.
    yield from (text_of(reason) for reason in plan.warnings if redacted([reason], readable) == (reason,))


def _launches(snapshot: Snapshot, plan: Plan, namespace: str) -> Table:
    acting = _acting(snapshot)
    rows = tuple(
        (
            "launched" if launch.pool in acting else "proposed",
            launch.pool,
            offering_text(launch.offering),
            _cost(launch.offering, launch.usd_per_hour),
            _pods(launch.pods, namespace) or "baseline",
            texts_of(redacted(launch.reasons, of_namespace(namespace))),
        )
        for launch in plan.launches
    )
    return Table("Nodes to launch", ("state", "pool", "offering", "$/h", "for", "why"), rows)


def _pools(snapshot: Snapshot, plan: Plan, now: datetime) -> Table:
    rows = tuple(_pool(pool, snapshot, plan, now) for pool in snapshot.pools)
    return Table("Pools", ("name", "mode", "nodes", "limits", "$/h", "$/h proposed", "held back"), rows)


def _pool(pool: CapacityPool, snapshot: Snapshot, plan: Plan, now: datetime) -> tuple[str, ...]:
    nodes = [node for node in snapshot.provisioned if node.pool == pool.name and not is_over(node)]
    proposed = (
        launch.usd_per_hour or Decimal(0) for launch in plan.launches if launch.pool == pool.name and not pool.acts
    )
    bounds = (
        ("accelerators", pool.limits.accelerators),
        ("nodes", pool.limits.nodes),
        ("$/h", pool.limits.usd_per_hour),
    )
    held_back = ["its conditions (`foreslice doctor`)"] if pool.held_back else []
    held_back += [
        f"{q.instance_type} is quarantined until {q.until:%d %b %H:%M} UTC"
        for q in snapshot.quarantines
        if q.pool == pool.name and q.until is not None and q.until > now
    ]
    held_back += [
        f"{backoff.instance_type or 'every type'} in {backoff.zone or 'every zone'}: {backoff.reason} until "
        f"{backoff.until:%d %b %H:%M} UTC"
        for backoff in snapshot.backoffs
        if backoff.pool == pool.name and backoff.until > now
    ]
    return (
        pool.name,
        pool.mode.value,
        str(len(nodes)),
        ", ".join(f"{what} ≤ {bound}" for what, bound in bounds if bound is not None),
        money(price_of(nodes)),
        money(sum(proposed, Decimal(0))),
        "; ".join(held_back),
    )


def _nodes(snapshot: Snapshot, now: datetime, namespace: str) -> Table:
    rows = tuple(
        (
            node.node_name,
            node.pool,
            offering_text(node.offering),
            _cost(node.offering, node.offering.usd_per_hour),
            f"{node.phase.value}, waits for capacity" if node.name in snapshot.waiting else node.phase.value,
            "" if node.phase_since is None else age_text(now - node.phase_since),
            _pods(node.pods, namespace),
        )
        for node in snapshot.provisioned
    )
    return Table("Nodes", ("node", "pool", "offering", "$/h", "phase", "time in phase", "bought for"), rows)


def _blocks(snapshot: Snapshot, now: datetime) -> Table:
    table = blocks_table(block_entries(snapshot, now))
    return Table("Capacity blocks", table.columns, table.rows)


def _acting(snapshot: Snapshot) -> set[str]:
    return {pool.name for pool in snapshot.pools if pool.acts}


def _cost(offering: OfferingRef, price: Decimal | None) -> str:
    """The cost of a node per hour from now on; nothing for a prepaid one."""
    if offering.block:
        return "prepaid"
    return money(price, "unpriced")


def _pods(keys: tuple[str, ...], namespace: str) -> str:
    """Some pods by name; those of other namespaces, and those beyond a handful, as a number."""
    named = [key for key in keys if namespace in ("", key.partition("/")[0])][:_SHOWN_PODS]
    rest = len(keys) - len(named)
    return ", ".join((*named, *([f"{rest} more"] if rest else [])))
