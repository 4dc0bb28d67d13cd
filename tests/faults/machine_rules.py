"""What happens to single machines at EC2 besides their end: people stop and start them, lists leave them out."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import rule

from tests.fakes.ec2.machines import Machine

if TYPE_CHECKING:
    from tests.faults.world import AwsSimulation


class MachineRules:
    """Part of a schedule."""

    told: ClassVar[Counter[str]]
    simulation: AwsSimulation

    @rule(index=st.integers(0, 7), stopped=st.booleans())
    def stops(self, index: int, stopped: bool) -> None:
        """A person stops a machine, or starts it again."""
        for machine in self._one(index):
            machine.stopped = stopped
            self.told["a machine stopped" if stopped else "a machine started"] += 1

    @rule(index=st.integers(0, 7), hidden=st.booleans())
    def vanishes(self, index: int, hidden: bool) -> None:
        """Lists leave a machine out for a while."""
        for machine in self._one(index):
            machine.hidden = hidden
            self.told["a machine out of the list" if hidden else "a machine in the list again"] += 1

    @rule(index=st.integers(0, 7), protected=st.booleans())
    def protects(self, index: int, protected: bool) -> None:
        """A person protects a machine against termination, or takes that away."""
        for machine in self._one(index):
            machine.protected = protected
            self.told["a machine protected against termination"] += protected

    @rule(index=st.integers(0, 7), first=st.booleans())
    def rebalances(self, index: int, first: bool) -> None:
        """EC2 recommends to leave a spot machine, before or after it takes it back."""
        account = self.simulation.fake.account
        for machine in self._one(index):
            if machine.order.market == "spot":
                for step in (0, 1) if first else (1, 0):
                    account.notices.rebalance(machine) if step == 0 else account.interrupt(machine.id)
                self.told["a rebalance recommendation"] += 1

    def calm_down(self) -> None:
        """All run, are listed, and may be ended."""
        for machine in self.simulation.fake.account.machines.values():
            machine.stopped = machine.hidden = machine.protected = False

    def _one(self, index: int) -> list[Machine]:
        # A group replaces members that do not run, whoever stopped them.
        alive = [machine for machine in self.simulation.fake.account.alive() if not machine.group]
        return [alive[index % len(alive)]] if alive else []
