"""Searches depth first over claims, requests and devices; the first complete solution wins.

A port of allocateOne and allocateDevice (k8s.io/dynamic-resource-allocation structured/internal/incubating, v0.36 and
v0.37): the same order of devices, and errors at the same moment. It skips what `symmetry` proves to fail. Each call of
upstream's recursion is a generator that yields the calls it makes, so no depth exhausts the stack.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from enum import Enum
from typing import Final, TypeAlias

from autoscaler.cel.common.evaluation import pay
from autoscaler.dra.allocation.capacity import CapacityError, consumption, guessed, has_room, plain, taken, violates
from autoscaler.dra.allocation.constraints import START, DistinctPerRequest, State, attribute_of
from autoscaler.dra.allocation.context import AllocationContext
from autoscaler.dra.allocation.requests import MAX_DEVICES_PER_CLAIM, ClaimPlan, RequestPlan, capacity_failure
from autoscaler.dra.allocation.symmetry import DeadEnd, InfeasibleError, Symmetry
from autoscaler.dra.inventory.allocated import Consumed, added
from autoscaler.dra.inventory.counters import CounterTable
from autoscaler.dra.inventory.pools import NodePool, PooledDevice
from autoscaler.dra.inventory.selectors import Answer
from autoscaler.dra.inventory.taints import tolerated
from autoscaler.dra.outcome import FatalError
from autoscaler.model.reason import Code, Subject
from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.quantity import Quantity

# Units of work for one step, beside one unit for each device that it passes.
_STEP: Final = 50


class Result(Enum):
    """The result of one call. TOO_MANY: only a choice with fewer devices could help, so loops end early."""

    FOUND = "found"
    FAILED = "failed"
    TOO_MANY = "too many"


Call: TypeAlias = Generator["Call", Result, Result]


class BudgetExceededError(Exception):
    """The search used up its steps, or upstream's."""


@dataclass(frozen=True, slots=True)
class SearchBudget:
    """`steps`: the number of times this search may look for a device before it gives up without an answer.

    `upstream_steps`: the number of steps that kube-scheduler manages before its filter timeout of 10 s, at about 5 µs
    each. A search for which upstream needs more steps counts as one that times out there.
    `explains`: False if nobody reads why claims do not fit. Then such an outcome may have no reasons.
    """

    steps: int = 10_000
    upstream_steps: int = 2_000_000
    prune: bool = True
    explains: bool = True


DEFAULT_BUDGET = SearchBudget()
VERDICT_ONLY = SearchBudget(explains=False)


@dataclass(frozen=True, slots=True, eq=False)
class Choice:
    """A device given to a request. `consumed` is None unless the device is shared out."""

    plan: RequestPlan
    pooled: PooledDevice
    consumed: Consumed | None


@dataclass(frozen=True, slots=True, eq=False)
class _Undo:
    """The values to restore when a choice is withdrawn."""

    states: tuple[State, ...]
    draws_from: CounterTable | None
    consumed: Consumed | None


