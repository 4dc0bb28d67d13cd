"""The provider of Google Cloud: machines of existing groups, each with a name that Foreslice chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from functools import partial
from typing import Final

from instance_catalog.dataclass import dataclass
from instance_catalog.types.clouds import region_of
from providers.contract import (
    Clock,
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
from providers.errors import understood
from providers.finding import Finding
from providers.gcp.describe import Tags, instance_of, listed, looked_up
from providers.gcp.in_group.orphan_names import by_zone, names_without_machine, release
from providers.gcp.interruptions import events
from providers.gcp.launch import Launcher
from providers.gcp.names import MAX_NODES, provider_id
from providers.gcp.node_template.groups import Group, Groups
from providers.gcp.node_template.status import Verdicts
from providers.gcp.node_template.template import Batch, GroupTemplates, PoolNodes
from providers.gcp.preflight import findings
from providers.gcp.reserved.capacity import Reservations
from providers.gcp.reserved.parts import Ref
from providers.gcp.session import Gcp
from providers.gcp.terminate import terminate
from providers.ttl_cache import TtlCache

# The delay after which lists contain a launch.
WINDOW: Final = timedelta(minutes=3)
# The groups rarely change the blocks and reservations of other projects that they name.
_NAMED: Final = timedelta(minutes=5)
# Many machines request the same tags in one reconcile.
_RECONCILE: Final = timedelta(seconds=5)
TRAITS: Final = Traits(exact=True, consistency_window=WINDOW, max_nodes=min(100, MAX_NODES), reserves=True)


@dataclass(frozen=True, slots=True)
class Project:
    """The settings of the provider of one cluster. `cluster` is the uid of the namespace kube-system."""

    gcp: Gcp
    clock: Clock
    cluster: str


class GcpProvider:
    """Machines of managed instance groups. Implements Preflight, TemplateJudge, Withdrawer and NameKeeper as well."""

    name: Final = "gcp"

    def __init__(
        self,
        project: Project,
        templates: GroupTemplates,
        *,
        written: Callable[[], Iterable[Batch]] = tuple,
        expected: Callable[[], Iterable[PoolNodes]] = tuple,
    ) -> None:
        """`written` returns the stored launches, because a name contains only a hash of its batch. `expected` returns
        the properties that plans assume for nodes."""
        self._gcp = project.gcp
        self._clock = project.clock
        self._cluster = project.cluster
        self._templates = templates
        self._written = written
        self._reservations = Reservations(project.gcp, project.clock, window=WINDOW)
        self._started: TtlCache[tuple[tuple[Ref, str], ...]] = TtlCache(project.clock, _NAMED)
        self._without_machine: TtlCache[frozenset[str]] = TtlCache(project.clock, _RECONCILE)
        self._groups = Groups(project.gcp, project.clock, self._reservations)
        self._launcher = Launcher(project.gcp, project.clock, self._groups, self._reservations, project.cluster)
        self._verdicts = Verdicts(self._groups, templates, project.clock, expected)

    @property
    def traits(self) -> Traits:
        """Machines are named one by one."""
        return TRAITS

    @property
    def launcher(self) -> Launcher:
        return self._launcher

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        """One createInstances call in the group that starts the offering (launch.py)."""
        return self._launcher.launch(request, self._templates.template(request.template))

    def waits(self, request: LaunchRequest) -> bool:
        """True if a resize request of the launch waits."""
        return self._launcher.waits(request)

    def withdraw(self, request: LaunchRequest) -> LaunchAnswer:
        """Cancel the launch's resize request."""
        return self._launcher.withdraw(request)

    def describe(self, tags: Mapping[str, str], *, page: str = "") -> InstancePage:
        asked = Tags(self._cluster, tags, self._written)
        tagged = [(one, of) for one in listed(self._gcp, self._cluster) if (of := asked.of(one)) is not None]
        happened = tuple(events(self._gcp)) if tagged else ()
        with understood("instances.aggregatedList"):
            held = self._reservations.of
            found = [instance_of(one, self._gcp.project, happened, tags=of, held=held) for one, of in tagged]
        return InstancePage(tuple(sorted(found, key=lambda one: one.id)))

    def look_up(self, provider_ids: Sequence[str]) -> Mapping[str, Instance]:
        """Machines by their ids, whoever chose their names."""
        return looked_up(self._gcp, self._cluster, provider_ids, held=self._reservations.of)

    def place(self) -> str:
        """The project. Calls cover all its regions."""
        return f"{self._gcp.project}/"

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        return terminate(self._gcp, self._clock, self._cluster, ids)

    def release(self, provider_ids: Sequence[str]) -> None:
        """Delete the names of machines that are gone from groups that would recreate them under these names."""
        release(self._gcp, self._clock, self._groups, self._cluster, provider_ids)

    def kept(self, provider_ids: Sequence[str]) -> tuple[str, ...]:
        """The provider ids whose names a group keeps without a machine."""
        found: set[str] = set()
        for zone, names in by_zone(provider_ids, self._gcp.project).items():
            there = self._without_machine.get(zone, partial(names_without_machine, self._gcp, self._cluster, zone))
            found |= {provider_id(self._gcp.project, zone, name) for name in there.intersection(names)}
        return tuple(one for one in provider_ids if one in found)

    def reservations(self) -> tuple[Reservation, ...]:
        """Reservations and future reservations of the project, and the blocks, sub-blocks and reservations of other
        projects in which a group starts machines."""
        return self._reservations.all(self._started.get("", self._named))

    def _named(self) -> tuple[tuple[Ref, str], ...]:
        groups = self._verdicts.usable_groups()
        return tuple((one.reserved, one.instance_type) for one in groups if one.reserved is not None)

    def offerings(self) -> tuple[OfferingStatus, ...]:
        """The offerings of the groups, with the catalog's prices. Reserved capacity costs nothing more."""
        return tuple(map(_offered, self._verdicts.usable_groups()))

    def template_statuses(self) -> tuple[TemplateStatus, ...]:
        return self._verdicts.all()

    def check(self) -> tuple[Finding, ...]:
        """Check that the project can be called and the groups can be used."""
        return findings(self._gcp, self._verdicts)


def _offered(group: Group) -> OfferingStatus:
    price = Decimal(0) if group.reservation else None
    return OfferingStatus(group.offering, price, region=region_of(group.ref.zone))
