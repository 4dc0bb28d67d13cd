"""Managed instance groups as Compute Engine describes them, and the properties of their machines."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any, Final, TypeVar

from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType
from providers.contract import Clock, OfferingKey, Reservation
from providers.errors import BackoffScope, GoneError, NotInGroupsError, ProviderError, TemplateError
from providers.gcp.names import Names
from providers.gcp.node_template.placement import (
    Placement,
    missing,
    needs_policy,
    policy_of,
    read_distance,
    read_placement,
    remedy,
)
from providers.gcp.node_template.pools import Pool, pool_faults, pool_of
from providers.gcp.node_template.refusal import (
    Refusal,
    in_bulk,
    of_several_kinds,
    preemptible,
    replaced,
    sized_by_google,
)
from providers.gcp.node_template.template import GroupRef, GroupTemplate
from providers.gcp.node_template.tpu import hosts_of, kube_labels, topology_of
from providers.gcp.reserved.capacity import Reservations
from providers.gcp.reserved.parts import Ref, ref_of
from providers.gcp.session import Gcp

# An instance template never changes under its name. The template of a group, and a node pool, are read again.
_LIFETIME: Final = timedelta(minutes=5)
# Several parts and launches of one reconcile search the same groups, and a launch takes seconds. A launch reads the
# group that it chooses again.
_RECONCILE: Final = timedelta(seconds=30)
_MODELS: Final = {
    "SPOT": CapacityType.SPOT,
    "FLEX_START": CapacityType.FLEX_START,
    "STANDARD": CapacityType.ON_DEMAND,
    "": CapacityType.ON_DEMAND,
    "RESERVATION_BOUND": CapacityType.CAPACITY_BLOCK,
}
# Whether other machines start in a reservation is not known before they run.
_AFFINITIES: Final = frozenset({"", "UNSPECIFIED", "NO_RESERVATION", "ANY_RESERVATION", "SPECIFIC_RESERVATION"})
_HELD: Final = frozenset({CapacityType.CAPACITY_BLOCK, CapacityType.RESERVED})
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Group:
    """A group and what it starts. `unsupported` is the reason why nothing is launched in it, "" if launches are
    possible; `reason` is the reason of the condition, and `step` the correction, if it is more than to name another
    group. `run_duration`: of flex-start machines. `unreadable`: the correction if its reservation cannot be read.
    `domain`: the maximum of machines if all are in one NVLink domain, else 0. `distance`: the SUBBLOCK, BLOCK or
    CLUSTER that its machines share, by its policy. `queues`: it takes resize requests, as far as is known.
    `replaced`: Google replaces its machines unless this command is run. `accelerators`: those that its instance
    template adds to the machine type."""

    ref: GroupRef
    base: str
    size: int
    instance_type: str
    capacity_type: CapacityType
    pool: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    unsupported: str = ""
    reason: str = "NotSupported"
    step: str = ""
    run_duration: timedelta | None = None
    reservation: str = ""
    reserved: Ref | None = None
    unreadable: str = ""
    domain: int = 0
    distance: str = ""
    queues: bool = True
    replaced: str = ""
    accelerators: tuple[str, ...] = ()

    @property
    def hosts(self) -> int:
        """The number of machines that exist together: the hosts of one TPU slice; 1 for all other groups."""
        return hosts_of(self.instance_type, topology_of(self.labels))

    def serves(self, offering: OfferingKey, topology: str = "") -> bool:
        """True if the group starts machines of the offering, and slices of `topology` if the offering is a slice.

        A CapacityBlock may hold any kind of reservation.
        """
        kinds = _HELD if self.reservation else {self.capacity_type}
        return (
            not self.unsupported
            and offering.instance_type == self.instance_type
            and offering.zone in (self.ref.zone, ANY_ZONE)
            and offering.capacity_type in kinds
            and offering.reservation == self.reservation
            and (topology if hosts_of(self.instance_type, topology) > 1 else "") == self._slice
        )

    @property
    def _slice(self) -> str:
        return topology_of(self.labels) if self.hosts > 1 else ""

    @property
    def offering(self) -> OfferingKey:
        return OfferingKey(self.instance_type, self.ref.zone, self.capacity_type, self.reservation)


class MissingGroupError(TemplateError):
    """A group or node pool that the template lists does not exist. Launches in the other groups continue."""

    scope = BackoffScope.OFFERING


class Groups:
    def __init__(self, gcp: Gcp, clock: Clock, reservations: Reservations) -> None:
        self._gcp = gcp
        self._reservations = reservations
        self._clock = clock
        self._known: dict[object, tuple[float, Any]] = {}

    def serving(self, template: GroupTemplate, offering: OfferingKey, topology: str = "") -> tuple[Group, ...]:
        """The group that starts such machines. For TPU slices and NVLink domains all such groups, since each has
        limited room.

        Raises NotInGroupsError if no group starts them, MissingGroupError if a group that is gone might have started
        them, and TemplateError if launches are blocked in all of them.
        """
        groups, gone = self._there(template)
        chosen: list[Group] = []
        for group in (one for one in groups if one.serves(offering, topology)):
            try:
                now = self._again(template, group)
            except MissingGroupError as error:
                gone.append(error)
                continue
            chosen += [now] if now.serves(offering, topology) else []
        if gone and not chosen:
            raise gone[0]
        if not chosen:
            known = ", ".join(f"{g.ref} ({g.unsupported or g.offering})" for g in groups)
            wanted = f"{offering} {topology}".rstrip()
            raise NotInGroupsError(f"no group of GCPNodeTemplate {template.name} starts {wanted}: {known}")
        judged = [(group, self.blocked(template, group)) for group in chosen]
        usable = tuple(group for group, error in judged if error is None)
        errors = [error for _, error in judged if error is not None]
        if not usable:
            raise errors[0]
        return usable if usable[0].hosts > 1 or usable[0].domain else usable[:1]

    def _again(self, template: GroupTemplate, group: Group) -> Group:
        """The current state of the group. Raises MissingGroupError if it is gone."""
        pool = self.pool(template, group.pool) if group.pool else None
        return _for(template, self.now(group.ref, pool=pool))

    def blocked(self, template: GroupTemplate, group: Group) -> TemplateError | None:
        """The reason why nothing is launched in a supported group: something else sizes its node pool, or its base
        name leaves no room for the names of machines."""
        try:
            _ = Names("", "", "", "", group.base).width
        except TemplateError as error:
            return error
        if not group.pool:
            return None
        for fault in pool_faults(self.pool(template, group.pool), hosts=group.hosts):
            if fault.blocking:
                return TemplateError(fault.message, code=fault.kind, next_step=fault.next_step)
        return None

    def of(self, template: GroupTemplate) -> Sequence[Group]:
        """The current groups of a template, without groups that are gone. Raises ProviderError if one of them cannot
        be read: a launch may have begun in it."""
        return self._there(template)[0]

    def _there(self, template: GroupTemplate) -> tuple[list[Group], list[MissingGroupError]]:
        found: list[Group] = []
        gone: list[MissingGroupError] = []
        for group, error in self.existing(template):
            if isinstance(error, MissingGroupError):
                gone.append(error)
            elif error is not None:
                raise error
            elif group is not None:
                found.append(group)
        return found, gone

    def existing(self, template: GroupTemplate) -> Iterator[tuple[Group | None, ProviderError | None]]:
        """For each group of the template the group, or the error that prevents reading it."""
        for name in template.node_pools:
            try:
                pool = self.pool(template, name)
            except ProviderError as error:
                yield None, error
                continue
            yield from (self._tried(template, ref, pool) for ref in pool.groups)
        yield from (self._tried(template, ref, None) for ref in template.groups)

    def _tried(
        self, template: GroupTemplate, ref: GroupRef, pool: Pool | None
    ) -> tuple[Group | None, ProviderError | None]:
        try:
            return _for(template, self.group(ref, pool=pool)), None
        except ProviderError as error:
            return None, error

    def pool(self, template: GroupTemplate, name: str) -> Pool:
        """A node pool. Raises TemplateError if it does not exist, or if Google sizes the whole cluster (Autopilot)."""
        place = f"locations/{template.location}/clusters/{template.cluster}"
        autopilot = self._remembered(("cluster", place), lambda: self._autopilot(place))
        if autopilot:
            step = "use a Standard cluster: on Autopilot Google alone makes nodes"
            raise TemplateError(f"cluster {template.cluster} is an Autopilot cluster", code="Autopilot", next_step=step)
        return self._remembered(("pool", place, name), lambda: self._read_pool(template, place, name))

    def group(self, ref: GroupRef, *, pool: Pool | None = None) -> Group:
        """A group, read at most half a minute ago. Raises TemplateError if it does not exist."""
        name = pool.name if pool is not None else ""
        return self._remembered(("group", ref, name), lambda: self.now(ref, pool=pool), _RECONCILE)

    def now(self, ref: GroupRef, *, pool: Pool | None = None) -> Group:
        """The current state of a group. Raises TemplateError if it does not exist."""
        found = self._manager(ref)
        url = found.instance_template or next((one.instance_template for one in found.versions), "")
        properties = self._remembered(("template", url), lambda: self._properties(ref, url))
        model, project = properties.scheduling.provisioning_model, self._gcp.project
        affinity = properties.reservation_affinity
        reserved = _reserved(ref, affinity, project)
        machine_type = properties.machine_type.rpartition("/")[2]
        held = self._reservations.of(reserved, machine_type) if reserved is not None else None
        capacity = held.capacity_type if held is not None else _MODELS.get(model, CapacityType.ON_DEMAND)
        placement = self._placement(ref, found, pool, machine_type)
        name = pool.name if pool is not None else ""
        unfit = self._unfit(reserved, machine_type)
        refusal = _refused(model, affinity, reserved, held) or unfit or in_bulk(found, ref, name, url)
        refusal = refusal or of_several_kinds(found) or sized_by_google(found, ref, project) or placement.refusal
        refusal = refusal or preemptible(properties.scheduling)
        return Group(
            ref=ref,
            base=found.base_instance_name,
            size=found.target_size,
            instance_type=machine_type,
            capacity_type=capacity,
            pool=name,
            labels=kube_labels(properties.metadata),
            unsupported=refusal.why if refusal is not None else "",
            reason=refusal.reason if refusal is not None else "NotSupported",
            step=refusal.step if refusal is not None else "",
            reservation=held.id if held is not None else "",
            reserved=reserved,
            unreadable=self._reservations.unreadable(reserved) if reserved is not None else "",
            domain=placement.domain,
            distance=placement.distance,
            replaced=replaced(found, ref, project),
            accelerators=tuple(one.accelerator_type.rpartition("/")[2] for one in properties.guest_accelerators),
        )

    def _manager(self, ref: GroupRef) -> Any:
        try:
            named = {"zone": ref.zone, "instance_group_manager": ref.name}
            return self._gcp.call("instanceGroupManagers.get", about=str(ref), **named)
        except GoneError as error:
            step = "correct spec.instanceGroups or spec.nodePools of the GCPNodeTemplate, or create the group"
            raise MissingGroupError(f"there is no instance group {ref}", code="NoGroup", next_step=step) from error

    def _unfit(self, reserved: Ref | None, machine_type: str) -> Refusal | None:
        why = self._reservations.refuses(reserved, machine_type) if reserved is not None else ""
        step = "use a node pool with another machine type, or with another --reservation"
        return Refusal(why, step=step) if why else None

    def forget(self) -> None:
        """Read everything again."""
        self._known.clear()

    def _properties(self, ref: GroupRef, url: str) -> Any:
        named = dict(pairwise(url.split("/")))  # a template may belong to another project
        project = {"project": named["projects"]} if "projects" in named else {}
        asked = {"about": str(ref), "instance_template": named["instanceTemplates"], **project}
        if "regions" in named:
            return self._gcp.call("regionInstanceTemplates.get", region=named["regions"], **asked).properties
        return self._gcp.call("instanceTemplates.get", **asked).properties

    def _placement(self, ref: GroupRef, manager: Any, pool: Pool | None, machine_type: str) -> Placement:
        """The placement of its machines, with the commands that correct a wrong policy."""
        name, needed = policy_of(manager, pool), needs_policy(machine_type)
        found = missing(machine_type) if needed else Placement()
        if name:
            read = read_placement if needed else read_distance
            found = self._remembered(("policy", ref.zone, name, needed), lambda: read(self._gcp, name, ref))
        if found.refusal is None or found.refusal.step:
            return found
        step = remedy(ref, pool, project=self._gcp.project, size=manager.target_size)
        return replace(found, refusal=replace(found.refusal, step=step))

    def _autopilot(self, place: str) -> bool:
        try:
            found = self._gcp.container("container.clusters.get", place)
        except GoneError as error:
            step = (
                "correct spec.cluster of the GCPNodeTemplate (name and location) or the project: "
                f"gcloud container clusters list --project {self._gcp.project}"
            )
            raise TemplateError(f"there is no GKE cluster {place}", code="NoCluster", next_step=step) from error
        return bool((found.get("autopilot") or {}).get("enabled"))

    def _read_pool(self, template: GroupTemplate, place: str, name: str) -> Pool:
        try:
            found = self._gcp.container("container.nodePools.get", f"{place}/nodePools/{name}")
        except GoneError as error:
            step = (
                "correct spec.nodePools of the GCPNodeTemplate, or create the node pool; those that exist: "
                f"gcloud container node-pools list --cluster {template.cluster} --location {template.location} "
                f"--project {self._gcp.project}"
            )
            message = f"there is no node pool {name!r} in cluster {template.cluster}"
            raise MissingGroupError(message, code="NoNodePool", next_step=step) from error
        return pool_of(template, name, found, project=self._gcp.project)

    def _remembered(self, key: object, read: Callable[[], V], lifetime: timedelta = _LIFETIME) -> V:
        known, now = self._known.get(key), self._clock.monotonic()
        if known is not None and now - known[0] < lifetime.total_seconds():
            value: V = known[1]
            return value
        value = read()
        self._known[key] = (now, value)
        return value


def _for(template: GroupTemplate, group: Group) -> Group:
    """The group as the template allows its use. Flex-start machines and slices of several hosts need resize
    requests, which Google does not document for GKE's groups. A trial must have tested them there; gangs use them
    only after a trial."""
    flexible = group.capacity_type == CapacityType.FLEX_START
    untried = not template.on_trial and group.ref not in template.tried
    group = replace(group, queues=not group.domain and not (untried and group.pool))
    if group.unsupported or (not flexible and group.hosts == 1):
        return group
    if flexible and template.flex_start is None:
        why = "its machines are flex-start, and the GCPNodeTemplate does not say how long they shall run"
        return replace(
            group, unsupported=why, step="set spec.flexStart.runDuration of the GCPNodeTemplate (docs/gcp.md)"
        )
    if untried:
        why = "no trial has started machines in it by a resize request"
        return replace(group, unsupported=why, step=try_it(template, group))
    return replace(group, run_duration=template.flex_start) if flexible else group


def try_it(template: GroupTemplate, group: Group) -> str:
    """The command of the trial that tests whether a group takes resize requests."""
    of = f"--template {template.name} --type {group.instance_type}"
    return f"foreslice gcp trial {of} --resize-requests --max-usd DOLLARS --yes"


def instead(group: Group) -> str:
    """The next step for a group in which nothing is launched."""
    return group.step or "name a group that starts on-demand or Spot machines, or those of a reservation (docs/gcp.md)"


def _reserved(ref: GroupRef, affinity: Any, project: str) -> Ref | None:
    """The reservation that the machines of a group start in; None if they need none."""
    if affinity.consume_reservation_type != "SPECIFIC_RESERVATION" or not affinity.values:
        return None
    return ref_of(ref.zone, affinity.values[0], project)


def _refused(model: str, affinity: Any, reserved: Ref | None, held: Reservation | None) -> Refusal | None:
    why = _unsupported(model, affinity, reserved, held)
    lost = reserved is not None and held is None
    step = "name a node pool or group whose reservation exists: gcloud compute reservations list" if lost else ""
    return Refusal(why, step=step) if why else None


def _unsupported(model: str, affinity: Any, reserved: Ref | None, held: Reservation | None) -> str:
    if model not in _MODELS:
        return f"the provisioning model {model} is not supported yet"
    if model == "SPOT" and reserved is not None:
        return "Spot machines of a reservation do not exist"
    if model == "FLEX_START" and reserved is not None:
        return "flex-start machines of a reservation do not exist"
    if affinity.consume_reservation_type not in _AFFINITIES:
        return f"the reservation affinity {affinity.consume_reservation_type} is not supported yet"
    if reserved is not None and len(affinity.values) > 1:
        return "it names more than one reservation"
    if reserved is not None and held is None:
        return f"{reserved.id} does not exist, or cannot be read"
    if model == "RESERVATION_BOUND" and reserved is None:
        return "its machines are bound to a reservation, and it names none"
    return ""
