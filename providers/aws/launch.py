"""From a LaunchRequest to one EC2 call, and from its answer to machines and failures.

CreateFleet (instant) where the request may take any of several offerings or zones: machines with neither a gang's
minimum nor a block. RunInstances, in one subnet, for gangs (MinCount) and for capacity blocks. Either way it is one
call with the request's token, whose parameters follow from the request and the template alone, so that a repetition is
identical. Offerings that one call cannot express together are left to another request: their nodes come back missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import takewhile
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.aws.capacity import Reservations
from providers.aws.describe import instance_of, listed, named, provider_id, tags_of
from providers.aws.errors import after_launching, meaning, of_code, translated
from providers.aws.node_template.cluster import Clusters
from providers.aws.node_template.launch_template import LaunchTemplates, Version, launch_tags, tag_list, template_data
from providers.aws.node_template.network import Network, interfaces
from providers.aws.node_template.template import NodeTemplate
from providers.aws.node_template.user_data import user_data
from providers.aws.session import Aws
from providers.contract import Clock, Instance, InstanceState, LaunchAnswer, LaunchRequest, OfferingFailure, OfferingKey
from providers.errors import (
    AddressesExhaustedError,
    AmbiguousError,
    CapacityError,
    GoneError,
    NoSubnetError,
    NotOfferedError,
    ProviderError,
    QuotaError,
    RefusedError,
    ReservationExhaustedError,
    ShortageError,
    TemplateError,
    TemplateGoneError,
    TokenReusedError,
    understood,
)
from providers.fingerprint import fingerprint

_TELLING: Final = (QuotaError, ReservationExhaustedError, ShortageError, AddressesExhaustedError, NotOfferedError)
_MARKETS: Final = {CapacityType.SPOT: "spot", CapacityType.CAPACITY_BLOCK: "capacity-block"}
_FLEET_MARKET: Final = {CapacityType.SPOT: "spot", CapacityType.ON_DEMAND: "on-demand"}


@dataclass(frozen=True, slots=True)
class Launcher:
    aws: Aws
    clock: Clock
    catalog: Catalog
    network: Network
    clusters: Clusters
    launch_templates: LaunchTemplates
    reservations: Reservations

    def launch(self, request: LaunchRequest, template: NodeTemplate) -> LaunchAnswer:
        """One call, made again only when its launch template turns out to have been deleted.

        Machines may have started when an answer cannot be read, so that raises an UncertainError: the call is repeated.
        """
        with understood("launch"):
            return self._made(request, template)

    def _made(self, request: LaunchRequest, template: NodeTemplate) -> LaunchAnswer:
        try:
            answer = self._launch(request, template)
        except (TemplateError, NoSubnetError):
            self.network.forget(template)  # a subnet or group may be gone that is still remembered
            raise
        if answer.instances or not any(_is_about_launch_template(failure.error) for failure in answer.failures):
            return answer
        self.launch_templates.forget(template)
        again = self._launch(request, template)
        return replace(again, failures=tuple(map(_of_template, again.failures)))

    def _launch(self, request: LaunchRequest, template: NodeTemplate) -> LaunchAnswer:
        first = request.offerings[0]
        alone = first.reservation or request.minimum > 1
        offerings = (first,) if alone else tuple(takewhile(lambda o: _alike(o, first), request.offerings))
        call = _Call(self, request, template, offerings)
        by_fleet = request.minimum == 1 and first.capacity_type != CapacityType.CAPACITY_BLOCK
        try:
            answer = call.create_fleet() if by_fleet else call.run_instances()
        except TokenReusedError as error:
            answer = self._adopted(request, error)
        if first.reservation:
            self._note(first.reservation, answer)
        return answer

    def _adopted(self, request: LaunchRequest, error: TokenReusedError) -> LaunchAnswer:
        """The answer with the machines that an equal request launched before its template changed. Raises `error` if
        there is no such launch."""
        found = list(listed(self.aws, {labels.LAUNCH_TOKEN: request.token}))
        if not found or any(tags_of(one).get(labels.LAUNCH_PARAMETERS) != fingerprint(request) for one in found):
            raise error
        by_id = {one["InstanceId"]: one for one in found}
        return answer_of(request, [instance_of(by_id[key]) for key in sorted(by_id)], ())

    def _note(self, reservation: str, answer: LaunchAnswer) -> None:
        if any(isinstance(failure.error, ReservationExhaustedError) for failure in answer.failures):
            self.reservations.exhausted(reservation)
        else:
            self.reservations.launched(reservation, (instance.id for instance in answer.instances))


@dataclass(frozen=True, slots=True)
class _Call:
    """One launch call. `offerings` are of one capacity type, in order of preference."""

    launcher: Launcher
    request: LaunchRequest
    template: NodeTemplate
    offerings: tuple[OfferingKey, ...]

    def run_instances(self) -> LaunchAnswer:
        """A gang, or machines of a block: in one subnet, at least `minimum` of them or none."""
        offering, request = self.offerings[0], self.request
        subnet = self.launcher.network.subnet_for(self.template, request.zone, request.token)
        reclaim_at = self.launcher.reservations.reclaim_at(offering.reservation)
        parameters: dict[str, Any] = {
            "ClientToken": request.token,
            "MinCount": request.minimum,
            "MaxCount": len(request.nodes),
            "InstanceType": offering.instance_type,
            "LaunchTemplate": self._version(offering).specification,
            "NetworkInterfaces": self._interfaces(offering, subnet.id),
            "TagSpecifications": self._tags(("instance", "volume", "network-interface")),
            **self._market(offering),
        }
        try:
            with translated("RunInstances"):
                found = self.launcher.aws.ec2.run_instances(**parameters)["Instances"]
        except (CapacityError, GoneError) as error:
            return self._refused(error, [subnet.id])
        if len(found) < request.minimum:
            raise unnamed("RunInstances")
        obtained = replace(offering, zone=subnet.zone)
        now = self.launcher.clock.now()
        launched_at = {one["InstanceId"]: one.get("LaunchTime", now) for one in found}
        machines = [self._instance(key, obtained, launched_at[key], reclaim_at) for key in sorted(launched_at)]
        return answer_of(request, machines, ())

    def create_fleet(self) -> LaunchAnswer:
        """Machines from the first offerings, in one subnet of each zone that the request admits."""
        request = self.request
        network = self.launcher.network
        subnets = {s.id: s.zone for s in network.subnets_for(self.template, request.zone, request.token)}
        configs = self._configs(subnets)
        try:
            with translated("CreateFleet"):
                found = self.launcher.aws.ec2.create_fleet(
                    Type="instant",
                    ClientToken=request.token,
                    LaunchTemplateConfigs=configs,
                    # Tags of network interfaces are in the launch template: CreateFleet documents none for them.
                    TagSpecifications=self._tags(("fleet", "instance", "volume")),
                    **self._capacity(),
                )
        except (CapacityError, GoneError) as error:
            return self._refused(error, subnets)
        if names_nothing(found):
            raise unnamed("CreateFleet")
        by_type = {offering.instance_type: offering for offering in self.offerings}
        obtained = self._places(found.get("Instances", ()), by_type, subnets)
        now = self.launcher.clock.now()  # a fleet's answer has no times
        machines = [self._instance(key, obtained[key], now) for key in sorted(obtained)]
        failures = _failures(found.get("Errors", ()), by_type)
        full = [_overrides(e).get("SubnetId", "") for e in found.get("Errors", ()) if _lacks_addresses(e)]
        network.exhausted(self.template, [subnet for subnet in full if subnet])
        if not machines and failures and all(isinstance(failure.error, RefusedError) for failure in failures):
            raise failures[0].error
        if len(machines) == len(request.nodes):
            # An error of one subnet does not count if another subnet had capacity for the type.
            types = {offering.instance_type for offering in obtained.values()}
            failures = tuple(failure for failure in failures if failure.offering.instance_type not in types)
        return answer_of(request, machines, failures)

    def _configs(self, subnets: Iterable[str]) -> list[dict[str, Any]]:
        """The configurations that a fleet may launch: a version of the launch template for each offering, in each
        subnet."""
        return [
            {
                "LaunchTemplateSpecification": self._version(offering).specification,
                "Overrides": [
                    {"InstanceType": offering.instance_type, "SubnetId": subnet, "Priority": float(priority)}
                    for subnet in subnets
                ],
            }
            for priority, offering in enumerate(self.offerings)
        ]

    def _refused(self, error: CapacityError | GoneError, subnets: Iterable[str]) -> LaunchAnswer:
        """The answer without machines, for an error of the whole call. GoneError: the launch template was deleted, or
        the machines of this token have ended."""
        if isinstance(error, AddressesExhaustedError):
            self.launcher.network.exhausted(self.template, subnets)
        offering = self.offerings[0]
        return LaunchAnswer(missing=self.request.nodes, failures=(OfferingFailure(offering, _of(offering, error)),))

    def _places(
        self, groups: Iterable[Mapping[str, Any]], by_type: Mapping[str, OfferingKey], subnets: Mapping[str, str]
    ) -> dict[str, OfferingKey]:
        """The offering of each machine that a fleet started, with its zone.

        Every member of the answer but the ids is optional in EC2's model. What neither the row nor its override says
        follows from a request that admits one type or zone, or is described. AmbiguousError while EC2 does not show
        it: the machines run, and the same call finds them again.
        """
        only_type = next(iter(by_type)) if len(by_type) == 1 else ""
        only_zone = next(iter(subnets.values())) if len(set(subnets.values())) == 1 else ""
        obtained: dict[str, OfferingKey] = {}
        unplaced: list[str] = []
        for group in groups:
            row = {**_overrides(group), **{key: value for key, value in group.items() if value}}
            zone = row.get("AvailabilityZone") or subnets.get(row.get("SubnetId", ""), only_zone)
            offering = by_type.get(row.get("InstanceType", only_type))
            for key in group.get("InstanceIds", ()):
                if zone and offering:
                    obtained[key] = replace(offering, zone=zone)
                else:
                    unplaced.append(key)
        with after_launching(f"CreateFleet started {', '.join(unplaced)}"):
            for found in named(self.launcher.aws, unplaced):
                offering = by_type.get(found.get("InstanceType", ""))
                zone = (found.get("Placement") or {}).get("AvailabilityZone", "")
                if offering and zone and found.get("InstanceId"):
                    obtained[found["InstanceId"]] = replace(offering, zone=zone)
        hidden = [key for key in unplaced if key not in obtained]
        if hidden:
            raise AmbiguousError(
                f"CreateFleet started {', '.join(hidden)}, and EC2 does not show yet of which type and in which zone",
                next_step="Nothing to do: the call is repeated with its token and finds the same machines.",
            )
        return obtained

    def _capacity(self) -> dict[str, Any]:
        """The number of machines and the market. Priorities decide if the market supports them."""
        wanted, first = len(self.request.nodes), self.offerings[0]
        market = _FLEET_MARKET.get(first.capacity_type, "reserved-capacity")
        target = {"TotalTargetCapacity": wanted, "DefaultTargetCapacityType": market}
        match market:
            case "spot":
                options: dict[str, Any] = {"SpotOptions": {"AllocationStrategy": "capacity-optimized-prioritized"}}
            case "on-demand":
                options = {"OnDemandOptions": {"AllocationStrategy": "prioritized"}}
            case _:
                kinds = ["on-demand-capacity-reservation", "interruptible-capacity-reservation"]
                options = {
                    "ReservedCapacityOptions": {
                        "ReservationTypes": kinds,
                        "AllocationStrategy": "prioritized",
                        "CapacityReservationTarget": {"CapacityReservationIds": [first.reservation]},
                    }
                }
        return {"TargetCapacitySpecification": target, **options}

    def _market(self, offering: OfferingKey) -> dict[str, Any]:
        """The market and the reservation of a RunInstances call."""
        market = _MARKETS.get(offering.capacity_type, "")
        if offering.reservation:
            # A CapacityBlock may name an on-demand reservation, which EC2 sells in no such market.
            required = self.launcher.reservations.market(offering.reservation)
            market = market if required is None else required
        parameters: dict[str, Any] = {"InstanceMarketOptions": {"MarketType": market}} if market else {}
        if offering.reservation:
            target = {"CapacityReservationId": offering.reservation}
            parameters["CapacityReservationSpecification"] = {"CapacityReservationTarget": target}
        return parameters

    def _version(self, offering: OfferingKey) -> Version:
        cluster = self.launcher.clusters.joined(self.template.cluster)
        data = template_data(
            self.template,
            cluster=self.launcher.launch_templates.cluster,
            user_data=user_data(self.template, cluster, self.request),
            interfaces=self._interfaces(offering),
            open_reservations=self.template.use_open_reservations or offering.capacity_type != CapacityType.ON_DEMAND,
            ipv6=cluster.ipv6,
        )
        return self.launcher.launch_templates.version(self.template, data)

    def _interfaces(self, offering: OfferingKey, subnet: str = "") -> list[dict[str, Any]]:
        known = self.launcher.catalog.types.get(offering.instance_type)
        groups = self.launcher.network.security_groups(self.template)
        ipv6 = self.launcher.clusters.joined(self.template.cluster).ipv6
        return interfaces(known, self.template, groups, subnet=subnet, ipv6=ipv6)

    def _tags(self, kinds: Iterable[str]) -> list[dict[str, Any]]:
        tags = tag_list(self._own_tags())
        return [{"ResourceType": kind, "Tags": tags} for kind in kinds]

    def _own_tags(self) -> dict[str, str]:
        """The tags of a launch. Ownership tags override those of a template."""
        return {
            **launch_tags(self.template, self.template.cluster.name),
            **self.request.tags,
            labels.CAPACITY_TYPE: self.offerings[0].capacity_type,
            labels.LAUNCH_TOKEN: self.request.token,
            labels.LAUNCH_PARAMETERS: fingerprint(self.request),
        }

    def _instance(
        self, key: str, offering: OfferingKey, launched_at: datetime, reclaim_at: datetime | None = None
    ) -> Instance:
        """A machine that was just launched, built from the request, because EC2 may not show all of it yet."""
        return Instance(
            id=key,
            provider_id=provider_id(offering.zone, key),
            offering=offering,
            state=InstanceState.PENDING,
            launched_at=launched_at,
            tags=FrozenMap(self._own_tags()),
            reclaim_at=reclaim_at,
        )


def answer_of(request: LaunchRequest, machines: list[Instance], failures: tuple[OfferingFailure, ...]) -> LaunchAnswer:
    """Machines, sorted by id, become the request's nodes in order; a repetition maps them alike."""
    named = tuple(replace(machine, node=node) for machine, node in zip(machines, request.nodes, strict=False))
    return LaunchAnswer(named, request.nodes[len(named) :], failures)


