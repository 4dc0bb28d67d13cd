"""Whether a pool can be used as it is written, and whether its provider launches: what its condition Ready says.

What a schema can know is checked before; this is about what only catalog, providers and their answers know.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Final

from autoscaler.model.capacity import CapacityPool
from autoscaler.model.reason import Code, Reason, subject_of
from autoscaler.model.snapshot import Backoff
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.planning.supply.drivers import launches_slices
from instance_catalog.dataclass import replace

# Objections with which nothing can be launched.
_UNUSABLE: Final = frozenset({Code.UNUSABLE, Code.NO_PRICE})
# Answers that nobody has to do anything about.
_PASSING: Final = frozenset({"", "Ambiguous", "Busy", "Throttled"})
# A launch that begins so long after a back-off tries again what failed, and its answer is still to come.
_TRIED_AGAIN: Final = timedelta(minutes=5)


def obstacles(
    pool: CapacityPool,
    *,
    objections: Iterable[Reason],
    backoffs: Iterable[Backoff],
    serving: Mapping[str, Reason | None] | None,
    orders: bool = True,
) -> Iterator[Reason]:
    """What is wrong with a pool. `orders`: whether Cluster Autoscaler can order nodes.

    `objections` are those of the plan, `backoffs` those that `telling` says. `serving` are the kinds of node templates
    that are launched from, with what is wrong with their provider; None where nobody knows, as outside the controller.
    """
    subject = subject_of("pool", pool.name)
    yield from (replace(r, subject="") for r in objections if r.subject == subject and r.code in _UNUSABLE)
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
    """The back-offs that say whether the pool's provider launches. `launches`: machines are being asked for. What
    rested until then has not answered yet: the condition would change twice with every attempt that fails alike."""
    since = now - _TRIED_AGAIN if launches else now
    return tuple(one for one in backoffs if one.pool == pool.name and one.until > since)


def resting(pool: CapacityPool, candidates: Iterable[Candidate], backoffs: Iterable[Backoff]) -> Iterator[Reason]:
    """Why nothing that the pool may buy can be launched now. `candidates`: as if nothing rested. `backoffs`: those that
    `telling` says.

    No group of its node template starts any of it. Or the provider answered something else, each time about some
    offerings only: one reason of a kind, with the first moment that something is tried again.
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
    """Whether the pool launches nothing at all because of it, and a person has to do something."""
    everything = not (backoff.instance_type or backoff.zone or backoff.capacity_type)
    return everything and backoff.reason not in _PASSING
