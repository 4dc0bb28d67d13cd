"""The simulated cloud, with the operations for tests and simulations. provider.py has a customer's operations.

It sells everything without limit by default: `limit`, `withdraw`, `shortage` and `reserve` set its stock; `interrupt`,
`lose` and `inject` simulate a real cloud's faults.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Final

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.types.instance_type import CapacityType
from providers.contract import Clock, Instance, LaunchRequest, OfferingFailure, OfferingKey, OfferingStatus
from providers.errors import (
    AmbiguousError,
    CapacityError,
    NotOfferedError,
    PermissionDeniedError,
    QuotaError,
    ReservationExhaustedError,
    ShortageError,
    ThrottledError,
    UnclassifiedError,
)
from providers.simulated.machines import PROMPT, Behaviour, Holding, Machine

_PLENTY: Final = 1_000_000


class Fault(Enum):
    """A fault in a call. LOST_REQUEST has no effect. LOST_ANSWER has the full effect, but no answer."""

    LOST_REQUEST = "lost-request"
    LOST_ANSWER = "lost-answer"
    THROTTLED = "throttled"
    DENIED = "denied"
    UNKNOWN_CODE = "unknown-code"


class Call(Enum):
    """The provider's methods that faults can be injected into."""

    LAUNCH = "launch"
    DESCRIBE = "describe"
    TERMINATE = "terminate"
    RESERVATIONS = "reservations"
    OFFERINGS = "offerings"


@dataclass(frozen=True, slots=True)
class Launch:
    """The result of a token: its request, the machines' ids, and the skipped offerings."""

    request: LaunchRequest
    ids: tuple[str, ...]
    failures: tuple[OfferingFailure, ...]