def names_nothing(answer: Mapping[str, Any]) -> bool:
    """True if an answer has a row without ids of machines, or neither machines nor errors. Then it is unknown what was
    launched, and a request for the next offering might launch it twice."""
    rows = answer.get("Instances") or ()
    return not all(row.get("InstanceIds") for row in rows) or not (rows or answer.get("Errors"))


def unnamed(operation: str) -> AmbiguousError:
    """The error for such an answer."""
    step = "Nothing to do: the call is repeated with its token and finds the same machines."
    return AmbiguousError(f"{operation} answered without the ids of what it started", next_step=step)


def _alike(offering: OfferingKey, first: OfferingKey) -> bool:
    return offering.capacity_type == first.capacity_type and not offering.reservation


def _failures(errors: Iterable[Mapping[str, Any]], by_type: Mapping[str, OfferingKey]) -> tuple[OfferingFailure, ...]:
    """One failure for each offering, although every subnet has one: the failure of the most specific class."""
    found: dict[OfferingKey, list[ProviderError]] = {}
    for error in errors:
        offering = by_type.get(_overrides(error).get("InstanceType", ""), next(iter(by_type.values())))
        meant = of_code("CreateFleet", error.get("ErrorCode", ""), error.get("ErrorMessage", ""))
        found.setdefault(offering, []).append(_of(offering, meant))
    return tuple(OfferingFailure(offering, min(errors_of, key=_rank)) for offering, errors_of in found.items())


