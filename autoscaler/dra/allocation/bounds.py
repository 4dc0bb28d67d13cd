"""Proves by counting that a search cannot succeed, whatever the order in which it tries devices.

Only for searches that cannot reach an error, because upstream would report the error instead of "does not fit". Every
bound is a relaxation: it drops some rule, so whatever it finds impossible is impossible.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import nsmallest
from typing import Protocol

from autoscaler.dra.allocation.constraints import State
from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.requests import ClaimPlan, RequestPlan
from autoscaler.dra.inventory.allocated import Consumed
from autoscaler.dra.inventory.counters import CounterTable
from autoscaler.dra.inventory.pools import NodePool, PooledDevice
from autoscaler.dra.inventory.selectors import Answer
from autoscaler.dra.inventory.taints import tolerated


class SearchState(Protocol):
    """The part of a search's state that determines what it can still find."""

    context: AllocationContext
    plans: list[ClaimPlan]
    unknown_is_yes: bool
    busy: list[bool]
    taken: list[int]
    consumed: dict[int, Consumed]
    states: list[list[State]]
    tables: dict[object, CounterTable]

    def held(self) -> Sequence[Sequence[PooledDevice]]:
        """The devices allocated so far, per claim."""

    def table(self, pool: NodePool) -> CounterTable:
        """The counters of a pool."""


def provably_infeasible(position: SearchState) -> bool:
    """True if a request alone has too few devices, or all requests together have too few devices or counters."""
    together: set[int] = set()
    wanted = 0
    drawn: dict[str, int] = {}
    for claim in position.plans:
        for request in claim.requests:
            if not isinstance(request, RequestPlan):
                if all(len(candidates(position, plan)) < plan.number for plan in request):
                    return True
                continue
            found = candidates(position, request)
            if len(found) < request.number or (request.everything is not None and not found):
                return True
            if not request.admin and not any(pooled.shareable for pooled in found):
                together.update(pooled.index for pooled in found)
                wanted += request.number
            for counter, amount in _least_drawn(found, request.number).items():
                drawn[counter] = drawn.get(counter, 0) + amount
    if wanted > len(together):
        return True
    available = _available(position)
    return any(amount > available.get(counter, 0) for counter, amount in drawn.items())


def candidates(position: SearchState, plan: RequestPlan) -> list[PooledDevice]:
    """The devices that a request could have if it were the only one. Ignores counters and capacity."""
    found = []
    for pooled in plan.everything if plan.everything is not None else position.context.pools.devices:
        answer = plan.matches.of(pooled)
        free = plan.admin or not position.busy[pooled.index]
        if (
            free
            and (answer.possible if position.unknown_is_yes else answer.certain) is Answer.YES
            and tolerated(pooled.taints, plan.request.tolerations)
        ):
            found.append(pooled)
    return found


def _least_drawn(found: Sequence[PooledDevice], number: int) -> dict[str, int]:
    """By counter name, the least that `number` of the devices draw. A shareable one may have drawn its share before."""
    draws: dict[str, list[int]] = {}
    for pooled in found:
        mine: dict[str, int] = {}
        for (_, counter), amount in () if pooled.shareable else pooled.draws:
            mine[counter] = mine.get(counter, 0) + amount
        for counter, amount in mine.items():
            draws.setdefault(counter, []).append(amount)
    return {
        counter: sum(nsmallest(number, amounts + [0] * (len(found) - len(amounts))))
        for counter, amounts in draws.items()
    }


def _available(position: SearchState) -> dict[str, int]:
    """By counter name, the sum that is left in all counter sets of all pools."""
    total: dict[str, int] = {}
    for pool in position.context.pools.pools:
        if not pool.counters:
            continue  # it would use the table of a pool of the same name (0.36)
        for (_, counter), amount in position.table(pool).available.items():
            total[counter] = total.get(counter, 0) + max(0, amount)
    return total