class Search:
    """One search over validated plans."""

    def __init__(
        self, context: AllocationContext, plans: list[ClaimPlan], *, unknown_is_yes: bool, budget: SearchBudget
    ) -> None:
        self.context = context
        self.plans = plans
        self.unknown_is_yes = unknown_is_yes
        self.budget = budget
        self.steps = 0
        self.results: list[list[Choice]] = [[] for _ in plans]
        self.chosen: dict[tuple[int, int], int] = {}  # (claim, request) -> index of the alternative taken
        self.devices = context.pools.devices
        self.busy = context.exclusively_allocated()
        self.taken = [0] * len(self.devices)  # per device: bit i is set while claim i has it
        self.consumed: dict[int, Consumed] = {}  # per shareable device: what this search has allocated
        self.states: list[list[State]] = [[START] * len(plan.constraints) for plan in plans]
        self.tables: dict[object, CounterTable] = {}
        self.requested = {plan: plan.capacity for claim in plans for plan in claim.plans()}
        self.aliased: set[RequestPlan] = set()
        if context.profile.allocator.big_request_aliasing:
            self.aliased = {plan for plan, c in self.requested.items() if c and any(q.big for q in c.values())}
        self.symmetry = Symmetry() if budget.prune and not self._remembers_history() else None

    def _remembers_history(self) -> bool:
        """True if known defects let rejected attempts change later answers, so that nothing may be skipped."""
        allocator = self.context.profile.allocator
        names = [pool.name for pool in self.context.pools.pools if pool.counters]
        shared_table = not allocator.counters_keyed_by_driver and len(set(names)) < len(names)
        # Beside another constraint, even a rejected device makes such a distinctAttribute delete its value.
        forgetful = any(
            len(plan.constraints) > 1 and any(isinstance(rule, DistinctPerRequest) for rule in plan.constraints)
            for plan in self.plans
        )
        return allocator.leaks_on_rejection or shared_table or forgetful or bool(self.aliased)

    def run(self) -> bool:
        """True if a solution was found; it is in `results` and `chosen`.

        Raises FatalError, BudgetExceededError, BudgetSpentError.
        """
        try:
            return self._drive() is Result.FOUND
        except InfeasibleError:
            return False

    def _drive(self) -> Result:
        calls = [self._one(0, 0, None, 0, 0)]
        result: Result | None = None
        while calls:
            try:
                call = calls[-1].send(result)  # type: ignore[arg-type]  # a fresh generator is started by sending None
            except StopIteration as end:
                calls.pop()
                result = end.value
            else:
                calls.append(call)
                result = None
        assert result is not None
        return result

    def _one(self, i: int, j: int, plan: RequestPlan | None, k: int, start: int) -> Call:
        """Upstream's allocateOne: find the k-th device of a request, then everything after it."""
        self.steps += 1
        pay(_STEP)
        if self.steps > self.budget.steps or self.times_out_upstream:
            raise BudgetExceededError
        if i >= len(self.plans):
            return Result.FOUND
        claim = self.plans[i]
        if j >= len(claim.requests):
            result = yield self._one(i + 1, 0, None, 0, 0)
            return Result.FAILED if result is Result.TOO_MANY else result
        if plan is None:
            request = claim.requests[j]
            if not isinstance(request, RequestPlan):
                return (yield self._alternatives(i, j, request))
            plan = request
        if plan.everything is not None and not plan.everything:
            return Result.FAILED
        if k >= plan.number:
            return (yield self._one(i, j + 1, None, 0, 0))
        if len(self.results[i]) + plan.number - k > MAX_DEVICES_PER_CLAIM:
            return Result.TOO_MANY
        if plan.everything is not None:
            return (yield self._all_mode(i, j, plan, k))
        return (yield self._exact_count(i, j, plan, k, start))

    def _alternatives(self, i: int, j: int, alternatives: tuple[RequestPlan, ...]) -> Call:
        """firstAvailable: take the first alternative with which everything else can be found, too."""
        only_too_many = True
        for index, plan in enumerate(alternatives):
            result = yield self._one(i, j, plan, 0, 0)
            if result is Result.FOUND:
                self.chosen[i, j] = index
                return result
            only_too_many = only_too_many and result is Result.TOO_MANY
        return Result.TOO_MANY if only_too_many else Result.FAILED

    def _all_mode(self, i: int, j: int, plan: RequestPlan, k: int) -> Call:
        assert plan.everything is not None
        pooled = plan.everything[k]
        undo = self._take(i, plan, pooled, must=True)
        if undo is None:
            return Result.FAILED
        result = yield self._one(i, j, plan, k + 1, 0)
        if result is not Result.FOUND:
            self._give_back(i, plan, pooled, undo)
        return result

    def _exact_count(self, i: int, j: int, plan: RequestPlan, k: int, start: int) -> Call:
        """Try each device from `start` on; within one request only combinations are tried, not permutations."""
        symmetry = self.symmetry
        key = symmetry.key(self, i, plan, k, start, steps=self.steps) if symmetry is not None else None
        if key is not None and symmetry is not None and symmetry.is_dead_end(key):
            return Result.FAILED
        begun = self._effort()
        combinations = self.context.profile.allocator.combinations
        capacity_counts = self.context.profile.gates.consumable_capacity
        answers, unknown_is_yes, admin, bit = plan.matches.answers, self.unknown_is_yes, plan.admin, 1 << i
        dead_ends: dict[Hashable, DeadEnd] = {}
        equivalence_key: Callable[[int], Hashable] | None = None
        passed = start
        every = range(start, len(self.devices)) if symmetry is None else symmetry.worth_trying(self, plan, start)
        for index in every:
            if self.taken[index] & bit if admin else (self.busy[index] or self.taken[index]):
                continue
            pooled = self.devices[index]
            if equivalence_key is not None:
                failed = dead_ends.get(equivalence_key(index))
                if failed is not None:
                    failed.skipped += 1
                    continue
            answer = answers[index] or plan.matches.of(pooled)
            verdict = answer.possible if unknown_is_yes else answer.certain
            if verdict is not Answer.YES:
                if verdict is Answer.ERROR:
                    raise FatalError(answer.reasons[-1])
                continue
            if capacity_counts and not self._has_room(plan, pooled):
                continue
            undo = self._take(i, plan, pooled, must=False)
            if undo is None:
                continue
            before = self._effort()
            pay(max(0, index - passed))
            passed = index
            result = yield self._one(i, j, plan, k + 1, index + 1 if combinations else 0)
            if result is Result.FOUND:
                self._count_skipped(dead_ends, plan.number - k - 1)
                return result
            clean = self._give_back(i, plan, pooled, undo)
            if result is Result.TOO_MANY:
                return result
            if symmetry is not None and clean and symmetry.learn(self):
                equivalence_key = equivalence_key or symmetry.equivalence_keys(self)
                dead_ends[equivalence_key(index)] = DeadEnd(self._effort() - before)
        pay(len(self.devices) - passed)
        if (pool := self.context.pools.barrier) is not None:
            raise FatalError.of(Code.INVALID_POOL, Subject("pool", str(pool)), problem=pool.invalid)
        self._count_skipped(dead_ends, plan.number - k - 1)
        if key is not None and symmetry is not None:
            symmetry.remember_dead_end(key, self._effort() - begun)
        return Result.FAILED

    def _count_skipped(self, dead_ends: Mapping[Hashable, DeadEnd], wanted: int) -> None:
        if dead_ends and self.symmetry is not None:
            self.symmetry.count_skipped(dead_ends.values(), wanted)

    def held(self) -> Sequence[Sequence[PooledDevice]]:
        """The devices allocated so far, per claim."""
        return [[choice.pooled for choice in choices] for choices in self.results]

    def _effort(self) -> int:
        """An estimate of the steps that upstream would have made so far."""
        return self.steps + (self.symmetry.skipped_steps if self.symmetry is not None else 0)

    @property
    def times_out_upstream(self) -> bool:
        """True if kube-scheduler would give up before this step."""
        return self._effort() > self.budget.upstream_steps

    def _take(self, i: int, plan: RequestPlan, pooled: PooledDevice, *, must: bool) -> _Undo | None:
        """Upstream's allocateDevice: check everything but selectors, and mark the device. None if a check fails."""
        profile, index = self.context.profile, pooled.index
        if plan.admin:
            if not pooled.shareable and self.taken[index] >> i & 1:
                return None
        elif self.busy[index] or self.taken[index]:
            return None
        if pooled.device.consumes_counters and not profile.gates.partitionable_devices:
            return None
        table = None
        if pooled.draws and not self._counted_already(pooled):
            table = self.table(pooled.pool)
            if not table.take(pooled.draws):
                return None
        leak = profile.allocator.leaks_on_rejection
        states = self.states[i]
        before = tuple(states)
        if (pooled.taints and not tolerated(pooled.taints, plan.request.tolerations)) or not self._constrain(
            i, plan, pooled, must=must
        ):
            if table is not None and not leak:
                table.give_back(pooled.draws)
            return None
        undo = _Undo(before, None if leak and pooled.shareable else table, self.consumed.get(index))
        if not pooled.shareable:
            self.taken[index] |= 1 << i
        consumed = None
        if profile.gates.consumable_capacity:
            if (must or plan in self.aliased) and not self._has_room(plan, pooled):
                if not leak:
                    self._give_back_marks(i, plan, pooled, undo)
                return None
            if pooled.shareable:
                consumed = consumption(self.requested[plan], pooled.device.capacity, profile)
                self.consumed[index] = added(self.consumed[index], consumed) if index in self.consumed else consumed
        self.results[i].append(Choice(plan, pooled, consumed))
        return undo

    def _give_back(self, i: int, plan: RequestPlan, pooled: PooledDevice, undo: _Undo) -> bool:
        """Withdraw the latest choice. True if the state is as before (v0.36's distinctAttribute loses values)."""
        self.results[i].pop()
        return self._give_back_marks(i, plan, pooled, undo)

    def _give_back_marks(self, i: int, plan: RequestPlan, pooled: PooledDevice, undo: _Undo) -> bool:
        states, rules = self.states[i], self.plans[i].constraints
        for c in plan.constraints:
            states[c] = rules[c].remove(states[c], plan.base, undo.states[c])
        if not pooled.shareable:
            self.taken[pooled.index] &= ~(1 << i)
        if undo.draws_from is not None:
            undo.draws_from.give_back(pooled.draws)
        if undo.consumed is not None:
            self.consumed[pooled.index] = undo.consumed
        else:
            self.consumed.pop(pooled.index, None)
        return tuple(states) == undo.states

    def _constrain(self, i: int, plan: RequestPlan, pooled: PooledDevice, *, must: bool) -> bool:
        """Add the device to all constraints that cover the request, or to none."""
        states, rules = self.states[i], self.plans[i].constraints
        done: list[tuple[int, State]] = []
        for c in plan.constraints:
            rule = rules[c]
            before = states[c]
            value = attribute_of(pooled.device, pooled.driver, rule.attribute)
            after = rule.add(before, plan.base, value, unknown_is_yes=self.unknown_is_yes)
            if after is None:
                if must:
                    raise FatalError.of(
                        Code.ALL_VIOLATES_CONSTRAINT,
                        Subject.claim(self.plans[i].claim.key, plan.request.name),
                        device=str(pooled.id),
                        attribute=rule.attribute,
                    )
                for earlier, state in done:
                    states[earlier] = rules[earlier].remove(states[earlier], plan.base, state)
                return False
            done.append((c, before))
            states[c] = after
        return True

    def _counted_already(self, pooled: PooledDevice) -> bool:
        """True if the device has drawn its counters: it is shareable, and something of it is consumed already."""
        if not pooled.shareable:
            return False
        use = self.context.allocated.use_of(pooled.driver, pooled.pool.name)
        if pooled.index in self.consumed or pooled.name in use.consumed:
            return True
        return self.context.profile.allocator.share_id_alone_skips_counters and use.shared(pooled.name)

    def table(self, pool: NodePool) -> CounterTable:
        """The counters of a pool. Up to v0.36.3, drivers with the same pool name share one table, a defect."""
        key = (pool.driver, pool.name) if self.context.profile.allocator.counters_keyed_by_driver else pool.name
        found = self.tables.get(key)
        if found is None:
            found = self.tables[key] = CounterTable.of(pool.counters, self.context.drawn(pool))
        return found

    def _has_room(self, plan: RequestPlan, pooled: PooledDevice) -> bool:
        """True if the capacity that the request takes is available (CmpRequestOverCapacity)."""
        capacities = pooled.device.capacity
        requested = self.requested[plan]
        giving = self.consumed.get(pooled.index)
        in_use = self.context.allocated.use_of(pooled.driver, pooled.pool.name).consumed.get(pooled.name)
        if not capacities or (not requested and giving is None and in_use is None and plain(capacities)):
            return not requested
        if guessed(requested, capacities):
            return self.unknown_is_yes
        total = added(in_use, giving) if in_use and giving else in_use or giving or FrozenMap()
        try:
            return has_room(requested, capacities, in_use=total, profile=self.context.profile)
        except CapacityError as error:
            raise capacity_failure(self.plans[plan.claim].claim, plan, pooled, error) from error
        finally:
            if plan in self.aliased and giving is not None:
                self._alias(plan, pooled, {name: giving[name] for name in giving if name not in (in_use or ())})

    def _alias(self, plan: RequestPlan, pooled: PooledDevice, giving: Mapping[str, Quantity]) -> None:
        """Add this search's consumption to a big quantity of the claim's own request, like upstream up to v0.36.3."""
        requested = dict(self.requested[plan])
        for name, quantity in requested.items():
            capacity = pooled.device.capacity.get(name)
            if capacity is None or capacity.policy is None or not quantity.big or name not in giving:
                continue
            profile = self.context.profile
            as_written = taken(name, quantity, capacity, profile) is quantity
            if as_written and not violates(name, quantity, capacity.policy, profile):
                requested[name] = quantity + giving[name]
        self.requested[plan] = FrozenMap(requested)