def _overrides(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The override in a row of a fleet's answer; {} if it has none."""
    return (row.get("LaunchTemplateAndOverrides") or {}).get("Overrides") or {}


def _lacks_addresses(error: Mapping[str, Any]) -> bool:
    return meaning(error.get("ErrorCode", ""), error.get("ErrorMessage", "")) is AddressesExhaustedError


def _is_about_launch_template(error: ProviderError) -> bool:
    return isinstance(error, GoneError) and error.code.startswith("InvalidLaunchTemplate")


def _of_template(failure: OfferingFailure) -> OfferingFailure:
    """A launch template that is refused once more is no offering's failure."""
    error = failure.error
    if not _is_about_launch_template(error):
        return failure
    gone = TemplateGoneError(error.message, code=error.code, retry_after=error.retry_after)
    return replace(failure, error=gone)


def _rank(error: ProviderError) -> int:
    """The order of error classes: a shortage in one subnet is more specific than the type's absence in another."""
    return next((rank for rank, kind in enumerate(_TELLING) if isinstance(error, kind)), len(_TELLING))


def _of(offering: OfferingKey, error: ProviderError) -> ProviderError:
    """A shortage in a reservation is the reservation's, not the market's."""
    if offering.reservation and isinstance(error, ShortageError):
        return ReservationExhaustedError(error.message, code=error.code, retry_after=error.retry_after)
    return error
