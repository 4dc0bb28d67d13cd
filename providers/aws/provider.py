"""EC2 as a provider: the cluster launches machines itself and owns each one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.aws.capacity import Reservations
from providers.aws.describe import GROUP_TAG, instance_of, listed, tags_of
from providers.aws.dry_runs import no_types
from providers.aws.interruptions import Interruptions, Notice, Noticed
from providers.aws.launch import Launcher
from providers.aws.node_template.boot_times import Booting, BootTimeouts
from providers.aws.node_template.cluster import Clusters
from providers.aws.node_template.launch_template import LaunchTemplates
from providers.aws.node_template.network import Network
from providers.aws.node_template.status import Verdicts
from providers.aws.node_template.template import Templates
from providers.aws.place import Place, Placed
from providers.aws.preflight import Check
from providers.aws.sales.market import BlockMarket
from providers.aws.sales.prices import Override, Prices
from providers.aws.session import Aws
from providers.aws.terminate import terminate
from providers.aws.trial import Trial
from providers.contract import (
    Clock,
    Instance,
    InstancePage,
    LaunchAnswer,
    LaunchRequest,
    OfferingStatus,
    Reservation,
    TemplateRef,
    TemplateStatus,
    TerminateAnswer,
    Traits,
)
from providers.errors import understood
from providers.finding import Finding
from providers.market import CapacityOffer, CapacityQuery
from providers.trials import Outcome

# Describing lags seconds, counts of a reservation several minutes after a termination.
WINDOW: Final = timedelta(minutes=5)
# If a block's end is this much later than in a notice, it was moved after the notice.
_EXTENDED: Final = timedelta(hours=12)
TRAITS: Final = Traits(exact=True, consistency_window=WINDOW, reserves=True)


@dataclass(frozen=True, slots=True)
class Account:
    """Values that the AWS providers of one cluster share. `cluster` is the uid of the namespace kube-system."""

    aws: Aws
    clock: Clock
    catalog: Catalog
    cluster: str


class AwsProvider(Booting, Placed):
    """Rents EC2 machines. Also a CapacityMarket, a Preflight and a TemplateJudge."""

    name: Final = "aws"

    def __init__(
        self,
        account: Account,
        templates: Templates,
        *,
        overrides: tuple[Override, ...] = (),
        queue: str = "",
        held: Callable[[], frozenset[str]] = frozenset,
        tried: Callable[[str], Sequence[str]] = no_types,
    ) -> None:
        """`queue` is the URL of an SQS queue with notices; `held` the reservations that groups start machines in;
        `tried` the types that a check tries with a node template, by its name."""
        self._aws = account.aws
        self._cluster = account.cluster
        self._place = Place(account.aws, account.clock)
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
        self._boot = BootTimeouts(templates, account.clock)
        self._verdicts = Verdicts(self._launcher, templates)
        self._market = BlockMarket(account.aws, self._reservations)
        self._queue = queue
        self._noticed = Noticed(Interruptions(account.aws, queue), account.clock)
        self._held = held
        self._tried = tried

    @property
    def traits(self) -> Traits:
        """Machines are owned one by one; only the answer to a launch assigns them to nodes."""
        return TRAITS

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        """One EC2 call (launch.py), once an hour after old launch templates were tidied."""
        template = self._templates.template(request.template)
        self._verdicts.tidy()
        return self._launcher.launch(request, template)

    def describe(self, tags: Mapping[str, str], *, page: str = "") -> InstancePage:
        """All machines with these tags but members of groups, on one page: a thousand of them are one call."""
        with understood("DescribeInstances"):
            found = sorted(
                (one for one in listed(self._aws, tags) if GROUP_TAG not in tags_of(one)),
                key=lambda one: str(one["InstanceId"]),
            )
            noticed = self._noticed.of(one["InstanceId"] for one in found)
            ends = {r.id: r.reclaim_at for r in self._reservations.all()} if any(map(_reservation, found)) else {}
            return InstancePage(
                tuple(seen(one, ends.get(_reservation(one)), noticed.get(one["InstanceId"])) for one in found)
            )

    def acknowledge(self) -> None:
        """Delete the notices that were read."""
        self._noticed.acknowledge()

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        return terminate(self._aws, self._cluster, ids)

    def reservations(self) -> tuple[Reservation, ...]:
        """On-demand reservations and Capacity Blocks, but those that belong to groups."""
        held = self._held()
        return tuple(found for found in self._reservations.all() if found.id not in held)

    def offerings(self) -> tuple[OfferingStatus, ...]:
        """Prices: on-demand in any zone, spot by zone, and zero for reserved capacity.

        Unknown prices, and types that are not sold, are left to the catalog.
        """
        types = (t for t in self._catalog.types.values() if t.cloud == "aws")
        on_demand = self._prices.listed(t.name for t in types if CapacityType.ON_DEMAND in t.capacity_types)
        reserved = [OfferingStatus(r.offering, Decimal(0), r.available) for r in self._reservations.all()]
        return (*on_demand, *self._prices.spot(), *reserved)

    def template_statuses(self) -> tuple[TemplateStatus, ...]:
        return self._verdicts.all()

    def validate(self, query: CapacityQuery, now: datetime) -> CapacityQuery:
        return self._market.validate(query, now)

    def find(self, query: CapacityQuery) -> tuple[CapacityOffer, ...]:
        return self._market.find(query)

    def bought(self, mark: str) -> tuple[Reservation, ...]:
        return self._market.bought(mark)

    def buy(self, offer: CapacityOffer, *, mark: str, ceiling: Decimal) -> tuple[Reservation, ...]:
        return self._market.buy(offer, mark=mark, ceiling=ceiling)

    def trial(self, template: str, instance_type: str, on_outcome: Callable[[Outcome], None]) -> Trial:
        """A trial on the account, with the AWSNodeTemplate of this name. Raises TemplateError if there is none."""
        found = self._templates.template(TemplateRef("AWSNodeTemplate", template))
        return Trial(self._launcher, self._cluster, found, instance_type, on_outcome)

    def check(self) -> tuple[Finding, ...]:
        return Check(self._launcher, self._templates, self._cluster, self._queue, self._tried).findings()


def seen(found: Mapping[str, Any], end: datetime | None, notice: Notice | None) -> Instance:
    """A machine with the end that a notice or its reservation gives it, whichever is earlier."""
    if notice is not None and notice.repeated and end is not None and notice.at is not None:
        # The block was extended since. Extensions are of whole days.
        notice = notice if end - notice.at < _EXTENDED else None
    noticed = notice.at if notice else None
    moments = [moment for moment in (end, noticed) if moment is not None]
    shown = instance_of(found, reclaim_at=min(moments, default=None))
    once = None if notice is None or notice.repeated else noticed
    return replace(shown, message=shown.message or notice.reason, noticed_at=once) if notice else shown


def _reservation(found: Mapping[str, object]) -> str:
    return str(found.get("CapacityReservationId", ""))
