"""Who pays for the work of a plan: a bound for a round, in shares for namespaces and the kinds of pods in each.

Work is counted in units of CEL's cost, about five million a second; other steps are weighed against it. What was
worked out before and is kept costs nothing. A kind of pods that spends its share is *unknown*, and only that kind: the
shares of others do not depend on what it spends. It must not know how work is done.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from autoscaler.cel.work import Account, BudgetSpentError, Purse, on_account, pay
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason
from autoscaler.model.verdict import Fits, Unknown, Verdict
from autoscaler.planning.bundles import BundleClass
from autoscaler.planning.policy import Policy
from autoscaler.scheduling.fit import fit
from autoscaler.scheduling.world import World

# One look at a node, without what claims need there: some 20 to 50 µs.
_LOOK = 200
# Present nodes for which a round has its units for looks once more.
_NODES = 200
# The least that a kind of pods has of its own, however many kinds there are: some looks at nodes and simple selectors.
_LEAST_OWN = 2_000
# The least that a namespace may spend on expensive selectors, however many namespaces there are.
_LEAST_SHARED = 50_000


@dataclass(frozen=True, slots=True)
class Ledger:
    """An account for each class of bundles, by its index."""

    accounts: tuple[Account, ...]

    @staticmethod
    def of(classes: Sequence[BundleClass], policy: Policy, *, nodes: int = 0) -> Ledger:
        """Accounts for deciding: every class has units of its own, and a namespace's classes share others.

        Every pod looks at all present nodes before anything is bought: the bound for looks grows with them.
        """
        limits, times = policy.work, 1 + nodes // _NODES
        most = limits.per_pod * times
        return _opened(classes, own=limits.per_round * times, shared=limits.selectors_per_round, most=most)

    @staticmethod
    def for_hints(classes: Sequence[BundleClass], policy: Policy) -> Ledger:
        """Accounts for what is only told: nothing depends on how far they reach."""
        return _opened(classes, own=0, shared=policy.work.hints_per_round, most=policy.work.hints_per_round)

    @property
    def spent(self) -> int:
        """Units spent so far."""
        return sum(account.spent for account in self.accounts)

    def refused(self, item: int) -> bool:
        """Whether the class has spent its share."""
        return self.accounts[item].refused is not None

    def fit(self, item: int, pods: Sequence[Pod], node: str, world: World) -> Verdict:
        """The verdict about these pods of a class on a node; Unknown once the class has spent its share."""
        account = self.accounts[item]
        if account.refused is not None:
            return Unknown((budget_reason(pods[0], account.refused),))
        try:
            with on_account(account):
                own = account.own
                pay(_LOOK)
                verdict = fit(pods, node, world)
                if isinstance(verdict, Fits):
                    # There is no bound on how many equal pods find a place: only what was shared stays paid.
                    account.most += own - account.own
                    account.own = own
                return verdict
        except BudgetSpentError as spent:
            return Unknown((budget_reason(pods[0], spent),))


def budget_reason(pod: Pod, spent: BudgetSpentError) -> Reason:
    """What a class is told that has spent its share."""
    if spent.expression:
        return Reason.of(Code.WORK_BUDGET, f"pod {pod.key}", expression=spent.expression)
    return Reason.of(Code.WORK_BUDGET, f"pod {pod.key}")


def over_budget(verdict: Verdict) -> TypeGuard[Unknown]:
    """Whether nobody knows because the work would have been too much."""
    return isinstance(verdict, Unknown) and any(reason.code is Code.WORK_BUDGET for reason in verdict.reasons)


def _opened(classes: Sequence[BundleClass], *, own: int, shared: int, most: int) -> Ledger:
    namespaces = [found.sample.pods[0].namespace for found in classes]
    kinds: dict[str, int] = {}
    for namespace in namespaces:
        kinds[namespace] = kinds.get(namespace, 0) + 1
    purses = {namespace: Purse(max(_LEAST_SHARED, shared // len(kinds))) for namespace in kinds}
    return Ledger(
        tuple(
            Account(
                own=min(most, max(_LEAST_OWN, own // len(kinds) // kinds[namespace])) if own else 0,
                shared=purses[namespace],
                most=most,
            )
            for namespace in namespaces
        )
    )
