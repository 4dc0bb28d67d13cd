"""The state behind the calls: one account in one region, on a clock. Also what a test does to it.

Nothing here happens by itself: states follow from the clock, and `catch_up` (before every call) lets take effect what
has fallen due since the last one, at the moment at which it fell due.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, Final

from instance_catalog.dataclass import replace
from providers.contract import Clock
from tests.fakes.ec2.geography import Geography
from tests.fakes.ec2.holdings import Extension, Holding
from tests.fakes.ec2.machines import Behaviour, Machine
from tests.fakes.ec2.market import BlockMarket, BlockOffering, Segment
from tests.fakes.ec2.notices import Notices
from tests.fakes.ec2.stock import Stock
from tests.fakes.ec2.templates import LaunchTemplate

_BLOCK_END: Final = ("Server.CapacityBlockExpired", "The Capacity Block has reached its end")


class Account:
    """Machines, reservations, launch templates, stock and tokens."""

    def __init__(self, clock: Clock, geography: Geography, behaviour: Behaviour) -> None:
        self.clock = clock
        self.geography = geography
        self.behaviour = behaviour
        self.machines: dict[str, Machine] = {}
        self.holdings: dict[str, Holding] = {}
        self.templates: dict[str, LaunchTemplate] = {}
        self.stock = Stock(geography)
        self.market = BlockMarket()
        self.notices = Notices(clock)
        # What a client token was used for: (operation, zone or "", token) → (parameters, what came of it).
        self.tokens: dict[tuple[str, str, str], tuple[Any, Any]] = {}
        # What is wrong with every launch template, and until when: (code, until).
        self.template_trouble: tuple[str, datetime] | None = None
        self._counts: Counter[str] = Counter()

    @property
    def now(self) -> datetime:
        return self.clock.now()

    def new_id(self, prefix: str) -> str:
        """An id that, like AWS's, says nothing of its order; the same in every run."""
        self._counts[prefix] += 1
        digest = hashlib.sha256(f"{prefix}/{self._counts[prefix]}".encode()).hexdigest()
        return f"{prefix}-{digest[:17]}"

    def number(self, what: str) -> int:
        """1, 2, 3 …"""
        self._counts[what] += 1
        return self._counts[what]

    # --- what a test does -------------------------------------------------------------------------------------------

    def reserve(
        self,
        instance_type: str,
        zone: str,
        count: int,
        *,
        starts_in: timedelta = timedelta(0),
        lasts: timedelta | None = None,
        **details: Any,
    ) -> Holding:
        """An on-demand capacity reservation that starts later or now; `details` are fields of Holding."""
        starts_at = self.now + starts_in
        ends_at = None if lasts is None else starts_at + lasts
        holding = Holding(self.new_id("cr"), instance_type, zone, count, self.now, starts_at, ends_at, **details)
        self.holdings[holding.id] = holding
        return holding

    def block(
        self, instance_type: str, zone: str, count: int, *, starts_in: timedelta, lasts: timedelta, **details: Any
    ) -> Holding:
        """A Capacity Block that has been paid, as if it had been bought before the test."""
        paid = {"paid_at": self.now, "block": self.new_id("cb")} | details
        return self.reserve(instance_type, zone, count, starts_in=starts_in, lasts=lasts, **paid)

    def sell_block(
        self, instance_type: str, zone: str, count: int, *, starts_in: timedelta, lasts: timedelta, fee: str
    ) -> BlockOffering:
        """Put a Capacity Block on sale; `fee` in dollars for all of it."""
        starts_at = self.now + starts_in
        segment = Segment(instance_type, zone, count, starts_at, starts_at + lasts)
        return self.market.sell(self.number("block offering"), [segment], fee)

    def extend(self, holding: Holding, by: timedelta) -> Extension:
        """Extend a block, paid at once."""
        end = holding.end(self.now)
        if end is None:
            raise ValueError(f"{holding.id} has no end that could be moved")
        extension = Extension(self.new_id("cbe"), self.now, end, end + by, "0", paid_at=self.now)
        holding.extensions.append(extension)
        return extension

    def interrupt(self, machine: str, *, notice: timedelta = timedelta(minutes=2)) -> None:
        """Give notice that a machine is taken back after `notice`, and do so."""
        found = self.machines[machine]
        at = self.now + notice
        code = "Server.SpotInstanceTermination" if found.order.market == "spot" else "Server.ScheduledStop"
        found.end(at, code, f"{code}: taken back")
        self.notices.interruption(found, at)

    def stop(self, machine: str, *, stopped: bool = True) -> None:
        """Stop a machine, as a person does, or start it again."""
        self.machines[machine].stopped = stopped

    def break_templates(self, code: str, *, until: datetime) -> None:
        """Let launch templates be refused with a code, as when what they name is gone."""
        self.template_trouble = code, until

    def lose(self, machine: str) -> None:
        """End a machine at once, as broken hardware does."""
        self.machines[machine].end(self.now, "Server.InternalError", "Server.InternalError: hardware failure")

    # --- what follows -----------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Take back the machines of blocks that end, and send the notices that are due."""
        for holding in self.holdings.values():
            if holding.block:
                self._take_back(holding)
        self.notices.catch_up(self.holdings.values(), self.machines.values(), self.behaviour)

    def _take_back(self, holding: Holding) -> None:
        reclaim = holding.reclaim_at(self.now)
        gone = holding.state(self.now) in ("unavailable", "cancelled", "failed", "payment-failed")
        at = self.now if gone else reclaim
        if at is None or at > self.now:
            return
        for machine in self.running_in(holding.id):
            machine.end(at, *_BLOCK_END)

    def running_in(self, reservation: str) -> Iterator[Machine]:
        """The machines of a reservation that have not begun to shut down."""
        return (m for m in self.machines.values() if m.reservation == reservation and m.alive(self.now))

    def alive(self) -> list[Machine]:
        """All machines that cost money now, also those that no answer shows yet."""
        self.catch_up()
        return [machine for machine in self.machines.values() if machine.alive(self.now)]

    # --- capacity ---------------------------------------------------------------------------------------------------

    def free_in(self, holding: Holding) -> int:
        """How many machines can be started in a reservation now."""
        if not holding.open_for_launches(self.now) or holding.impaired:
            return 0
        used = sum(m.reservation == holding.id and m.occupies(self.now, self.behaviour) for m in self.machines.values())
        return max(holding.count - holding.taken - used, 0)

    def counted_in(self, holding: Holding) -> int:
        """AvailableInstanceCount: what EC2 says is free, which lags behind."""
        if holding.state(self.now) != "active":
            return 0
        used = sum(m.reservation == holding.id and m.counted(self.now, self.behaviour) for m in self.machines.values())
        return max(holding.count - holding.taken - used, 0)

    def open_holdings(self, instance_type: str, zone: str) -> list[Holding]:
        """The reservations that serve on-demand launches which name none, fullest first."""
        return sorted(
            (
                h
                for h in self.holdings.values()
                if h.match == "open" and not h.block and (h.instance_type, h.zone) == (instance_type, zone)
            ),
            key=lambda holding: (self.free_in(holding), holding.id),
        )

    def set_behaviour(self, **changes: Any) -> None:
        """Change how slowly things happen, from now on."""
        self.behaviour = replace(self.behaviour, **changes)
