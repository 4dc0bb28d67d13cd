"""A CapacityBlock for what fits and is sold only as capacity that somebody buys for a time, such as a4-highgpu-8g.

Nobody gives up an accelerator because the plan does not know what has been bought.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from typing import Final

from autoscaler.advice.change import Change, ChangeKind
from autoscaler.advice.situation import Situation
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.plan import ConsideredOutcome
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.types.clouds import facts_of
from instance_catalog.types.instance_type import CapacityType

_NAME: Final = "bought"
_BOUGHT: Final = frozenset({CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED})
# Longer than any pod says that it runs: how long people buy is theirs to decide.
_BEGIN: Final = datetime(2000, 1, 1, tzinfo=UTC)
_END: Final = datetime(2200, 1, 1, tzinfo=UTC)


def capacity_blocks(asked: Situation) -> Iterator[Change]:
    """For the smallest type that fits and that nobody sells by the hour; none where something else fits, if only its
    price were known."""
    fitting = [entry for entry in asked.considered if entry.outcome is ConsideredOutcome.FITS]
    entries = [entry for entry in fitting if any(r.code is Code.NEEDS_RESERVATION for r in entry.reasons)]
    blocks = [entry for entry in entries if entry.offering.capacity_type in _BOUGHT]
    if blocks and len(entries) == len(fitting):
        found = min(blocks, key=lambda entry: _size(asked, entry.offering))
        known = asked.catalog.types[found.offering.instance_type]
        edit = partial(_holding, offering=found.offering, cloud=known.cloud, count=len(asked.pods))
        others = [kind.value for kind in sorted(known.capacity_types) if not kind.needs_reservation]
        sold = {"sold_as": " or ".join(others), "cloud": known.cloud} if others else {}
        yield Change.of(ChangeKind.ADD_BLOCK, "", edit, instance_type=known.name, **sold)


def _size(asked: Situation, offering: OfferingRef) -> tuple[int, int, str]:
    instance_type = asked.catalog.types[offering.instance_type]
    return instance_type.device_count, instance_type.vcpu, instance_type.name


def _holding(snapshot: Snapshot, offering: OfferingRef, cloud: str, count: int) -> Snapshot:
    """With a block of as many machines as there are pods; more are never needed."""
    first = facts_of(cloud).first_zone  # any zone of the region stands for the one of the block
    zone = f"{offering.region}{first}" if offering.region and first else offering.zone
    block = CapacityBlock(_NAME, offering.instance_type, zone, count, _BEGIN, _END)
    return replace(snapshot, blocks=(*snapshot.blocks, block))
