"""Finds device properties that a claim requests and no offering has, with the nearest value: 500Gi of memory, a typing
error in a name.

It returns codes and facts; report/ creates the text. It has no influence on the plan.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Final, TypeAlias, TypeVar

from autoscaler.cel.common.evaluation import Account, BudgetSpentError, on_account
from autoscaler.cel.interpreter.demands import Demand
from autoscaler.cel.interpreter.device import split_name
from autoscaler.cel.program import demands_of
from autoscaler.dra.claims.extended_resources import extended_resource_classes
from autoscaler.model.device_class import Selector
from autoscaler.model.reason import NO_SUBJECT, Code, Reason, Subject
from autoscaler.model.resource_claim import Allocation, DeviceRequest, FirstAvailable, Request, ResourceClaim
from autoscaler.planning.demand.demand import claim_keys
from autoscaler.planning.demand.scope import IMPLICIT, requested_resources
from autoscaler.planning.placement.packing_input import PackingInput
from autoscaler.planning.supply.remembered import LastAnswers, Same
from instance_catalog.dataclass import replace
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.kubernetes.quantity import Quantity, QuantityError
from instance_catalog.kubernetes.resource_slice import Device, RuntimeOnly
from instance_catalog.prediction.predict import at_most
from instance_catalog.spelling import completed
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import InstanceType

V = TypeVar("V")
Published: TypeAlias = tuple[InstanceType, str, Device]  # with the name of the driver
# The price of one value: a lookup among the known values, and a comparison with similar ones.
_LOOKED_UP: Final = 25
_COMPARED: Final = 500
_INTERFACE = "ifName"
_KIND = "type"
_MIG_PROFILE: Final = re.compile(r"(\d+)g\.(\d+)gb")
_GI = Quantity.parse("1Gi")


class _Offered:
    """The published devices of all offerings, read once for each name: thousands of pods may request different
    values of it."""

    def __init__(self, devices: Iterable[Published]) -> None:
        self._devices = list(devices)
        self.drivers: Final = frozenset(driver for _, driver, _ in self._devices)
        self._names = frozenset(
            name for _, _, device in self._devices for name in (*device.attributes, *device.capacity)
        )
        self._texts: dict[tuple[str, ...], Mapping[str, InstanceType] | None] = {}
        self._largest: dict[tuple[str, ...], tuple[Quantity, InstanceType] | None] = {}

    def texts(self, demand: Demand) -> Mapping[str, InstanceType] | None:
        """All values of the attribute, with a type that has it; None if one is not known at all."""
        if not self._published(demand):
            return {}
        if demand.path not in self._texts:
            self._texts[demand.path] = _texts(self._devices, demand)
        return self._texts[demand.path]

    def largest_below(self, demand: Demand) -> tuple[Quantity, InstanceType] | None:
        """The largest possible capacity, if it is known and less than requested."""
        try:
            wanted = Quantity.parse(demand.wanted)
        except QuantityError:
            return None
        if not self._published(demand):
            return None
        if demand.path not in self._largest:
            self._largest[demand.path] = _largest(self._devices, demand)
        best = self._largest[demand.path]
        return best if best is not None and best[0] < wanted else None

    def exceeded(self, demand: Demand) -> bool:
        """True if some devices publish the requested amount, but no device matches the request."""
        if demand.path[0] == "capacity":
            return self.largest_below(demand) is not None
        known = self.texts(demand)
        return known is not None and len(known) > 0 and demand.wanted not in known

    def _published(self, demand: Demand) -> bool:
        _, domain, name = demand.path
        return name in self._names or f"{domain}/{name}" in self._names


_MOST: Final = LastAnswers[_Offered]()
_ON_OFFER: Final = LastAnswers[_Offered]()


def nothing_has(packing: PackingInput, item: int) -> Iterator[Reason]:
    """One reason for each value that the class's claims request and no offered device has.

    Before them, one for each DeviceClass of which it is not known what devices have. Only for a class that fits
    nowhere, which pays for it: there are no further reasons once its share is used up. Of requests with alternatives
    the values are left out, because none of them must be met.
    """
    keys = dict.fromkeys(key for pod in packing.classes[item].sample.pods for key in claim_keys(pod))
    for key in keys:
        claim = packing.snapshot.claims.get(key)
        for request in claim.requests if claim else ():
            subject = Subject.claim(key, request.name)
            if foreign := tuple(_not_known(packing, item, request, subject)):
                yield from foreign
                continue
            demands = _paid(packing, item, request.selectors) if isinstance(request, DeviceRequest) else ()
            yield from filter(None, (_unmet(packing, demand, subject) for demand in demands))


def leaves_open(reason: Reason) -> bool:
    """True if it says that what devices of a class have is known neither of nodes that are there nor of new ones."""
    return "missing_class" in reason.detail or (reason.code is Code.NOT_PREDICTED and "nodes" not in reason.detail)


def _not_known(packing: PackingInput, item: int, request: Request, subject: Subject) -> Iterator[Reason]:
    """One reason for the classes that are not in the files, without which kube-scheduler tries no alternative, and one
    for each whose driver is not predicted, if there is no other alternative."""
    known = {found.name for found in packing.snapshot.classes} if packing.snapshot.from_files else None
    names = dict.fromkeys(each.device_class for each in request.alternatives)
    missing = [name for name in names if name and known is not None and name not in known]
    if missing:
        yield Reason.of(Code.CLASS_NOT_FOUND, subject, missing_class=tuple(missing))
    present = (each for each in request.alternatives if each.device_class not in missing)
    foreign = [_unpredicted_driver(packing, item, each, subject) for each in present]
    if all(foreign):
        yield from _joined(reason for reason in foreign if reason)


def _joined(reasons: Iterable[Reason]) -> Iterator[Reason]:
    """One for each driver, with all of its classes."""
    drivers: dict[object, dict[str, Reason]] = {}
    for reason in reasons:
        drivers.setdefault(reason.detail["driver"], {})[str(reason.detail["device_class"])] = reason
    for classes in drivers.values():
        first = next(iter(classes.values()))
        several = first.detail.with_items({"device_class": tuple(classes)})
        yield replace(first, detail=several) if len(classes) > 1 else first


def class_of_nothing(packing: PackingInput, item: int) -> Iterator[Reason]:
    """One reason for each value that a DeviceClass selects and no offered device has, of the classes that the class's
    pods use, by claims or by resources that they serve. Paid for as in `nothing_has`."""
    pods = packing.classes[item].sample.pods
    claims = [packing.snapshot.claims.get(key) for pod in pods for key in claim_keys(pod)]
    requests = [request for claim in claims if claim for request in claim.requests]
    serving = (
        extended_resource_classes(packing.snapshot.classes) if packing.snapshot.profile.gates.extended_resource else {}
    )
    used = {request.device_class for request in requests if isinstance(request, DeviceRequest)}
    used |= {serving[name].name for pod in pods for name in requested_resources(pod) if name in serving}
    for found in packing.snapshot.classes:
        for demand in _paid(packing, item, found.selectors) if found.name in used else ():
            # Of which type devices are, whole or in parts, is a setting of the driver and not of the machine.
            reason = _unmet(packing, demand, Subject("DeviceClass", found.name)) if demand.path[2] != _KIND else None
            if reason is not None:
                yield reason


def asks_in_vain(packing: PackingInput, item: int) -> bool:
    """True if a claim of the class requests a value that no offering publishes: no type takes it.

    Needs no trial and no selector. False means nothing. Existing devices may have values that new ones do not have, and
    an allocated claim requests nothing any more.
    """
    claims = _open_claims(packing, item)
    return bool(claims) and any(reason.code is Code.NOTHING_HAS for reason in nothing_has(packing, item))


def no_type_has(packing: PackingInput, catalog: Catalog, item: int) -> bool:
    """The same for all types of the catalog in implicit pools, as far as facts of the types show it.

    Nothing is predicted and nothing of the catalog is offered for it. False means nothing.
    """
    claims = _open_claims(packing, item)
    if not claims or any(instance_type.custom_drivers for instance_type in catalog):
        return False
    # Parts of a card are not offered in an implicit pool, as for asks_in_vain.
    offered = (instance_type for instance_type in catalog if not instance_type.share)
    most = _MOST.of((Same(catalog),), lambda: _Offered((t, *found) for t in offered for found in at_most(t)))
    requests = (request for claim in claims for request in claim.requests if isinstance(request, DeviceRequest))
    return any(most.exceeded(demand) for request in requests for demand in _paid(packing, item, request.selectors))


def _open_claims(packing: PackingInput, item: int) -> list[ResourceClaim]:
    """The claims of the class if only devices of a new node can satisfy them, otherwise none."""
    keys = (key for pod in packing.classes[item].sample.pods for key in claim_keys(pod))
    claims = [packing.snapshot.claims.get(key) for key in keys]
    found = [claim for claim in claims if claim is not None and not claim.allocation]
    return found if len(found) == len(claims) and not packing.trials.devices_anywhere else []


@dataclass(slots=True)
class PassedOver:
    """The reasons why claims get no earlier alternative of firstAvailable: no offering has what it requests.

    Each alternative is checked once, whichever claims have it. `account` pays for selectors that were not evaluated;
    there are no further reasons once it is used up.
    """

    packing: PackingInput
    account: Account
    _known: dict[DeviceRequest, Reason | None] = field(default_factory=dict, init=False)

    def reasons(self, allocations: Mapping[str, Allocation]) -> Iterator[Reason]:
        """One reason for each such alternative before the one that a claim gets."""
        for key, allocation in allocations.items():
            claim = self.packing.snapshot.claims.get(key)
            got = {device.request for device in allocation.devices}
            for request in claim.requests if claim else ():
                for sub in _before(request, got) if isinstance(request, FirstAvailable) else ():
                    why = self._why(sub)
                    if why is not None:
                        yield Reason(Code.ALTERNATIVE_NOWHERE, detail=why.detail.with_items({"alternative": sub.name}))

    def _why(self, request: DeviceRequest) -> Reason | None:
        if request not in self._known:
            # Existing nodes may have it, but it is in use.
            there = {slice_.driver for slice_ in self.packing.snapshot.slices}
            self._known[request] = None
            with suppress(BudgetSpentError):
                asked = (d for d in _demands(self.packing, self.account, request.selectors) if d.path[0] != "driver")
                unmet = (_unmet(self.packing, demand, NO_SUBJECT) for demand in asked if demand.path[1] not in there)
                self._known[request] = next((found for found in unmet if found is not None), None)
        return self._known[request]


def _before(request: FirstAvailable, got: Collection[str]) -> Iterator[DeviceRequest]:
    chosen = [i for i, sub in enumerate(request.subrequests) if f"{request.name}/{sub.name}" in got]
    yield from request.subrequests[: chosen[0]] if chosen else ()


def _unpredicted_driver(packing: PackingInput, item: int, request: DeviceRequest, subject: Subject) -> Reason | None:
    """The driver that the request or its class names, if its devices are not predicted; None without work to pay."""
    classes = (found.selectors for found in packing.snapshot.classes if found.name == request.device_class)
    selectors = chain(request.selectors, *classes)
    try:
        found = list(_demands(packing, packing.trials.ledger.accounts[item], selectors))
    except BudgetSpentError:
        return None
    named = {demand.wanted for demand in found if demand.path[0] == "driver"}
    unknown = named - packing.described_drivers
    if unknown:  # this takes long: it reads all devices
        unknown -= _on_offer(packing).drivers
    if not unknown:
        return None
    driver = min(unknown)
    nodes = {node.name for node in packing.snapshot.nodes}
    there = {slice_.reach.node_name for slice_ in packing.snapshot.slices if slice_.driver == driver} & nodes
    facts: dict[str, str | int] = {"nodes": len(there)} if there else {}
    return Reason.of(Code.NOT_PREDICTED, subject, driver=driver, device_class=request.device_class, **facts)


def _demands(packing: PackingInput, account: Account, selectors: Iterable[Selector]) -> Iterator[Demand]:
    """The values that they require. The account pays for compiling new ones. Raises BudgetSpentError."""
    for selector in selectors:
        if selector.expression is not None:
            with on_account(account):
                packing.world.devices.engine.reads((selector.expression,))
            yield from demands_of(selector.expression, packing.snapshot.profile)


def _paid(packing: PackingInput, item: int, selectors: Iterable[Selector]) -> Iterator[Demand]:
    """The values other than drivers, each paid for by the class; none once its share is used up."""
    account = packing.trials.ledger.accounts[item]
    with suppress(BudgetSpentError):
        for demand in (found for found in _demands(packing, account, selectors) if found.path[0] != "driver"):
            units = _LOOKED_UP + (_COMPARED if demand.path[0] != "capacity" else 0)
            account.admit(units)
            account.pay(units)
            yield demand


def _unmet(packing: PackingInput, demand: Demand, subject: Subject) -> Reason | None:
    if demand.path[0] == "capacity":
        return _too_little(packing, demand, subject)
    return _no_such_text(packing, demand, subject)


def _too_little(packing: PackingInput, demand: Demand, subject: Subject) -> Reason | None:
    """The reason that no device has this much of the capacity."""
    best = _on_offer(packing).largest_below(demand)
    if best is None:
        return None
    detail = {"largest": _shown(best[0]), **_whose(packing, demand, best[1])}
    return Reason.of(Code.NOTHING_HAS, subject, name=demand.path[2], wanted=demand.wanted, **detail)


def _largest(devices: Iterable[Published], demand: Demand) -> tuple[Quantity, InstanceType] | None:
    """The largest possible capacity; None if there is no upper bound."""
    best: tuple[Quantity, InstanceType] | None = None
    for instance_type, driver, device in devices:
        for amount in _named(device.capacity, demand, driver):
            if amount.guess and amount.bounds is None:
                return None
            most = amount.bounds[1] if amount.guess and amount.bounds else amount.value
            if best is None or most > best[0]:
                best = most, instance_type
    return best


def _texts(devices: Iterable[Published], demand: Demand) -> dict[str, InstanceType] | None:
    """All values of the attribute, with a type that has it; None if one is not known at all."""
    known: dict[str, InstanceType] = {}
    for instance_type, driver, device in devices:
        for value in _named(device.attributes, demand, driver):
            if isinstance(value, RuntimeOnly) and not value.one_of:
                return None
            values: Iterable[object] = value.one_of if isinstance(value, RuntimeOnly) else (value,)
            for text in values:
                if isinstance(text, str):
                    known.setdefault(text, instance_type)
    return known


def _no_such_text(packing: PackingInput, demand: Demand, subject: Subject) -> Reason | None:
    """The reason that no device has this value; none if an unknown value could be it."""
    known = _on_offer(packing).texts(demand)
    if known is None:
        return _made_by_software(packing, demand, subject)
    if not known or demand.wanted in known:
        return None
    near = _near_profiles(demand.wanted, known) or completed(demand.wanted, known, most=1)
    detail = {"where": _where(packing)}
    if any(facts.driver == demand.path[1] and facts.cards for facts in driver_facts().values()):
        detail["driver"] = demand.path[1]
    elif near:
        detail = {"best": near[0], **_whose(packing, demand, known[near[0]])}
    return Reason.of(Code.NOTHING_HAS, subject, name=demand.path[2], wanted=demand.wanted, **detail)


def _near_profiles(wanted: str, known: Iterable[str]) -> list[str]:
    """The MIG profiles with as many slices of a GPU as the wanted one, nearest memory first; none for other texts."""
    asked = _MIG_PROFILE.fullmatch(wanted)
    if asked is None:
        return []
    slices, memory = asked.groups()
    found = [other for text in known if (other := _MIG_PROFILE.fullmatch(text)) and other[1] == slices]
    return [other[0] for other in sorted(found, key=lambda other: (abs(int(other[2]) - int(memory)), other[0]))]


def _made_by_software(packing: PackingInput, demand: Demand, subject: Subject) -> Reason | None:
    """The reason for a name of a network interface that only software creates. Names of real cards are not known."""
    _, driver, name = demand.path
    known = (found for found in driver_facts().values() if found.driver == driver and name == _INTERFACE)
    if not any(demand.wanted.startswith(found.software_interfaces) for found in known):
        return None
    detail = {"name": name, "wanted": demand.wanted, "where": _where(packing), "driver": driver}
    return Reason.of(Code.NOTHING_HAS, subject, **detail)


def _named(values: Mapping[str, V], demand: Demand, driver: str) -> Iterator[V]:
    """The value that the device publishes under the name; a name without a domain belongs to the driver."""
    _, domain, name = demand.path
    for key in (f"{domain}/{name}", name) if domain == driver else (f"{domain}/{name}",):
        if key in values and split_name(key, driver) == (domain, name):
            yield values[key]


def _on_offer(packing: PackingInput) -> _Offered:
    return _ON_OFFER.of((Same(packing.shapes),), lambda: _Offered(_devices(packing)))


def _devices(packing: PackingInput) -> Iterator[Published]:
    """Everything that candidates would publish, without types that are never chosen."""
    for shape in packing.shapes:
        if not shape.candidate.excluded:
            for slice_ in shape.sample.slices:
                for device in slice_.devices:
                    yield shape.candidate.instance_type, slice_.driver, device


def _where(packing: PackingInput) -> str:
    if not all(candidate.pool.implicit for candidate in packing.candidates):
        return "that a pool offers"
    whole = all(candidate.pool == IMPLICIT for candidate in packing.candidates)
    return "in the catalog" if whole else "on offer"  # the command line restricts where and how to buy


def _whose(packing: PackingInput, demand: Demand, instance_type: InstanceType) -> dict[str, str]:
    """The owner of the device: a device that a driver makes up is no accelerator of the machine."""
    driver = demand.path[1]
    if any(facts.driver == driver and facts.simulated for facts in driver_facts().values()):
        return {"simulated_by": driver}
    return {"where": _where(packing), "instance_type": instance_type.name, "accelerator": _model(instance_type)}


def _model(instance_type: InstanceType) -> str:
    return instance_type.accelerator.model if instance_type.accelerator else instance_type.name


def _shown(amount: Quantity) -> str:
    """Large amounts in Gi: 277.5Gi is easier to read than 284208Mi."""
    return f"{float(amount.value / _GI.value):.4g}Gi" if amount >= _GI else str(amount)
