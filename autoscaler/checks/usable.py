"""Checks whether a pool is usable as written, and whether its provider launches: the condition Ready.

The schema is checked before; these checks need the catalog, the providers and their answers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.reason import NO_SUBJECT, Code, Reason, Subject
from autoscaler.model.snapshot import Backoff
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.drivers import launches_slices
from instance_catalog.dataclass import replace

# Objections with which nothing can be launched.
_UNUSABLE: Final = frozenset({Code.UNUSABLE, Code.NO_PRICE})
# Answers that need no action.
_PASSING: Final = frozenset({"", "Ambiguous", "Busy", "Throttled"})
# A launch that begins within this time after a back-off is a new attempt, whose answer is still missing.
_TRIED_AGAIN: Final = timedelta(minutes=5)


def obstacles(
    pool: CapacityPool,
    *,
    objections: Iterable[Reason],
    backoffs: Iterable[Backoff],
    serving: Mapping[str, Reason | None] | None,
    orders: bool = True,
) -> Iterator[Reason]:
    """The faults of a pool. `orders`: Cluster Autoscaler can order nodes.

    `objections` are those of the plan, `backoffs` those of `telling`. `serving` are the kinds of node templates with a
    provider, each with the provider's fault if it has one; None if unknown, as outside the controller.
    """
    subject = Subject("pool", pool.name)
    yield from (replace(r, subject=NO_SUBJECT) for r in objections if r.subject == subject and r.code in _UNUSABLE)
    if pool.ordered and not orders:
        problem = "ClusterAutoscaler cannot order nodes here: set serve.externalGrpc, or launcher to Foreslice"
        yield Reason.of(Code.UNUSABLE, field="spec.launcher", problem=problem)
    kind = pool.node_template.kind
    if serving is not None and kind:
        if kind not in serving:
            yield Reason.of(Code.NO_PROVIDER, kind=kind, served=" or ".join(sorted(serving)))
        elif (refusal := serving[kind]) is not None:
            yield refusal
    for backoff in backoffs:
        if _of_everything(backoff):
            yield _failed(backoff)


def telling(pool: CapacityPool, backoffs: Iterable[Backoff], *, launches: bool, now: datetime) -> tuple[Backoff, ...]:
    """The back-offs that show whether the pool's provider launches. `launches`: machines are being requested. A
    back-off that has just ended counts, because its new attempt has no answer yet: otherwise the condition would change
    twice with every attempt that fails in the same way."""
    since = now - _TRIED_AGAIN if launches else now
    return tuple(one for one in backoffs if one.pool == pool.name and one.until > since)


def resting(pool: CapacityPool, candidates: Iterable[Candidate], backoffs: Iterable[Backoff]) -> Iterator[Reason]:
    """The reasons why nothing that the pool may buy can be launched now. `candidates`: as if there were no back-offs.
    `backoffs`: those of `telling`.

    No group of its node template starts any of it; or the provider returned other errors, each about some offerings
    only: one reason of a kind, with the first time that an offering is tried again.
    """
    live = [b for b in backoffs if b.reason not in _PASSING]
    all_of = [c for c in candidates if c.pool.name == pool.name]
    absent = [c for c in all_of if c.barred is not None and c.barred.code is Code.NOT_IN_GROUPS]
    if absent and all(c.excluded for c in all_of):
        kind, template = pool.node_template.kind, pool.node_template.name
        yield Reason.of(Code.NOT_IN_GROUPS, of="what the pool may buy", kind=kind, template=template)
        return
    own = [c.offering for c in all_of if c.barred is None]
    if any(map(_of_everything, live)) or not own or not all(any(b.covers(one) for b in live) for one in own):
        return
    first: dict[str, Backoff] = {}
    for backoff in sorted(live, key=lambda one: one.until):
        first.setdefault(backoff.reason, backoff)
    yield from map(_failed, first.values())


def slices_of_hosts(pool: CapacityPool, candidates: Iterable[Candidate]) -> Iterator[Reason]:
    """That the pool would buy TPU slices of several hosts that its provider does not launch all or nothing."""
    own = (c for c in candidates if c.pool.name == pool.name and c.hosts > 1)
    whole = next((c for c in own if not launches_slices(pool, c.hosts)), None)
    if whole is not None:
        yield Reason.of(Code.SLICE_NOT_LAUNCHED, hosts=whole.hosts, instance_type=whole.instance_type.name)


def _failed(backoff: Backoff) -> Reason:
    until = backoff.until.isoformat(timespec="seconds")
    return Reason.of(Code.LAUNCH_FAILED, until=until, error=backoff.reason, message=backoff.message)


def _of_everything(backoff: Backoff) -> bool:
    """True if the pool launches nothing because of it, and a person has to act."""
    everything = not (backoff.instance_type or backoff.zone or backoff.capacity_type)
    return everything and backoff.reason not in _PASSING
