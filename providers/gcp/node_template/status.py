"""The status of a GCPNodeTemplate: its groups and their faults, with the commands that correct them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from providers.contract import Clock, OfferingKey, TemplateFault, TemplateRef, TemplateStatus
from providers.errors import PermissionDeniedError, ProviderError, RefusedError
from providers.gcp.names import Names
from providers.gcp.node_template.groups import Group, Groups, instead, try_it
from providers.gcp.node_template.pools import pool_faults
from providers.gcp.node_template.registered import as_wanted, differences, registered_of
from providers.gcp.node_template.template import GroupTemplate, GroupTemplates, PoolNodes
from providers.gcp.node_template.tpu import topology_of
from providers.registered import Registered, Room

_LIFETIME: Final = timedelta(minutes=5)


class Verdicts:
    """Computes the statuses of templates and caches them for a few minutes."""

    def __init__(
        self, groups: Groups, templates: GroupTemplates, clock: Clock, expected: Callable[[], Iterable[PoolNodes]]
    ) -> None:
        """`expected` returns the properties that plans for CapacityPools assume for their nodes."""
        self._groups = groups
        self._expected = expected
        self._templates = templates
        self._clock = clock
        self._said: dict[TemplateRef, tuple[float, TemplateStatus]] = {}

    def all(self) -> tuple[TemplateStatus, ...]:
        references = self._templates.references()
        self._said = {key: value for key, value in self._said.items() if key in references}
        return tuple(self._of(reference) for reference in references)

    def usable_groups(self) -> Iterator[Group]:
        return (group for group in self.readable_groups() if not group.unsupported)

    def readable_groups(self) -> Iterator[Group]:
        for reference in self._templates.references():
            with suppress(RefusedError):
                found = self._groups.existing(self._templates.template(reference))
                yield from (group for group, _ in found if group is not None)

    def _of(self, reference: TemplateRef) -> TemplateStatus:
        known, now = self._said.get(reference), self._clock.monotonic()
        if known is not None and now - known[0] < _LIFETIME.total_seconds():
            return known[1]
        found = self._judged(reference)
        if all(fault.certain for fault in found.faults):
            self._said[reference] = (now, found)
        return found

    def _judged(self, reference: TemplateRef) -> TemplateStatus:
        try:
            template = self._templates.template(reference)
        except ProviderError as error:
            return TemplateStatus(reference, faults=(_fault("spec", error),))
        faults: list[TemplateFault] = []
        rows: list[dict[str, Any]] = []
        seen: list[Group] = []
        registers: dict[OfferingKey, Registered] = {}
        launched: list[Group] = []
        known = True  # every group was read, or certainly does not exist
        expected = tuple(self._expected())
        for group, missing in self._groups.existing(template):
            if missing is not None:
                fault = _fault("spec", missing)
                known &= fault.certain
                # An error that prevents reading one group prevents reading all of them: it is reported once.
                same = [one for one in faults if (one.kind, one.next_step) == (fault.kind, fault.next_step)]
                faults += [] if same and not fault.certain else [fault]
            if group is None:
                continue
            wrong = [*_of_group(template, group), *self._of_pool(template, group, expected)]
            faults += [fault for fault in wrong if fault not in faults]
            if group.pool:
                nodes = registered_of(group, self._groups.pool(template, group.pool))
                known_of = registers.get(group.offering)
                registers[group.offering] = nodes.beside(known_of) if known_of is not None else nodes
            rows.append(_row(group))
            seen.append(group)
            if not group.unsupported and self._groups.blocked(template, group) is None:
                launched.append(group)
        resolved = {"groups": sorted(rows, key=lambda row: (row["zone"], row["name"]))}
        groups = frozenset(group.offering for group in launched) if known else None
        rooms = FrozenMap(_rooms(launched) if known else {})
        where = tuple(sorted({group.ref.zone for group in seen}))
        nodes_of = FrozenMap(_near(registers, seen, known=known))
        return TemplateStatus(reference, resolved, tuple(faults), where, groups=groups, registers=nodes_of, rooms=rooms)

    def _of_pool(self, template: GroupTemplate, group: Group, expected: Iterable[PoolNodes]) -> Iterator[TemplateFault]:
        if not group.pool:
            return
        pool = self._groups.pool(template, group.pool)
        corrected = as_wanted(template, group, pool, expected)
        faults = pool_faults(pool, hosts=group.hosts, wanted=corrected)
        for fault in (*faults, *differences(template, group, pool, expected, corrected)):
            yield TemplateFault("nodePools", fault.kind, fault.message, fault.next_step)


def _near(
    registers: Mapping[OfferingKey, Registered], seen: Iterable[Group], *, known: bool
) -> dict[OfferingKey, Registered]:
    """The labels and taints of nodes by group.

    A label that is equal on all nodes counts only if all groups of an offering are known: a group without a node pool,
    or one that cannot be read, may be in another place.
    """
    apart = {group.offering for group in seen if not group.pool}
    return {
        key: nodes if known and key not in apart else replace(nodes, same=frozenset())
        for key, nodes in registers.items()
    }


def _rooms(groups: Iterable[Group]) -> dict[OfferingKey, Room]:
    """The free room in groups that are one TPU slice or one NVLink domain.

    There is no limit if groups of one offering differ in that, or in the size of their slices: it is not known which of
    them a launch needs.
    """
    alike: dict[OfferingKey, list[Group]] = {}
    for group in groups:
        alike.setdefault(group.offering, []).append(group)
    found: dict[OfferingKey, Room] = {}
    for offering, same in alike.items():
        hosts = {(group.hosts, topology_of(group.labels) if group.hosts > 1 else "") for group in same}
        if len(hosts) == 1 and same[0].hosts > 1:
            found[offering] = Room(sum(group.hosts for group in same))
        elif all(group.domain for group in same):
            found[offering] = Room(sum(group.domain for group in same))
    return found


def _of_group(template: GroupTemplate, group: Group) -> Iterator[TemplateFault]:
    field = "nodePools" if group.pool else "groups"
    if template.resize_requests and not group.queues and not group.domain and not group.unsupported:
        message = (
            f"group {group.ref}: no trial has started machines in it by a resize request, so those of a gang are "
            "asked for one by one, and deleted where some cannot be had"
        )
        yield TemplateFault(field, "GangsNotTried", message, try_it(template, group))
    if group.replaced and not group.pool:  # GKE updates the groups of node pools
        message = (
            f"group {group.ref}: its update policy is PROACTIVE: once it gets another instance template, Google ends "
            "machines without a drain, and creates others under its own names, which Foreslice does not end"
        )
        yield TemplateFault(field, "ProactiveUpdates", message, group.replaced)
    if group.unsupported:
        yield TemplateFault(field, group.reason, f"group {group.ref}: {group.unsupported}", instead(group))
    if group.unreadable:
        message = f"group {group.ref}: {group.reservation} cannot be read, so nothing is started in it"
        yield TemplateFault(field, "Permission", message, group.unreadable, certain=False)
    try:
        _ = Names("", "", "", "", group.base).width
    except RefusedError as error:
        yield TemplateFault(field, error.code, error.message, error.next_step)


def _row(group: Group) -> dict[str, Any]:
    return {
        "name": group.ref.name,
        "zone": group.ref.zone,
        "instanceType": group.instance_type,
        "capacityType": group.capacity_type.value,
        **({"reservation": group.reservation} if group.reservation else {}),
        "nodePool": group.pool,
        **({"placement": placement} if (placement := _placement(group)) else {}),
    }


def _placement(group: Group) -> str:
    if group.domain:
        return f"one NVLink domain of at most {group.domain} machines"
    return f"all machines in the same {group.distance.lower()}" if group.distance else ""


def _fault(field: str, error: ProviderError) -> TemplateFault:
    certain = isinstance(error, RefusedError) and not isinstance(error, PermissionDeniedError)
    kind = error.code if error.code[:1].isupper() and error.code.isalnum() else error.kind
    return TemplateFault(field, kind, error.message, error.next_step, certain=certain)
