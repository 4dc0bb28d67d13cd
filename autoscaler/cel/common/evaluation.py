"""One evaluation: its frame, its cost, and a bound on work that Kubernetes' cost does not see.

A frame is a list of the cost so far, the device, and one slot per variable. A list beats an object here: every step of
every expression touches it.

For what costs nothing upstream relies on a deadline: comparing nested lists that share their parts, joining lists,
loops whose predicate is constant. Here such work is counted instead, so that the answer does not depend on the machine;
an evaluation that spends its allowance ends as unknown. Only programs with comprehensions can spend much.

An `Account` bounds many evaluations and searches together: the planner opens one for each group of equal pods, and
every unit of fresh work is paid from it. Remembered answers cost nothing.
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
    """The cost limit is reached; nothing in the expression can absorb this."""


def charge(frame: Frame, units: int) -> None:
    """Adds cost. Raises CostExceededError above the limit, also where upstream's unsigned sum wraps below zero."""
    cost = frame[COST] = frame[COST] + units
    if not 0 <= cost <= COST_LIMIT:
        frame[COST] = cost % 2**64
        raise CostExceededError


class WorkExceededError(Exception):
    """The allowance is spent."""


class Allowance:
    """What one evaluation may still do."""

    __slots__ = ("depth", "steps")

    def __init__(self) -> None:
        self.steps = STEPS
        self.depth = 0


ALLOWANCE: Final[ContextVar[Allowance | None]] = ContextVar("ALLOWANCE", default=None)


def spend(steps: int) -> None:
    """Counts steps. Raises WorkExceededError when the allowance is spent."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.steps -= steps
        if allowance.steps < 0:
            raise WorkExceededError


def enter(steps: int) -> None:
    """Counts steps one level deeper into a nested value; `leave` ends the level. Raises WorkExceededError."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.steps -= steps
        allowance.depth += 1
        if allowance.steps < 0 or allowance.depth > MAX_DEPTH:
            raise WorkExceededError


def leave() -> None:
    """One level up again."""
    allowance = ALLOWANCE.get()
    if allowance is not None:
        allowance.depth -= 1


class BudgetSpentError(Exception):
    """An account is empty. `expression` is the selector that was to be evaluated, "" for other work."""

    def __init__(self, expression: str = "") -> None:
        super().__init__(expression)
        self.expression = expression


class Purse:
    """Units that several accounts share. `left` may fall below zero by what one evaluation takes."""

    __slots__ = ("left",)

    def __init__(self, units: int) -> None:
        self.left = units


class Account:
    """The units of work that may be done for one group of equal pods: first its `own`, then those that it has together
    with groups that ask the same (`kin`), then those of a shared purse.

    A unit is one of CEL's cost units. `most` bounds both together. Work that may cost more than CHEAP at once is only
    paid from the shared purse, so that it leaves alone what others have of their own. Once refused, an account refuses
    everything: the answer of half a look would depend on where the look ended. `found` is how much of what finds a
    place is given back, which several accounts share as well; None: all of it.
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
        """Makes sure that work of at most `units` may begin. Raises BudgetSpentError."""
        enough = self.shared.left > 0 or units <= min(self.own + self.kin.left, CHEAP)
        if self.refused is None and (not enough or self.spent > self.most):
            self.refused = BudgetSpentError(expression)
        if self.refused is not None:
            # A new one: what is raised refers to the whole search by its traceback, and this account stays.
            raise BudgetSpentError(self.refused.expression)

    def pay(self, units: int) -> None:
        """Takes the units of work that was done."""
        self.spent += units
        own = min(units, self.own) if units <= CHEAP else 0
        self.own -= own
        kin = min(units - own, self.kin.left) if units <= CHEAP else 0
        self.kin.left -= kin
        self.shared.left -= units - own - kin

    def refund(self, own: int) -> None:
        """Back to so many own units, because the work found a place, as far as `found` reaches. What was shared stays
        paid."""
        back = own - self.own
        if self.found is not None:
            back = min(back, self.found.left)
            self.found.left -= back
        self.most += back
        self.own += back


ACCOUNT: Final[ContextVar[Account | None]] = ContextVar("ACCOUNT", default=None)


class on_account:  # noqa: N801  # read as a function, and entered tens of thousands of times in a plan
    """What is done inside is paid from the account; None counts nothing."""

    __slots__ = ("_account", "_token")
    _token: Token[Account | None]

    def __init__(self, account: Account | None) -> None:
        self._account = account

    def __enter__(self) -> None:
        self._token = ACCOUNT.set(self._account)

    def __exit__(self, *_: object) -> None:
        ACCOUNT.reset(self._token)


def admit(units: int, expression: str = "") -> None:
    """Makes sure that the account in force can pay for work of at most so many units. Raises BudgetSpentError."""
    account = ACCOUNT.get()
    if account is not None:
        account.admit(units, expression)


def pay(units: int, expression: str = "") -> None:
    """Pays for work from the account in force. Raises BudgetSpentError when it is empty."""
    account = ACCOUNT.get()
    if account is not None:
        account.admit(units, expression)
        account.pay(units)
