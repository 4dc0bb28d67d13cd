"""The findings of `foreslice doctor`: one line for each check, with the next step.

It only phrases what the checks found; an item is data, so that programs read the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum

from autoscaler.checks.pool_condition import PoolCondition
from autoscaler.checks.publishing import devices_handed_out_twice, silent_drivers, without_gpudirect
from autoscaler.checks.rights import Right
from autoscaler.dra.claims.node_allocatable import NODE_ALLOCATABLE_GATE
from autoscaler.model.reason import Code
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.supply.drivers import PUBLISHING_TEMPLATES
from autoscaler.report.checks_text import verdict_of
from autoscaler.report.reasons import text_of
from autoscaler.report.tables.plan_tables import Table
from instance_catalog.dataclass import dataclass
from instance_catalog.diagnostic import Diagnostic, Severity
from instance_catalog.kubernetes.feature_gates import feature_gates_text


class Level(Enum):
    """The result of an item."""

    OK = "ok"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Item:
    """One result, good or bad. `area` groups items; `message` is the finding, with the next step if it is bad."""

    level: Level
    area: str
    message: str


@dataclass(frozen=True, slots=True)
class GatesTried:
    """Feature gates that could not be tried, with the reason, and those that differ from the assumption."""

    unproven: Mapping[str, str]
    contradicted: Mapping[str, bool]


NO_GATES = GatesTried({}, {})


def items_of(
    snapshot: Snapshot,
    found: Iterable[PoolCondition],
    *,
    installed: bool,
    missing: Sequence[Right] | None,
    needed: int,
    problems: Iterable[tuple[str, str, Diagnostic]],
    gates: GatesTried = NO_GATES,
) -> tuple[Item, ...]:
    """All results, in reading order. `missing` is None if the rights could not be checked.

    `gates`: the results of trying them.
    """
    return (
        *_versions(snapshot, gates, installed=installed),
        *_drivers(snapshot),
        *_device_plugins(snapshot),
        *_autoscalers(snapshot),
        *_pools(snapshot, found),
        *_unreadable(snapshot),
        *_rights(missing, needed),
        *_objects(problems),
    )


def _versions(snapshot: Snapshot, tried: GatesTried, *, installed: bool) -> Iterator[Item]:
    profile = snapshot.profile
    served = ", ".join(profile.served)
    yield Item(Level.OK, "kubernetes", f"decided as {profile.name}; serves resource.k8s.io {served}")
    if profile.note:
        yield Item(Level.WARNING, "kubernetes", profile.note)
    if profile.proven:
        gates = feature_gates_text(profile, proven=True)
        yield Item(Level.OK, "kubernetes", f"feature gates verified by server-side dry runs: {gates}")
    gates = feature_gates_text(profile, proven=False)
    yield Item(Level.INFO, "kubernetes", f"feature gates are assumed, give --feature-gates where they differ: {gates}")
    for why in dict.fromkeys(tried.unproven.values()):
        names = ", ".join(name for name, reason in tried.unproven.items() if reason == why)
        yield Item(Level.INFO, "kubernetes", f"{names} could not be tried: {why}")
    if tried.contradicted:
        flag = ",".join(f"{name}={str(on).lower()}" for name, on in tried.contradicted.items())
        text = f"feature gates differ from those that a controller assumes: set cluster.featureGates to {flag}"
        yield Item(Level.WARNING, "kubernetes", text)
    yield from _stored_amounts(snapshot)
    if not installed:
        step = "the rest of this page holds without it; `foreslice plan --live` needs no installation"
        yield Item(Level.INFO, "installation", f"the custom resources of foreslice.dev are not installed: {step}")


def _stored_amounts(snapshot: Snapshot) -> Iterator[Item]:
    """The drivers whose devices take of their node, if this is assumed not to count: an API server that keeps the field
    has its gate on, or had it on when the field was written."""
    profile = snapshot.profile
    known = profile.scheduler.node_allocatable_of_devices and NODE_ALLOCATABLE_GATE not in profile.proven
    taking = {slice_.driver for slice_ in snapshot.slices if any(device.node_allocatable for device in slice_.devices)}
    if known and taking and not profile.devices_take_node_amounts:
        which = f"ResourceSlices of {', '.join(sorted(taking))} have nodeAllocatableResources, which are ignored"
        step = f"if the cluster has the gate on, set cluster.featureGates to {NODE_ALLOCATABLE_GATE}=true"
        yield Item(Level.WARNING, "kubernetes", f"{which}: {step}")


def _drivers(snapshot: Snapshot) -> Iterator[Item]:
    running = [found for found in snapshot.daemon_sets if found.drivers.profiles]
    if not running and snapshot.pools and all(p.node_template.kind in PUBLISHING_TEMPLATES for p in snapshot.pools):
        yield Item(Level.OK, "drivers", "none is needed: the providers of all pools publish ResourceSlices themselves")
    elif not running:
        step = "install a driver, such as dra-driver-nvidia-gpu; without one no node publishes devices"
        yield Item(Level.ERROR, "drivers", f"no DaemonSet is a DRA driver that is known: {step}")
    for found in running:
        yield Item(Level.OK, "drivers", f"DaemonSet {found.key} runs {found.drivers.text}")
        yield from (Item(Level.WARNING, "drivers", note) for note in found.drivers.notes)
    for reason in silent_drivers(snapshot):
        yield Item(Level.ERROR, "drivers", text_of(reason))
    for reason in without_gpudirect(snapshot):
        yield Item(Level.ERROR, "drivers", text_of(reason))
    if not snapshot.classes:
        step = "the driver's chart installs them; a claim names one"
        yield Item(Level.ERROR, "drivers", f"there is no DeviceClass: {step}")


def _device_plugins(snapshot: Snapshot) -> Iterator[Item]:
    for found in snapshot.daemon_sets:
        if found.device_plugin:
            text = f"DaemonSet {found.key} is a device plugin for the devices of {found.device_plugin}"
            yield Item(Level.INFO, "device plugin", text)
    for reason in devices_handed_out_twice(snapshot):
        yield Item(Level.ERROR, "device plugin", text_of(reason))


def _autoscalers(snapshot: Snapshot) -> Iterator[Item]:
    for other in snapshot.autoscalers:
        serves = "launches for pods with claims, too" if other.claims else "leaves pods with claims alone"
        release = f" {other.version}" if other.version else ""
        level = Level.WARNING if other.claims else Level.OK
        yield Item(level, "autoscalers", f"{other.kind.value}{release} ({other.key}) {serves}")
    if not snapshot.autoscalers:
        text = "no Karpenter and no Cluster Autoscaler runs as a Deployment; managed ones cannot be seen from here"
        yield Item(Level.OK, "autoscalers", text)


def _pools(snapshot: Snapshot, found: Iterable[PoolCondition]) -> Iterator[Item]:
    modes = {pool.name: pool.mode.value for pool in snapshot.pools}
    for finding in found:
        _, reason, message = verdict_of(finding)
        text = f"{finding.type.value} ({reason}): {message}"
        yield Item(_level(finding), f"pool {finding.pool} ({modes[finding.pool]})", text)


def _level(finding: PoolCondition) -> Level:
    """The level of a finding: nodes that others have started keep nothing from working."""
    if finding.good:
        return Level.OK
    return Level.WARNING if {reason.code for reason in finding.reasons} == {Code.FOREIGN_NODES} else Level.ERROR


def _rights(missing: Sequence[Right] | None, needed: int) -> Iterator[Item]:
    if missing is None:
        step = "ask for yourself, or with a role that may create subjectaccessreviews"
        yield Item(Level.WARNING, "rights", f"the API server did not return the rights: {step}")
    elif missing:
        listed = ", ".join(str(right) for right in missing)
        step = "grant them, deploy/manifests/rbac.yaml has the roles"
        yield Item(Level.ERROR, "rights", f"{len(missing)} of {needed} are missing; {step}: {listed}")
    else:
        yield Item(Level.OK, "rights", f"all {needed} that the pools' modes need are granted")


def _unreadable(snapshot: Snapshot) -> Iterator[Item]:
    for kind, right in snapshot.unreadable.items():
        text = f"{kind} objects cannot be read; decisions that depend on them are unknown: grant {right}"
        yield Item(Level.WARNING, "rights", text)


def _objects(problems: Iterable[tuple[str, str, Diagnostic]]) -> Iterator[Item]:
    for kind, key, problem in problems:
        level = Level.ERROR if problem.severity is Severity.ERROR else Level.WARNING
        yield Item(level, f"{kind} {key}", str(problem))


def doctor_table(items: Iterable[Item]) -> Table:
    return Table("", ("level", "area", "found"), tuple((item.level.value, item.area, item.message) for item in items))
