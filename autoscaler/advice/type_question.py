"""Explains why a plan uses an instance type for a pod or does not: every step of the decision, with its facts."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal

from autoscaler.cel.common.outcome import Outcome
from autoscaler.cel.program import Program, compile_selector
from autoscaler.lint.devices.effort import Effort, EffortExceededError
from autoscaler.lint.devices.offers import Offer, Specimen, specimens
from autoscaler.lint.devices.readings import readings
from autoscaler.lint.expressions import conditions
from autoscaler.model.plan import Considered, ConsideredOutcome, Placement, Plan, Target
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef
from autoscaler.model.reason import Code
from autoscaler.model.resource_claim import DeviceRequest
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.demand.scope import pools_of
from autoscaler.planning.planner import plan_for
from autoscaler.planning.policy import Policy
from autoscaler.planning.supply.candidates import every_candidate, refusals
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.drivers.profile import DriverProfileError, parse_driver_set
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.prediction.predict import predict, unpredictable
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

_EVERYTHING = 1_000_000
_SELECTING = frozenset({Code.SELECTOR_FALSE, Code.TOO_FEW_DEVICES, Code.RUNTIME_ATTRIBUTE, Code.CATALOG_UNKNOWN})


@dataclass(frozen=True, slots=True)
class PoolAnswer:
    """The answer of one pool about the type: the capacity types that it buys of those that are sold, the requirements
    that exclude it, or that no driver of the pool has devices on it."""

    pool: str
    implicit: bool
    sold: tuple[str, ...]
    bought: tuple[str, ...]
    refused_by: tuple[Requirement, ...] = ()
    drivers: bool = True


@dataclass(frozen=True, slots=True)
class DeviceAnswer:
    """One condition of a selector on the devices of the type: how many meet it, and what it reads of the others."""

    request: str
    condition: str
    met: int
    devices: int
    unknown: bool
    values: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class TypeAnswer:
    """`considered` are the offerings of the type that pools admit, with the verdict for the pod."""

    pod: str
    instance_type: InstanceType
    pools: tuple[PoolAnswer, ...]
    considered: tuple[Considered, ...]
    devices: tuple[DeviceAnswer, ...]
    chosen: OfferingRef | None
    placement: Placement | None

    @property
    def is_chosen(self) -> bool:
        return self.chosen is not None and self.chosen.instance_type == self.instance_type.name

    @property
    def cheapest(self) -> Considered | None:
        """The cheapest offering that fits and may be bought."""
        fits = [e for e in self.considered if e.outcome.fits and not _bars(e)]
        return min(fits, key=_cost, default=None)

    @property
    def dearer(self) -> Decimal | None:
        """The additional cost per hour compared with the chosen one."""
        best = self.cheapest
        if best is None or self.chosen is None or best.offering.usd_per_hour is None:
            return None
        return best.offering.usd_per_hour - (self.chosen.usd_per_hour or Decimal(0))


def _cost(entry: Considered) -> tuple[bool, Decimal]:
    price = entry.offering.usd_per_hour
    return (price is None, price or Decimal(0))


def _bars(entry: Considered) -> bool:
    """True if something keeps an offering that fits from being bought: of the chosen ones the reason praises."""
    return entry.outcome is ConsideredOutcome.FITS and bool(entry.reasons)


def ask_type(
    instance_type: InstanceType,
    pod: Pod,
    snapshot: Snapshot,
    catalog: Catalog,
    plan: Plan,
    policy: Policy,
    now: datetime,
) -> TypeAnswer:
    """The steps for one pod. It plans once more, for this pod and with this type only."""
    only = replace(catalog, types=FrozenMap({instance_type.name: instance_type}))
    considered = _considered(instance_type, pod, snapshot, only, plan, policy, now)
    launch, placement = _fate(pod, plan)
    return TypeAnswer(
        pod.key,
        instance_type,
        tuple(_pools(instance_type, snapshot, only, policy, now, considered)),
        considered,
        tuple(_devices(instance_type, pod, snapshot, considered)),
        launch,
        placement,
    )


def _fate(pod: Pod, plan: Plan) -> tuple[OfferingRef | None, Placement | None]:
    placement = next((p for p in plan.placements if p.pod == pod.key), None)
    if placement is None or placement.target is not Target.NEW:
        return None, placement
    return next((n.offering for n in plan.launches if n.name == placement.node), None), placement


def _pools(
    instance_type: InstanceType,
    snapshot: Snapshot,
    only: Catalog,
    policy: Policy,
    now: datetime,
    considered: tuple[Considered, ...],
) -> Iterator[PoolAnswer]:
    found = every_candidate(snapshot, only, policy, now=now)
    sold = tuple(kind.value for kind in instance_type.capacity_types)
    for pool in pools_of(snapshot):
        own = [candidate for candidate in found if candidate.pool.name == pool.name]
        bought = tuple(kind for kind in sold if kind in (policy.where.capacity_types or pool.capacity_types))
        refused = [refusals(candidate) for candidate in own]
        always = () if not refused or not all(refused) else min(refused, key=len)
        # A plan knows what the pod asks of device plugins, so it may offer the type without any driver.
        offered = bool(own) or any(entry.pool == pool.name for entry in considered)
        yield PoolAnswer(pool.name, pool.implicit, sold, bought, always, drivers=offered or not bought)


def _considered(
    instance_type: InstanceType,
    pod: Pod,
    snapshot: Snapshot,
    only: Catalog,
    plan: Plan,
    policy: Policy,
    now: datetime,
) -> tuple[Considered, ...]:
    """As the plan saw them, which knows what else it buys; else as a plan for this pod alone sees them."""
    seen = [
        entry
        for demand in plan.demands
        if pod.key in demand.pods
        for entry in demand.considered
        if entry.offering.instance_type == instance_type.name
    ]
    known = {(entry.pool, entry.drivers, entry.offering) for entry in seen}
    mates = [p for p in snapshot.pods if p.node_name is None and set(claim_keys(p)) & set(claim_keys(pod))]
    alone = replace(
        snapshot,
        pods=tuple(replace(p, gang=None) for p in dict.fromkeys((pod, *mates))),
        nodes=(),
        provisioned=(),
        slices=(),
    )
    thorough = replace(policy, considered=_EVERYTHING, shown_fits=_EVERYTHING, explains=False)
    again = plan_for(alone, only, thorough, now)
    seen += [
        _as_other(entry)
        for demand in again.demands
        if pod.key in demand.pods
        for entry in demand.considered
        if (entry.pool, entry.drivers, entry.offering) not in known
    ]
    return tuple(seen)


def _as_other(entry: Considered) -> Considered:
    """Among one type the best is always chosen; that says nothing about the plan."""
    return (
        replace(entry, outcome=ConsideredOutcome.FITS, reasons=(), nodes=0)
        if entry.outcome is ConsideredOutcome.CHOSEN
        else entry
    )


def _devices(
    instance_type: InstanceType, pod: Pod, snapshot: Snapshot, considered: tuple[Considered, ...]
) -> Iterator[DeviceAnswer]:
    """The conditions of the pod's selectors, where one of them decides, on the devices of the plainest drivers."""
    deciding = [entry for entry in considered if any(reason.code in _SELECTING for reason in entry.reasons)]
    if not deciding or any(entry.outcome.fits for entry in considered):
        return
    try:
        drivers = parse_driver_set(",".join(deciding[0].drivers), custom=instance_type.custom_drivers)
    except DriverProfileError:
        return
    if unpredictable(instance_type, drivers) is not None:
        return
    slices = predict(instance_type, drivers, kubernetes=snapshot.profile)
    kinds = specimens((Offer(instance_type.name, drivers.text, slices),), snapshot.profile)
    effort = Effort()
    for claim, request in _requests(pod, snapshot):
        classes = [c for c in snapshot.classes if c.name == request.device_class]
        of_class = [s.expression for c in classes for s in c.selectors if s.expression]
        try:
            ours = [kind for kind in kinds if all(_says(text, kind, snapshot, effort)[0] for text in of_class)]
            own = [s.expression for s in request.selectors if s.expression]
            for text in (part for expression in own for part in conditions(expression, snapshot.profile)):
                answers = [(kind, *_says(text, kind, snapshot, effort)) for kind in ours]
                failing = next((kind for kind, met, _ in answers if not met), None)
                program = compile_selector(text, snapshot.profile)
                values = readings(failing.view, program.reads) if failing and isinstance(program, Program) else ()
                yield DeviceAnswer(
                    f"claim {claim}, request {request.name}",
                    text,
                    sum(kind.total for kind, met, _ in answers if met),
                    sum(kind.total for kind in ours),
                    any(unknown for _, _, unknown in answers),
                    values,
                )
        except EffortExceededError:
            return


def _says(text: str, kind: Specimen, snapshot: Snapshot, effort: Effort) -> tuple[bool, bool]:
    """(met, unknown)."""
    program = compile_selector(text, snapshot.profile)
    if not isinstance(program, Program):
        return False, False
    outcome = effort.evaluate(program, kind.view).outcome
    return outcome is Outcome.TRUE, outcome is Outcome.UNKNOWN


def _requests(pod: Pod, snapshot: Snapshot) -> Iterator[tuple[str, DeviceRequest]]:
    for key in claim_keys(pod):
        claim = snapshot.claims.get(key)
        yield from ((key, request) for request in claim.exact_requests) if claim else ()
