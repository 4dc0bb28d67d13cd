"""The work budget of a plan, with a share for each namespace and for each kind of pods in it.

Work is counted in units of CEL's cost, about five million per second; other steps have fixed prices. Cached results
cost nothing. If a kind of pods uses up its share, it is *unknown*, and only this kind: the shares of others do not
depend on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import TypeGuard

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, Purse, on_account, pay
from autoscaler.dra.allocation.search import VERDICT_ONLY
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.verdict import DoesNotFit, Fits, Unknown, Verdict
from autoscaler.planning.demand.bundles import BundleClass
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass, field

_LOOK = 200  # one check of a node without its claims: about 20 to 50 µs
_COMPARISON = 25  # one comparison of amounts on a node of which everything else is known: about 5 µs
_AT_ONCE = 100  # comparisons that are paid for together
NODES = 200  # existing nodes for which the units for checks are granted once more
# The units of a class for each existing node with room for it: the check, and a search of some devices.
_VISIT = 2 * _LOOK
# The minimum of a kind of pods, for any number of kinds: some checks of nodes and simple selectors.
_LEAST_OWN = 2_000
# The units of a class whose claims no other has to try the types of a catalog: three times what a usual selector takes.
_TRIAL = 8_000
# In a namespace with at least this number of classes, a class that has spent little is refused because of the others.
_CROWD = 50
_FEW_TERMS = 4  # up to this number of terms about other pods, a check has the usual price
# The minimum of a namespace for expensive selectors and for checks that find a place, for any number of namespaces.
_LEAST_SHARED = 50_000
# The part of its share that a namespace gets once more for checks that find a place; 2,000 different pods need 1/25.
_FOUND = 4


@dataclass(slots=True)
class _Turns:
    """A namespace with too few units for all of its classes: their order, and the units that are left over."""

    queue: list[int] = field(default_factory=list)
    units: int = 0


@dataclass(frozen=True, slots=True)
class Ledger:
    """An account for each class of bundles, by its index."""

    accounts: tuple[Account, ...]
    given: list[int]
    """The units that each class got of its own."""
    turns: Mapping[int, _Turns] = field(default_factory=dict)
    """By class, the turns of its namespace; for classes in namespaces where some wait."""
    waiting: set[int] = field(default_factory=set)
    """The classes that are not decided in this plan, because the units do not suffice for all."""
    needs: Sequence[int] = ()
    beside: Sequence[int] = ()
    """By class, how many classes its namespace has."""
    verdicts: dict[tuple[int, str], tuple[BudgetSpentError | None, Unknown]] = field(default_factory=dict)
    """By class and pod, the verdict once it is refused."""

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
        """Accounts for deciding: every class has units of its own, and the classes of a namespace share others.

        Every pod checks all existing nodes with room before anything is bought, so the limit grows with the number of
        `nodes`. `looks` is the number of nodes with room for each class. If a namespace has too few units for all its
        classes, some are decided and others wait. Classes in `served` wait first. The choice changes with `now`.
        """
        limits, times = policy.work, 1 + nodes // NODES
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
        """Accounts for explanations, which do not affect the plan."""
        purses = _purses(classes, policy.work.hints_per_round)
        accounts = [
            Account(own=0, shared=purses[_namespace(found)], most=policy.work.hints_per_round) for found in classes
        ]
        return Ledger(tuple(accounts), [0] * len(accounts))

    @property
    def spent(self) -> int:
        return sum(account.spent for account in self.accounts)

    def refused(self, item: int) -> bool:
        """True if the class has used up its share."""
        return item in self.waiting or self.accounts[item].refused is not None

    def waits(self, item: int) -> bool:
        """True if the class is not decided in this plan."""
        return item in self.waiting

    def unknown(self, item: int, pod: Pod) -> Unknown:
        """The verdict for a pod of a refused class."""
        return self._unknown(item, pod, None if item in self.waiting else self.accounts[item].refused)

    def _unknown(self, item: int, pod: Pod, spent: BudgetSpentError | None) -> Unknown:
        known = self.verdicts.get((item, pod.key))
        if known is None or known[0] is not spent:
            known = spent, Unknown((self.reason(item, pod, spent or BudgetSpentError()),))
            self.verdicts[item, pod.key] = known
        return known[1]

    def crowded_out(self, item: int, pod: Pod) -> Reason | None:
        """The reason if other classes of the namespace leave too little for this class."""
        spent = self.accounts[item].refused or BudgetSpentError()
        found = self.reason(item, pod, spent) if self.refused(item) else None
        return found if found is not None and "kinds" in found.detail else None

    def reason(self, item: int, pod: Pod, spent: BudgetSpentError) -> Reason:
        """The reason why a class is not decided: it needs too much itself, or many classes of its namespace leave
        too little."""
        account, kinds = self.accounts[item], self.beside[item] if self.beside else 1
        if kinds >= _CROWD and account.spent < account.most // 2:
            return Reason.of(Code.WORK_BUDGET, Subject("pod", pod.key), kinds=kinds)
        return budget_reason(pod, spent)

    def pass_on(self, item: int, among: Container[int]) -> Iterator[int]:
        """Give the unused units of a decided class to the given classes of its namespace that wait.

        The class keeps twice the units that it has spent, because a gang that turns out to be impossible makes all
        classes be decided again.
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
        """Like `fit`, on an existing node, without reasons of claims: half of the own units stay for new nodes."""
        account = self.accounts[item]
        aside = min(account.own, self.given[item] // 2)
        account.own -= aside
        try:
            return self._decide(item, pods, lambda paid: fit(paid, node, world, budget=VERDICT_ONLY))
        finally:
            account.own += aside

    def check_amounts_present(self, item: int, pod: Pod, nodes: int) -> Verdict:
        """Pay for existing nodes that are known to refuse the class; Unknown if it has used up its share."""
        account = self.accounts[item]
        aside = min(account.own, self.given[item] // 2)
        account.own -= aside
        try:
            return self._decide(item, (pod,), lambda _: _amounts_refused(nodes))
        finally:
            account.own += aside

    def fit(self, item: int, pods: Sequence[Pod], node: str, world: World) -> Verdict:
        """The verdict about these pods of a class on a node; Unknown if the class has used up its share, or waits."""
        return self.decide(item, pods, lambda paid: fit(paid, node, world))

    def decide(self, item: int, pods: Sequence[Pod], verdict: Callable[[Iterable[Pod]], Verdict]) -> Verdict:
        """Like `fit`, with another function for the verdict: it gets the pods, and each is paid for when it is read."""
        return self.unknown(item, pods[0]) if item in self.waiting else self._decide(item, pods, verdict)

    def affords(self, item: int, pod: Pod, *, times: int) -> bool:
        """True if the class can pay for that many looks at the pod."""
        return not self.refused(item) and self.accounts[item].affords(_LOOK + _selectors(pod), times)

    def check_amounts(self, item: int, pod: Pod, verdict: Callable[[], Verdict]) -> Verdict:
        """Like `decide`, for a verdict that needs only amounts and cached answers: each question is paid once."""
        account = self.accounts[item]
        if item in self.waiting or account.refused is not None:
            return self.unknown(item, pod)
        own = account.own
        try:  # like _decide, without an account for inner work: there is none, and a plan does this 10,000 times
            account.admit(_COMPARISON)
        except BudgetSpentError as spent:
            return Unknown((self.reason(item, pod, spent),))
        account.pay(_COMPARISON)
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
    """The pods of a bundle, each paid for when it is checked: the first that does not fit ends the check."""
    for pod in pods:
        pay(_LOOK + _selectors(pod))
        yield pod


def _amounts_refused(nodes: int) -> Verdict:
    for done in range(0, nodes, _AT_ONCE):
        pay(_COMPARISON * min(_AT_ONCE, nodes - done))
    return DoesNotFit(())


def budget_reason(pod: Pod, spent: BudgetSpentError) -> Reason:
    if spent.expression:
        return Reason.of(Code.WORK_BUDGET, Subject("pod", pod.key), expression=spent.expression)
    return Reason.of(Code.WORK_BUDGET, Subject("pod", pod.key))


def over_budget(verdict: Verdict) -> TypeGuard[Unknown]:
    """True if the verdict is unknown because of the work budget."""
    return isinstance(verdict, Unknown) and any(reason.code is Code.WORK_BUDGET for reason in verdict.reasons)


@dataclass(frozen=True, slots=True)
class _Queue:
    """The order of classes if there are too few units for all."""

    classes: Sequence[BundleClass]
    served: frozenset[int]
    lot: str

    def namespaces(self, names: Iterable[str]) -> list[str]:
        """The namespaces in random order."""
        return sorted(names, key=lambda name: (sha256(f"{name} {self.lot}".encode()).digest(), name))

    def by_lot(self, items: Iterable[int]) -> list[int]:
        """The classes in random order."""
        return sorted(items, key=lambda item: (item in self.served, self._drawn(item), item))

    def chosen(self, items: Sequence[int], needs: Sequence[int], units: int, *, beyond: int) -> frozenset[int]:
        """The classes that the units are enough for. `items` are in the scheduler's order.

        The first half of the units is assigned in that order, the rest at random: classes that fit nowhere cannot block
        others for long. The first class of the random order may need as many units `beyond` the rest.
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
    """Set `needs` to the units that each class needs to be decided completely, in namespaces with too few units."""
    purses = _purses(classes, shared)
    alike = Counter(found.wants for found in classes)
    kinds = Counter(map(_namespace, classes))
    trials = [_TRIAL // alike[found.wants] if found.wants != () else 0 for found in classes]
    accounts: dict[int, Account] = {}
    turns: dict[int, _Turns] = {}
    waiting: set[int] = set()
    # Every namespace decides at least one class, unless this would double the limit of the plan.
    beyond = max(own, *needs, 0)
    members: dict[str, list[int]] = {}
    for item, found in enumerate(classes):
        members.setdefault(_namespace(found), []).append(item)
    for namespace in queue.namespaces(purses):
        items = members[namespace]
        units = own // len(purses)
        scarce = {item: max(needs[item], trials[item]) for item in items}
        if sum(scarce.values()) > units:
            for item in items:
                needs[item] = scarce[item]
        chosen, beyond = _admitted(items, needs, units, beyond=beyond, queue=queue)
        opened = partial(Account, shared=purses[namespace], found=Purse(max(_LEAST_SHARED, units // _FOUND)))
        accounts |= _shared_out(classes, items, chosen, needs, units=units, most=most, opened=opened)
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
    """The classes that the units of a namespace are enough for, and what is left of the units `beyond` them."""
    if sum(needs[item] for item in items) <= units:
        return frozenset(items), beyond
    # Every class has the minimum, so only more than that can be too much.
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
    opened: Callable[..., Account],
) -> dict[int, Account]:
    """A namespace's units as accounts: the chosen classes share what their needs leave, the others have the minimum."""
    rest = max(0, units - sum(needs[item] for item in chosen)) // max(1, len(chosen))
    kin = _kin(classes, chosen, rest // 2)
    accounts = {}
    for item in items:
        bound = most * len(classes[item].sample.pods)  # pods that share a claim are checked one by one
        pooled = kin.get(classes[item].wants) if item in chosen else None
        if item in chosen:
            own = min(bound, needs[item] + rest - (rest // 2 if pooled else 0))
            accounts[item] = opened(own=own, most=bound, kin=pooled)
        else:
            accounts[item] = opened(own=_LEAST_OWN, most=bound, shared=Purse(0))
    return accounts


def _kin(classes: Sequence[BundleClass], items: Iterable[int], each: int) -> dict[Hashable, Purse]:
    """The common units of the classes of a namespace with equal claims: a fixed amount from each of them.

    The first class that needs an answer about claims pays for it from these units, and the answer serves all.
    """
    counts = Counter(classes[item].wants for item in items if classes[item].wants != ())
    return {wants: Purse(each * count) for wants, count in counts.items() if count > 1}


def _purses(classes: Sequence[BundleClass], units: int) -> dict[str, Purse]:
    """The units that the classes of a namespace share, in equal parts for namespaces."""
    namespaces = dict.fromkeys(_namespace(found) for found in classes)
    return {namespace: Purse(max(_LEAST_SHARED, units // len(namespaces))) for namespace in namespaces}


def _selectors(pod: Pod) -> int:
    """The number of expressions and terms that a check compares with the node; an API server accepts tens of thousands.

    Terms about other pods are compared with all pods of the domain, and there may be many pods with many terms.
    """
    required = pod.affinity.terms if pod.affinity else ()
    preferred = len(pod.preferred_affinity) + len(pod.preferred_pod_affinity) + len(pod.preferred_pod_anti_affinity)
    mutual = len(pod.pod_affinity) + len(pod.pod_anti_affinity)
    others = mutual * (1 + mutual // _FEW_TERMS) + len(pod.topology_spread) + len(pod.tolerations)
    return sum(1 + len(term.match_expressions) for term in required) + preferred + others


def _namespace(found: BundleClass) -> str:
    return found.sample.pods[0].namespace
