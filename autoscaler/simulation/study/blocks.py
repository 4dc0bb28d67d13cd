"""The CapacityBlocks of a study: prepaid machines of the simulated cloud, from their start to their end.

Their times are on the clock of the simulation. Tasks have no tolerations, so a block has no taint here, and every task
that its `consumers` admit may use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Final

from autoscaler.cluster.api import Object
from autoscaler.cluster.resources import CAPACITY_BLOCKS
from autoscaler.errors import BadInputError
from autoscaler.kube.custom.capacity_block import NO_TAINT, parse_capacity_block
from autoscaler.kube.custom.schema import duration_text
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.candidates import Candidate
from autoscaler.simulation.api_server import copied
from autoscaler.simulation.kubelets import PUBLISHING
from autoscaler.simulation.study.bound import Prepaid, room_of
from instance_catalog.dataclass import replace
from instance_catalog.types.instance_type import CapacityType
from providers.contract import OfferingKey
from providers.simulated.cloud import SimulatedCloud

# So long before the end of a block the cloud takes its machines back.
_RECLAIM: Final = timedelta(minutes=30)


def blocks_of(objects: Iterable[Object]) -> Iterator[CapacityBlock]:
    """Those among the manifests, which were checked before."""
    for manifest in objects:
        if manifest["kind"] == CAPACITY_BLOCKS.kind and (block := parse_capacity_block(manifest)) is not None:
            yield block


def without_taint(manifest: Object) -> Object:
    """The manifest of a block for pods without tolerations."""
    changed: Object = copied(manifest)
    changed["spec"]["taint"] = {"effect": NO_TAINT}
    return changed


def open_always(manifest: Object, start: datetime) -> Object:
    """The same block as if it were open for ten years, to see which tasks it takes."""
    changed = without_taint(manifest)
    changed["spec"] |= {"startsAt": start.isoformat(), "endsAt": (start + timedelta(days=3650)).isoformat()}
    return changed


def reserve(blocks: Iterable[CapacityBlock], cloud: SimulatedCloud) -> None:
    """The reservations of the blocks."""
    for block in blocks:
        offering = OfferingKey(block.instance_type, block.zone, CapacityType.CAPACITY_BLOCK)
        cloud.reserve(
            block.reservation or block.name,
            offering,
            count=block.count,
            starts_at=block.starts_at,
            ends_at=block.ends_at,
            reclaim=_RECLAIM,
            tags=block.reservation_tags,
        )


def refuse_closed(
    blocks: Iterable[CapacityBlock], start: datetime, length: timedelta | None, *, boot: timedelta
) -> None:
    """Raises BadInputError for a block that is not open while the simulation runs, or that is drained before its first
    machine, which takes `boot` to register, is ready for pods."""
    ready = boot + PUBLISHING
    for block in blocks:
        if block.ends_at <= start or (length is not None and block.starts_at >= start + length):
            raise BadInputError(
                f"CapacityBlock {block.name} is not open while the simulation runs",
                next_step=f"write startsAt and endsAt on its clock, which begins at {start:%Y-%m-%dT%H:%M:%SZ}",
            )
        if replace(block, reclaim_at=block.ends_at - _RECLAIM).drain_starts <= max(block.starts_at, start) + ready:
            drained = duration_text(_RECLAIM + block.drain.budget)
            raise BadInputError(
                f"CapacityBlock {block.name} is too short for any pod: its machines are drained {drained} before "
                f"endsAt, and need {duration_text(ready)} to start",
                next_step="write a later endsAt, or a shorter drain.budget",
            )


def refuse_unoffered(blocks: Iterable[CapacityBlock], offered: Iterable[Candidate]) -> None:
    """Raises BadInputError for a block that no pool offers: it would never be used."""
    names = {found.block.name for found in offered if found.block is not None}
    for block in blocks:
        if block.name not in names:
            step = "name a pool with capacityTypes: [capacity-block] that admits its instance type and zone"
            raise BadInputError(f"no pool offers the machines of CapacityBlock {block.name}", next_step=step)


def prepaid_of(
    blocks: Sequence[CapacityBlock], offered: Iterable[Candidate], snapshot: Snapshot, start: datetime
) -> tuple[Prepaid, ...]:
    """The machines of the blocks, all of which are offered."""
    rooms = {found.block.name: room_of(found, snapshot) for found in offered if found.block is not None}
    return tuple(
        Prepaid(rooms[block.name], block.count, block.starts_at - start, block.ends_at - start) for block in blocks
    )