class SimulatedCloud:
    """Stock, machines, reservations and faults, on a clock."""

    def __init__(self, clock: Clock, behaviour: Behaviour = PROMPT) -> None:
        self.clock = clock
        self.behaviour = behaviour
        self.place = "simulated/everywhere"
        self.machines: dict[str, Machine] = {}
        self.holdings: dict[str, Holding] = {}
        self.launches: dict[str, Launch] = {}
        self.broken_templates: dict[str, str] = {}
        self.calls: list[Call] = []
        self._limits: dict[OfferingKey, int] = {}
        self._prices: dict[OfferingKey, Decimal] = {}
        self._withdrawn: set[OfferingKey] = set()
        self._shortages: list[tuple[OfferingKey, datetime, datetime]] = []
        self._quotas: dict[str, int] = {}
        self._faults: dict[Call, deque[Fault]] = {call: deque() for call in Call}

    # --- what a test or a simulation does to the cloud ---------------------------------------------------------

    def limit(self, offering: OfferingKey, machines: int) -> None:
        """Sell at most so many machines of an offering at a time."""
        self._limits[offering] = machines

    def price(self, offering: OfferingKey, usd_per_hour: Decimal) -> None:
        self._prices[offering] = usd_per_hour

    def withdraw(self, offering: OfferingKey) -> None:
        self._withdrawn.add(offering)

    def quota(self, capacity_type: CapacityType, machines: int) -> None:
        """Allow the account so many machines of a capacity type."""
        self._quotas[capacity_type] = machines

    def shortage(self, offering: OfferingKey, *, since: datetime, until: datetime) -> None:
        """Have none left from `since` until before `until`."""
        self._shortages.append((offering, since, until))

    def reserve(
        self,
        reservation: str,
        offering: OfferingKey,
        *,
        count: int,
        starts_at: datetime,
        ends_at: datetime | None = None,
        reclaim: timedelta = timedelta(minutes=30),
        tags: FrozenMap[str, str] = EMPTY,
    ) -> OfferingKey:
        """Reserve machines of the offering's type, zone and capacity type; answers what to ask for."""
        holding = Holding(
            id=reservation,
            capacity_type=offering.capacity_type,
            instance_type=offering.instance_type,
            zone=offering.zone,
            count=count,
            starts_at=starts_at,
            ends_at=ends_at,
            reclaim=reclaim,
            tags=tags,
        )
        self.holdings[reservation] = holding
        return holding.offering

    def extend(self, reservation: str, ends_at: datetime) -> None:
        """Move the end of a reservation, as a paid extension does."""
        self.holdings[reservation].ends_at = ends_at

    def take(self, reservation: str, machines: int) -> None:
        """Makes another user occupy this number of machines of a reservation."""
        self.holdings[reservation].taken = machines

    def interrupt(self, machine: str, at: datetime, message: str = "spot interruption") -> None:
        """Give notice that a machine is taken back at `at`, and do so."""
        self.machines[machine].reclaim_at = at
        self.machines[machine].end(at, message)

    def stop(self, machine: str, *, stopped: bool = True) -> None:
        """Stop a machine, as a person does, or start it again."""
        self.machines[machine].stopped = stopped

    def lose(self, machine: str, message: str = "hardware failure") -> None:
        """End a machine at once, without notice."""
        self.machines[machine].end(self.clock.now() - self.behaviour.shutdown, message)

    def forget(self) -> None:
        """Drop machines that are listed no more, and launches of which no machine is left: long simulations have
        thousands."""
        now = self.clock.now()
        over = [token for token, launch in self.launches.items() if all(self._is_over(key, now) for key in launch.ids)]
        for token in over:
            for machine in self.launches.pop(token).ids:
                del self.machines[machine]

    def _is_over(self, machine: str, now: datetime) -> bool:
        found = self.machines[machine]
        return found.ended_at is not None and not found.visible(now, self.behaviour)

    def break_template(self, name: str, message: str) -> None:
        """Refuse every launch from the node template of this name."""
        self.broken_templates[name] = message

    def inject(self, call: Call, *faults: Fault) -> None:
        """Makes the next calls of this kind fail, one fault each."""
        self._faults[call].extend(faults)

    # --- what the provider asks ------------------------------------------------------------------------------------

    def begin(self, call: Call) -> Fault | None:
        """Waits for the latency and takes back what is due; raises the fault that occurs before any effect.

        A LOST_ANSWER is returned instead: the caller works and then raises `lost_answer()`.
        """
        self.calls.append(call)
        self.clock.wait(self.behaviour.latency.total_seconds())
        self._reclaim()
        fault = self._faults[call].popleft() if self._faults[call] else None
        match fault:
            case Fault.LOST_REQUEST:
                raise AmbiguousError(f"{call.value}: connection reset before the request was read")
            case Fault.THROTTLED:
                raise ThrottledError(f"{call.value}: rate exceeded", code="RequestLimitExceeded")
            case Fault.DENIED:
                raise PermissionDeniedError(f"not authorized to {call.value}", code="UnauthorizedOperation")
            case Fault.UNKNOWN_CODE:
                raise UnclassifiedError(f"{call.value}: unexpected answer", code="Teapot")
            case Fault.LOST_ANSWER | None:
                return fault

    def used(self, offering: OfferingKey) -> int:
        """The number of machines of an offering that the customer occupies."""
        now = self.clock.now()
        return sum(1 for m in self.machines.values() if m.offering == offering and m.occupies(now, self.behaviour))

    def free(self, offering: OfferingKey) -> int | CapacityError:
        """The number of machines (at least one) that can start now, or the reason why none can."""
        now = self.clock.now()
        quota = self._free_of_quota(offering.capacity_type)
        if quota is not None and quota <= 0:
            return QuotaError(f"the quota of {offering.capacity_type} machines is used up", code="QuotaExceeded")
        free = self._free_of_reservation if offering.reservation else self._free_on_sale
        found = free(offering, now)
        return found if isinstance(found, CapacityError) or quota is None else min(found, quota)

    def listed(self) -> Iterator[OfferingStatus]:
        """Offerings with a price or a limit."""
        for offering in sorted(self._prices.keys() | self._limits.keys()):
            if offering not in self._withdrawn:
                free = self.free(offering) if offering in self._limits else None
                available = 0 if isinstance(free, CapacityError) else free
                yield OfferingStatus(offering, self._prices.get(offering), available)

    def seen(self, machine: Machine, now: datetime) -> Instance:
        """The machine as an answer shows it."""
        return machine.seen(now, self.behaviour, reclaim_at=self.reclaim_at(machine) if self.holdings else None)

    def reclaim_at(self, machine: Machine) -> datetime | None:
        """The time when its reservation ends for the machine."""
        holding = self.holdings.get(machine.offering.reservation)
        return holding.reclaim_at if holding else None

    def _free_of_quota(self, capacity_type: CapacityType) -> int | None:
        if capacity_type not in self._quotas:
            return None
        now = self.clock.now()
        live = (m for m in self.machines.values() if m.occupies(now, self.behaviour))
        return self._quotas[capacity_type] - sum(1 for m in live if m.offering.capacity_type == capacity_type)

    def _free_of_reservation(self, offering: OfferingKey, now: datetime) -> int | CapacityError:
        holding = self.holdings.get(offering.reservation)
        if holding is None or holding.offering != offering:
            return NotOfferedError(f"there is no reservation for {offering}", code="ReservationNotFound")
        free = holding.free(now, self.used(offering))
        if free:
            return free
        state = holding.state(now).value
        return ReservationExhaustedError(f"reservation {holding.id} ({state}) has no machine left", code="Exhausted")

    def _free_on_sale(self, offering: OfferingKey, now: datetime) -> int | CapacityError:
        if offering in self._withdrawn:
            return NotOfferedError(f"{offering} is not sold", code="Unsupported")
        short = any(o == offering and since <= now < until for o, since, until in self._shortages)
        free = self._limits.get(offering, _PLENTY) - self.used(offering)
        if short or free <= 0:
            return ShortageError(f"no machine left: {offering}", code="InsufficientCapacity")
        return free

    def _reclaim(self) -> None:
        if not self.holdings:
            return
        now = self.clock.now()
        for machine in self.machines.values():
            due = self.reclaim_at(machine)
            if due is not None and due <= now:
                machine.end(due, "end of the capacity block")
