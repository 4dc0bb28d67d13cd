"""Reads the result of a call whose outcome is unknown and that is not repeated, because its pool observes or its
provider refuses to.

The machines that the provider lists with the batch's tag are those that the call has launched. A machine that is not
listed long enough after the last call that can be running was not launched. A group whose size is set names no machine
until the call is repeated: there the batch waits until the call can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import timedelta
from typing import Final

from autoscaler.execution.launch import RepetitionRefusedError, wanted
from autoscaler.execution.terminate import ALIVE
from autoscaler.model.provisioned_node import LaunchBatch
from instance_catalog.dataclass import dataclass, field, replace
from providers.contract import TAG_BATCH, Clock, Instance, LaunchAnswer, Traits

# A call of the previous process may still be running; none takes longer.
_LONGEST_CALL: Final = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Unclear:
    """The batches whose answer is read, and since when (monotonic) nothing has been asked for them that may launch."""

    clock: Clock
    _since: dict[str, float] = field(default_factory=dict)

    def __contains__(self, batch: str) -> bool:
        return batch in self._since

    def waited(self, batch: str) -> timedelta:
        """For how long; asked for a batch that is not here, it begins now."""
        now = self.clock.monotonic()
        return timedelta(seconds=now - self._since.setdefault(batch, now))

    def repeat(self, batch: str, call: Callable[[], None]) -> None:
        """Makes the batch's call. The answer is read only if the call is refused: any other call may launch."""
        try:
            call()
        except RepetitionRefusedError:
            self.waited(batch)
            raise
        except Exception:
            self.forget(batch)
            raise

    def forget(self, batch: str) -> None:
        self._since.pop(batch, None)

    def keep(self, batches: Collection[str]) -> None:
        """Forget all others."""
        for batch in self._since.keys() - set(batches):
            self.forget(batch)


def read_answer(
    batch: LaunchBatch, machines: Mapping[str, Instance], traits: Traits, *, waited: timedelta
) -> LaunchAnswer | None:
    """The machines that the call has launched, None while they are unknown. `machines` are those the provider lists, by
    provider id; `waited` is the time since the last request for the batch."""
    names = wanted(batch)
    known = {member.provider_id for member in batch.members}
    found = sorted(
        (m for m in machines.values() if m.tags.get(TAG_BATCH) == batch.name and m.provider_id not in known),
        key=lambda machine: machine.id,
    )
    alive = [machine for machine in found if machine.state in ALIVE][: len(names)]
    over = traits.exact and waited >= traits.consistency_window + _LONGEST_CALL
    if len(alive) < len(names) and not over:
        return None
    said = {machine.node: machine for machine in alive if machine.node in names}
    others = [machine for machine in alive if machine.node not in said]
    given = {name: said[name] if name in said else others.pop() for name in names if name in said or others}
    instances = tuple(replace(machine, node=name) for name, machine in given.items())
    return LaunchAnswer(instances, missing=tuple(name for name in names if name not in given))
