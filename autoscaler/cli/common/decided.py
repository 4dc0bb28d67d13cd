"""A command's plan with its inputs, from a cluster or from manifests."""

from __future__ import annotations

from datetime import datetime

from autoscaler.model.plan import Plan
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.policy import Policy
from instance_catalog.dataclass import dataclass
from instance_catalog.types.catalog import Catalog


@dataclass(frozen=True, slots=True)
class Decided:
    """A cluster, and what would be decided for it at `now`. `live` False: it is one of manifests."""

    snapshot: Snapshot
    catalog: Catalog
    plan: Plan
    now: datetime
    policy: Policy
    live: bool = True
