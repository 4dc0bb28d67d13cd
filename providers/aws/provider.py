"""EC2 as a provider: machines that this cluster launches itself and owns one by one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.aws.capacity import Reservations
from providers.aws.describe import GROUP_TAG, instance_of, listed, tags_of
from providers.aws.interruptions import Interruptions, Notice, Noticed
from providers.aws.launch import Launcher
from providers.aws.node_template.cluster import Clusters
from providers.aws.node_template.launch_template import LaunchTemplates
from providers.aws.node_template.network import Network
from providers.aws.node_template.status import Verdicts
from providers.aws.node_template.template import Templates
from providers.aws.preflight import Check
from providers.aws.sales.market import BlockMarket
from providers.aws.sales.prices import Override, Prices
from providers.aws.session import Aws
from providers.aws.terminate import terminate
from providers.contract import (
    Clock,
    Finding,
    Instance,
    InstancePage,
    LaunchAnswer,
    LaunchRequest,
    OfferingStatus,
    Reservation,
    TemplateStatus,
    TerminateAnswer,
    Traits,
)
from providers.market import CapacityOffer, CapacityQuery

# Describing lags seconds, counts of a reservation several minutes after a termination.
WINDOW: Final = timedelta(minutes=5)
TRAITS: Final = Traits(exact=True, consistency_window=WINDOW, reserves=True)


@dataclass(frozen=True, slots=True)
class Account:
    """What the AWS providers of one cluster share. `cluster` is the uid of the namespace kube-system."""

    aws: Aws
    clock: Clock
    catalog: Catalog
    cluster: str


class AwsProvider:
    """Rents EC2 machines. Also a CapacityMarket, a Preflight and a TemplateJudge."""

    def __init__(
        self,
        account: Account,
        templates: Templates,
        *,
        overrides: tuple[Override, ...] = (),
        queue: str = "",
        held: Callable[[], frozenset[str]] = frozenset,
    ) -> None:
        """`queue` is the URL of an SQS queue with notices; `held` the reservations that groups start machines in."""
        self._aws = account.aws
        self._cluster = account.cluster
        self._catalog = account.catalog
        self._templates = templates
        self._reservations = Reservations(account.aws, account.clock, window=WINDOW)
        self._prices = Prices(account.aws, account.clock, account.catalog, overrides)
        self._network = Network(account.aws, account.clock)
        self._launcher = Launcher(
            aws=account.aws,
            clock=account.clock,
            catalog=account.catalog,
            network=self._network,
            clusters=Clusters(account.aws, account.clock),
            launch_templates=LaunchTemplates(account.aws, account.clock, account.cluster),
            reservations=self._reservations,
        )
        self._verdicts = Verdicts(self._launcher, templates)
        self._market = BlockMarket(account.aws, self._reservations)
        self._queue = queue
        self._noticed = Noticed(Interruptions(account.aws, queue), account.clock)
        self._held = held

    @property
    def name(self) -> str:
        """As it is written into ProvisionedNodes."""
        return "aws"

    @property
    def traits(self) -> Traits:
        """Machines are owned one by one; which node one is, only the answer to its launch says."""
        return TRAITS

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        """One EC2 call (launch.py)."""
        return self._launcher.launch(request, self._templates.template(request.template))

    def describe(self, tags: Mapping[str, str], *, page: str = "") -> InstancePage:
        """All machines with these tags but members of groups, on one page: a thousand of them are one call."""
        found = sorted(
            (one for one in listed(self._aws, tags) if GROUP_TAG not in tags_of(one)), key=lambda one: one["InstanceId"]
        )
        noticed = self._noticed.of(one["InstanceId"] for one in found)
        ends = {r.id: r.reclaim_at for r in self._reservations.all()} if any(map(_reservation, found)) else {}
        return InstancePage(
            tuple(_seen(one, ends.get(_reservation(one)), noticed.get(one["InstanceId"])) for one in found)
        )

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        """End machines of this cluster."""
        return terminate(self._aws, self._cluster, ids)

    def reservations(self) -> tuple[Reservation, ...]:
        """On-demand reservations and Capacity Blocks, but those that belong to groups."""
        held = self._held()
        return tuple(found for found in self._reservations.all() if found.id not in held)

    def offerings(self) -> tuple[OfferingStatus, ...]:
        """Prices: on-demand in any zone, spot by zone, and nothing more for what is reserved.

        What is not known yet, or not sold, is left to the catalog.
        """
        types = (t for t in self._catalog.types.values() if t.cloud == "aws")
        on_demand = self._prices.listed(t.name for t in types if CapacityType.ON_DEMAND in t.capacity_types)
        reserved = [OfferingStatus(r.offering, Decimal(0), r.available) for r in self._reservations.all()]
        return (*on_demand, *self._prices.spot(), *reserved)

    def template_statuses(self) -> tuple[TemplateStatus, ...]:
        """What the AWSNodeTemplates come to."""
        return self._verdicts.all()

    def validate(self, query: CapacityQuery, now: datetime) -> CapacityQuery:
        """As CapacityMarket.validate."""
        return self._market.validate(query, now)

    def find(self, query: CapacityQuery) -> tuple[CapacityOffer, ...]:
        """Capacity Blocks on offer."""
        return self._market.find(query)

    def bought(self, mark: str) -> tuple[Reservation, ...]:
        """What purchases with this mark have yielded."""
        return self._market.bought(mark)

    def buy(self, offer: CapacityOffer, *, mark: str, ceiling: Decimal) -> tuple[Reservation, ...]:
        """Buy a Capacity Block."""
        return self._market.buy(offer, mark=mark, ceiling=ceiling)

    def check(self) -> tuple[Finding, ...]:
        """Everything a launch needs."""
        return Check(self._launcher, self._templates, self._cluster, self._queue).findings()


def _seen(found: Mapping[str, Any], end: datetime | None, notice: Notice | None) -> Instance:
    """A machine with the end that a notice or its reservation gives it, whichever is earlier."""
    moments = [moment for moment in (end, notice.at if notice else None) if moment is not None]
    seen = instance_of(found, reclaim_at=min(moments, default=None))
    return replace(seen, message=seen.message or notice.reason) if notice else seen


def _reservation(found: Mapping[str, object]) -> str:
    return str(found.get("CapacityReservationId", ""))
