"""One evaluation: its frame, its cost, and a limit on work that Kubernetes' cost does not count.

A frame is a list of the cost so far, the device, and one slot per variable. A list is faster here than an object: every
step of every expression uses it.

For work that costs nothing upstream relies on a deadline: comparing nested lists that share their parts, joining lists,
loops whose predicate is constant. Here such work is counted instead, so that the answer does not depend on the machine;
an evaluation that uses up its allowance ends as unknown. Only programs with comprehensions can use much.

An `Account` limits many evaluations and searches together: the planner opens one for each group of equal pods, and
every unit of new work is paid from it. Cached answers cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token
from typing import Any, Final, TypeAlias

from autoscaler.cel.common.values import Value

COST_LIMIT: Final = 1_000_000
COST, DEVICE = 0, 1
FIRST_SLOT: Final = 2

Frame: TypeAlias = list[Any]
Run: TypeAlias = Callable[[Frame], Value]

STEPS: Final = 500_000
MAX_DEPTH: Final = 250
CHEAP: Final = 50_000  # units, some 10 ms: usual selectors cost less than a hundred, compiling one some thousand


class CostExceededError(Exception):
    """The cost limit is reached; no part of the expression can absorb this."""


def charge(frame: Frame, units: int) -> None:
    """Add cost. Raises CostExceededError above the limit, also if upstream's unsigned sum wraps below zero."""
    cost = frame[COST] = frame[COST] + units
    if not 0 <= cost <= COST_LIMIT:
        frame[COST] = cost % 2**64
        raise CostExceededError


class WorkExceededError(Exception):
    """The allowance is used up."""


class Allowance:
    """The steps that one evaluation has left."""

    __slots__ = ("depth", "steps")

    def __init__(self) -> None:
        self.steps = STEPS
        self.depth = 0


ALLOWANCE: Final[ContextVar[Allowance | None]] = ContextVar("ALLOWANCE", default=None)


def spend(steps: int) -> None:
    """Count steps. Raises WorkExceededError if the allowance is used up."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.steps -= steps
        if allowance.steps < 0:
            raise WorkExceededError


def enter(steps: int) -> None:
    """Count steps one level deeper in a nested value; `leave` ends the level. Raises WorkExceededError."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.steps -= steps
        allowance.depth += 1
        if allowance.steps < 0 or allowance.depth > MAX_DEPTH:
            raise WorkExceededError


def leave() -> None:
    """End a level."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.depth -= 1


class BudgetSpentError(Exception):
    """An account is empty. `expression` is the selector to be evaluated, "" for other work."""

    def __init__(self, expression: str = "") -> None:
        super().__init__(expression)
        self.expression = expression


class Purse:
    """Units that several accounts share. `left` may fall below zero by the cost of one evaluation."""

    __slots__ = ("left",)

    def __init__(self, units: int) -> None:
        self.left = units


class Account:
    """The units of work for one group of equal pods: first its `own`, then those that it shares with groups with the
    same requests (`kin`), then those of a shared purse.

    A unit is one of CEL's cost units. `most` limits the total. Work that may cost more than CHEAP at once is only paid
    from the shared purse, so that it uses no units that others have of their own. After a refusal, an account refuses
    everything: a partial answer would depend on where the work ended. `found` is the part of the units for finding a
    place that is refunded, which several accounts share as well; None: all of it.
    """

    __slots__ = ("found", "kin", "most", "own", "refused", "shared", "spent")

    def __init__(
        self, *, own: int, shared: Purse, most: int, kin: Purse | None = None, found: Purse | None = None
    ) -> None:
        self.own = own
        self.kin = kin or Purse(0)
        self.found = found
        self.shared = shared
        self.most = most
        self.spent = 0
        self.refused: BudgetSpentError | None = None

    def admit(self, units: int, expression: str = "") -> None:
        """Check that work of at most `units` may begin. Raises BudgetSpentError."""
        enough = self.shared.left > 0 or units <= min(self.own + self.kin.left, CHEAP)
        if self.refused is None and (not enough or self.spent > self.most):
            self.refused = BudgetSpentError(expression)
        if self.refused is not None:
            # A new exception: the traceback of one refers to the whole search, and this account is kept.
            raise BudgetSpentError(self.refused.expression)

    def affords(self, units: int, times: int) -> bool:
        """True if work of so many units, done so many times, is paid without a refusal."""
        own = self.own + self.kin.left if units <= CHEAP else 0
        return max(own, self.shared.left) >= units * times and self.spent + units * times <= self.most

    def pay(self, units: int) -> None:
        """Subtract the units of work that was done."""
        self.spent += units
        own = min(units, self.own) if units <= CHEAP else 0
        self.own -= own
        kin = min(units - own, self.kin.left) if units <= CHEAP else 0
        self.kin.left -= kin
        self.shared.left -= units - own - kin

    def refund(self, own: int) -> None:
        """Restore `own` units after work that found a place, as far as `found` allows. Shared units stay paid."""
        back = own - self.own
        if self.found is not None:
            back = min(back, self.found.left)
            self.found.left -= back
        self.most += back
        self.own += back


ACCOUNT: Final[ContextVar[Account | None]] = ContextVar("ACCOUNT", default=None)


class on_account:  # noqa: N801  # read as a function, and entered tens of thousands of times in a plan
    """A context in which work is paid from the account; None counts nothing."""

    __slots__ = ("_account", "_token")
    _token: Token[Account | None]

    def __init__(self, account: Account | None) -> None:
        self._account = account

    def __enter__(self) -> None:
        self._token = ACCOUNT.set(self._account)

    def __exit__(self, *_: object) -> None:
        ACCOUNT.reset(self._token)


def admit(units: int, expression: str = "") -> None:
    """Check that the current account can pay for work of at most `units`. Raises BudgetSpentError."""
    account = ACCOUNT.get()
    if account is not None:
        account.admit(units, expression)


def pay(units: int, expression: str = "") -> None:
    """Pay for work from the current account. Raises BudgetSpentError if it is empty."""
    account = ACCOUNT.get()
    if account is not None:
        account.admit(units, expression)
        account.pay(units)
