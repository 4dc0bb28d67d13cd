"""Who pays for the work of a plan: a bound for a plan, in shares for namespaces and the kinds of pods in each.

Work is counted in units of CEL's cost, about five million a second; other steps are weighed against it. What was
worked out before and is kept costs nothing. A kind of pods that spends its share is *unknown*, and only that kind: the
shares of others do not depend on what it spends. It must not know how work is done.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from hashlib import sha256
from typing import TypeGuard

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account, pay
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.verdict import DoesNotFit, Fits, Unknown, Verdict
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World

# One look at a node, without what claims need there: some 20 to 50 µs.
_LOOK = 200
# One comparison of amounts on a node of which all else is known: some 5 µs.
_GLANCE = 25
# Glances that are paid for together.
_AT_ONCE = 100
# Present nodes for which a plan has its units for looks once more.
_NODES = 200
# What a class may spend on each present node that has room for it: the look, and a search of some devices.
_VISIT = 2 * _LOOK
# The least that a kind of pods has of its own, however many kinds there are: some looks at nodes and simple selectors.
_LEAST_OWN = 2_000
# What a class needs to be tried on the types of a catalog, where no other class has claims that ask for the same.
_TRIAL = 20_000
# From so many classes in a namespace on, one that has spent little is refused because of the others.
_CROWD = 50
# Up to so many terms about other pods, a look costs what it costs for any pod.
_FEW_TERMS = 4
# The least that a namespace may spend on expensive selectors, however many namespaces there are.
_LEAST_SHARED = 50_000


@dataclass(slots=True)
class _Turns:
    """A namespace whose units do not suffice for all: who comes next, and what those before have left."""

    queue: list[int] = field(default_factory=list)
    units: int = 0


@dataclass(frozen=True, slots=True)
class Ledger:
    """An account for each class of bundles, by its index."""

    accounts: tuple[Account, ...]
    given: list[int]
    """What each class got of its own."""
    turns: Mapping[int, _Turns] = field(default_factory=dict)
    """By class, the turns of its namespace; for classes in namespaces where some wait."""
    waiting: set[int] = field(default_factory=set)
    """The classes that are not decided in this plan, because the units do not suffice for all."""
    needs: Sequence[int] = ()
    beside: Sequence[int] = ()
    """By class, how many classes its namespace has."""
    told: dict[tuple[int, str], tuple[BudgetSpentError | None, Unknown]] = field(default_factory=dict)
    """By class and pod, what is said of it once it is refused."""

    @staticmethod
    def of(
        classes: Sequence[BundleClass],
        policy: Policy,
        *,
        nodes: int = 0,
        looks: Sequence[int] = (),
        served: frozenset[int] = frozenset(),
        now: datetime | None = None,
    ) -> Ledger:
        """Accounts for deciding: every class has units of its own, and a namespace's classes share others.

        Every pod looks at all present nodes with room before anything is bought: the bound for looks grows with the
        number of `nodes`. `looks` is that of the nodes with room for each class. Where a namespace's units do not
        suffice for all its classes, some are decided and others wait; those in `served` wait first. Which ones
        changes with `now`.
        """
        limits, times = policy.work, 1 + nodes // _NODES
        most = limits.per_pod * times
        needs = [max(_LEAST_OWN, 2 * _VISIT * count) for count in looks] or [_LEAST_OWN] * len(classes)
        queue = _Queue(classes, served, now.isoformat() if now else "")
        return _opened(
            classes,
            own=limits.per_round * times,
            shared=limits.selectors_per_round,
            most=most,
            needs=needs,
            queue=queue,
        )

    @staticmethod
    def for_hints(classes: Sequence[BundleClass], policy: Policy) -> Ledger:
        """Accounts for explanations: nothing depends on how far they reach."""
        purses = _purses(classes, policy.work.hints_per_round)
        accounts = [
            Account(own=0, shared=purses[_namespace(found)], most=policy.work.hints_per_round) for found in classes
        ]
        return Ledger(tuple(accounts), [0] * len(accounts))

    @property
    def spent(self) -> int:
        return sum(account.spent for account in self.accounts)

    def refused(self, item: int) -> bool:
        """Whether the class has spent its share."""
        return item in self.waiting or self.accounts[item].refused is not None

    def waits(self, item: int) -> bool:
        """Whether the class is not decided in this plan."""
        return item in self.waiting

    def unknown(self, item: int, pod: Pod) -> Unknown:
        """What is said of a pod of a class that is refused, whatever is asked."""
        return self._unknown(item, pod, None if item in self.waiting else self.accounts[item].refused)

    def _unknown(self, item: int, pod: Pod, spent: BudgetSpentError | None) -> Unknown:
        known = self.told.get((item, pod.key))
        if known is None or known[0] is not spent:
            known = spent, Unknown((self.reason(item, pod, spent or BudgetSpentError()),))
            self.told[item, pod.key] = known
        return known[1]

    def crowded_out(self, item: int, pod: Pod) -> Reason | None:
        """The reason, where others of the namespace leave too little for the class."""
        spent = self.accounts[item].refused or BudgetSpentError()
        found = self.reason(item, pod, spent) if self.refused(item) else None
        return found if found is not None and "kinds" in found.detail else None

    def reason(self, item: int, pod: Pod, spent: BudgetSpentError) -> Reason:
        """Why a class is not decided: it takes too much itself, or many of its namespace leave too little for each."""
        account, kinds = self.accounts[item], self.beside[item] if self.beside else 1
        if kinds >= _CROWD and account.spent < account.most // 2:
            return Reason.of(Code.WORK_BUDGET, f"pod {pod.key}", kinds=kinds)
        return budget_reason(pod, spent)

    def pass_on(self, item: int, among: Container[int]) -> Iterator[int]:
        """The class needs nothing more: what it leaves goes on to those of its namespace that wait, which are given.

        It has what it spent once more, and as much aside, because a gang that turns out to be impossible makes all be
        decided again.
        """
        turns, account = self.turns.get(item), self.accounts[item]
        if turns is None or item in self.waiting:
            return
        turns.units += account.own
        account.own = self.given[item] = 2 * (self.given[item] - account.own)
        for following in [other for other in turns.queue if other in among]:
            if self.needs[following] > turns.units:
                return
            turns.queue.remove(following)
            turns.units -= self.needs[following]
            admitted = self.accounts[following]
            admitted.own, admitted.shared, admitted.refused = self.needs[following], account.shared, None
            self.given[following] = self.needs[following]
            self.waiting.discard(following)
            yield following

    def fit_present(self, item: int, pods: Sequence[Pod], node: str, world: World) -> Verdict:
        """The same as `fit` on a present node: half of the class's own units stay for what can be bought."""
        account = self.accounts[item]
        aside = min(account.own, self.given[item] // 2)
        account.own -= aside
        try:
            return self._decide(item, pods, lambda paid: fit(paid, node, world))
        finally:
            account.own += aside

    def glance_at_present(self, item: int, pod: Pod, nodes: int) -> Verdict:
        """Pays for so many present nodes of which it is known that they refuse the class; Unknown if it has spent its
        share."""
        account = self.accounts[item]
        aside = min(account.own, self.given[item] // 2)
        account.own -= aside
        try:
            return self._decide(item, (pod,), lambda _: _glanced_at(nodes))
        finally:
            account.own += aside

    def fit(self, item: int, pods: Sequence[Pod], node: str, world: World) -> Verdict:
        """The verdict about these pods of a class on a node; Unknown if the class has spent its share, or waits."""
        return self.decide(item, pods, lambda paid: fit(paid, node, world))

    def decide(self, item: int, pods: Sequence[Pod], verdict: Callable[[Iterable[Pod]], Verdict]) -> Verdict:
        """The same for another way to the verdict: it gets the pods, each paid for when it is taken."""
        return self.unknown(item, pods[0]) if item in self.waiting else self._decide(item, pods, verdict)

    def glance(self, item: int, pod: Pod, verdict: Callable[[], Verdict]) -> Verdict:
        """The same for a verdict that needs nothing but amounts and what is known: each question is paid once."""
        account = self.accounts[item]
        if item in self.waiting or account.refused is not None:
            return self.unknown(item, pod)
        own = account.own
        try:  # as _decide does, without an account for work inside: there is none, and a plan glances 10,000 times
            account.admit(_GLANCE)
        except BudgetSpentError as spent:
            return Unknown((self.reason(item, pod, spent),))
        account.pay(_GLANCE)
        found = verdict()
        if isinstance(found, Fits):
            account.refund(own)
        return found

    def _decide(self, item: int, pods: Sequence[Pod], decide: Callable[[Iterable[Pod]], Verdict]) -> Verdict:
        account = self.accounts[item]
        if account.refused is not None:
            return self._unknown(item, pods[0], account.refused)
        try:
            with on_account(account):
                own = account.own
                verdict = decide(_paid(pods))
                if isinstance(verdict, Fits):
                    account.refund(own)
                return verdict
        except BudgetSpentError as spent:
            return Unknown((self.reason(item, pods[0], spent),))


def _paid(pods: Iterable[Pod]) -> Iterator[Pod]:
    """The pods of a bundle, each paid for when it is looked at: the first that does not fit ends the look."""
    for pod in pods:
        pay(_LOOK + _selectors(pod))
        yield pod


def _glanced_at(nodes: int) -> Verdict:
    for done in range(0, nodes, _AT_ONCE):
        pay(_GLANCE * min(_AT_ONCE, nodes - done))
    return DoesNotFit(())


def budget_reason(pod: Pod, spent: BudgetSpentError) -> Reason:
    if spent.expression:
        return Reason.of(Code.WORK_BUDGET, f"pod {pod.key}", expression=spent.expression)
    return Reason.of(Code.WORK_BUDGET, f"pod {pod.key}")


def over_budget(verdict: Verdict) -> TypeGuard[Unknown]:
    """Whether nobody knows because the work would have been too much."""
    return isinstance(verdict, Unknown) and any(reason.code is Code.WORK_BUDGET for reason in verdict.reasons)


@dataclass(frozen=True, slots=True)
class _Queue:
    """Who is decided first where the units do not suffice for all."""

    classes: Sequence[BundleClass]
    served: frozenset[int]
    lot: str

    def namespaces(self, names: Iterable[str]) -> list[str]:
        """The namespaces, by lot."""
        return sorted(names, key=lambda name: (sha256(f"{name} {self.lot}".encode()).digest(), name))

    def by_lot(self, items: Iterable[int]) -> list[int]:
        """The classes in the order of the lot."""
        return sorted(items, key=lambda item: (item in self.served, self._drawn(item), item))

    def chosen(self, items: Sequence[int], needs: Sequence[int], units: int, *, beyond: int) -> frozenset[int]:
        """The classes whose needs the units cover, of these, which are in the scheduler's order.

        The first half of the units is given in that order, the rest by lot: what is hopeless cannot hold up others for
        long, wherever it stands. The first of the lot may need as many units `beyond` those that are left.
        """
        chosen: set[int] = set()
        left = units
        by_order = sorted(items, key=lambda item: item in self.served)  # a stable sort
        by_lot = self.by_lot(items)
        for order, limit in ((by_order, -(units // 2)), (by_lot, beyond)):
            for item in order:
                if item in chosen:
                    continue
                if needs[item] > left + limit:
                    break
                chosen.add(item)
                left -= needs[item]
                limit = min(limit, 0)
        return frozenset(chosen)

    def _drawn(self, item: int) -> bytes:
        """The classes of a gang are drawn together."""
        sample = self.classes[item].sample
        return sha256(f"{sample.gang or sample.key} {self.lot}".encode()).digest()


def _opened(
    classes: Sequence[BundleClass], *, own: int, shared: int, most: int, needs: list[int], queue: _Queue
) -> Ledger:
    """`needs` becomes what each class needs to be decided completely in the namespaces whose units do not suffice."""
    purses = _purses(classes, shared)
    alike = Counter(found.wants for found in classes)
    kinds = Counter(map(_namespace, classes))
    trials = [_TRIAL // alike[found.wants] if found.wants != () else 0 for found in classes]
    accounts: dict[int, Account] = {}
    turns: dict[int, _Turns] = {}
    waiting: set[int] = set()
    # Every namespace decides one class at least, as long as the plan does not cost twice as much for it.
    beyond = max(own, *needs, 0)
    for namespace in queue.namespaces(purses):
        items = [item for item, entry in enumerate(classes) if _namespace(entry) == namespace]
        units = own // len(purses)
        scarce = {item: max(needs[item], trials[item]) for item in items}
        if sum(scarce.values()) > units:
            for item in items:
                needs[item] = scarce[item]
        chosen, beyond = _admitted(items, needs, units, beyond=beyond, queue=queue)
        accounts |= _shared_out(classes, items, chosen, needs, units=units, most=most, purse=purses[namespace])
        late = frozenset(items) - chosen
        waiting |= late
        if late:
            turns |= dict.fromkeys(items, _Turns(queue.by_lot(late)))
    ordered = tuple(accounts[item] for item in range(len(classes)))
    beside = [kinds[_namespace(found)] for found in classes]
    return Ledger(ordered, [account.own for account in ordered], turns, waiting, needs, beside)


def _admitted(
    items: Sequence[int], needs: Sequence[int], units: int, *, beyond: int, queue: _Queue
) -> tuple[frozenset[int], int]:
    """The classes of a namespace that its units suffice for, and what is left of the units `beyond` them."""
    if sum(needs[item] for item in items) <= units:
        return frozenset(items), beyond
    # The least is there for everyone, so only what is more than that can be too much.
    more = [item for item in items if needs[item] > _LEAST_OWN]
    found = queue.chosen(more, needs, units, beyond=beyond)
    borrowed = max(0, sum(needs[item] for item in found) - units)
    return frozenset(items) - frozenset(more) | found, max(0, beyond - borrowed)


def _shared_out(
    classes: Sequence[BundleClass],
    items: Sequence[int],
    chosen: frozenset[int],
    needs: Sequence[int],
    *,
    units: int,
    most: int,
    purse: Purse,
) -> dict[int, Account]:
    """A namespace's units as accounts: the chosen classes share what their needs leave, the others have the least."""
    rest = max(0, units - sum(needs[item] for item in chosen)) // max(1, len(chosen))
    kin = _kin(classes, chosen, rest // 2)
    accounts = {}
    for item in items:
        bound = most * len(classes[item].sample.pods)  # those that share a claim are looked at one by one
        pooled = kin.get(classes[item].wants) if item in chosen else None
        accounts[item] = Account(
            own=min(bound, needs[item] + rest - (rest // 2 if pooled else 0)) if item in chosen else _LEAST_OWN,
            shared=purse if item in chosen else Purse(0),
            most=bound,
            kin=pooled,
        )
    return accounts


def _kin(classes: Sequence[BundleClass], items: Iterable[int], each: int) -> dict[Hashable, Purse]:
    """What the classes of a namespace have together whose claims ask for the same: so much from each of them.

    An answer about claims is paid by the first that asks, and serves all of them.
    """
    counts = Counter(classes[item].wants for item in items if classes[item].wants != ())
    return {wants: Purse(each * count) for wants, count in counts.items() if count > 1}


def _purses(classes: Sequence[BundleClass], units: int) -> dict[str, Purse]:
    """What the classes of a namespace share, in equal parts for namespaces."""
    namespaces = dict.fromkeys(_namespace(found) for found in classes)
    return {namespace: Purse(max(_LEAST_SHARED, units // len(namespaces))) for namespace in namespaces}


def _selectors(pod: Pod) -> int:
    """How many expressions and terms a look compares with the node: an API server takes tens of thousands of them.

    Terms about other pods are compared with all pods of the domain, and pods with many terms come in numbers.
    """
    required = pod.affinity.terms if pod.affinity else ()
    preferred = len(pod.preferred_affinity) + len(pod.preferred_pod_affinity) + len(pod.preferred_pod_anti_affinity)
    mutual = len(pod.pod_affinity) + len(pod.pod_anti_affinity)
    others = mutual * (1 + mutual // _FEW_TERMS) + len(pod.topology_spread) + len(pod.tolerations)
    return sum(1 + len(term.match_expressions) for term in required) + preferred + others


def _namespace(found: BundleClass) -> str:
    return found.sample.pods[0].namespace
