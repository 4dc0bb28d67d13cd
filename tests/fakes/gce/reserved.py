"""The calls that read reservations, future ones, blocks and sub-blocks. Machines count in the part that they name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from google.cloud import compute_v1

from tests.fakes.gce.answers import moment, zone_url
from tests.fakes.gce.errors import ApiError
from tests.fakes.gce.holdings import Block, Holding, SubBlock, future_reservation, reservation
from tests.fakes.gce.state import NUMBER, PROJECT

if TYPE_CHECKING:
    from tests.fakes.gce.fake import FakeGce, Request


def methods(fake: FakeGce) -> Sequence[tuple[str, str, str, Callable[[Request], Any]]]:
    """The calls, with the ends of their paths below a project."""
    one = r"zones/(?P<zone>[^/]+)/reservations/(?P<name>[^/]+)"
    block = rf"{one}/reservationBlocks/(?P<block>[^/]+)"
    sub_block = rf"{block}/reservationSubBlocks/(?P<sub_block>[^/]+)"

    def get_block(request: Request) -> Any:
        holding, found = _block(fake, request)
        used = fake.project.used(holding, counted=True, block=found.name)
        return compute_v1.ReservationBlocksGetResponse(resource=_shown(holding, found, used))

    def get_sub_block(request: Request) -> Any:
        holding, within = _block(fake, request)
        name = request.groups["sub_block"]
        found = next((one for one in within.sub_blocks if one.name == name), None)
        if found is None:
            raise ApiError(404, "notFound", f"The resource 'reservationSubBlocks/{name}' was not found")
        used = fake.project.used(holding, counted=True, block=within.name, sub_block=name)
        return compute_v1.ReservationSubBlocksGetResponse(resource=_sub_shown(holding, within, found, used))

    def get(request: Request) -> Any:
        return _reservation(fake, _holding(fake, request))

    def everything(request: Request) -> Any:
        now = fake.clock.now()
        found = [
            one for one in fake.project.holdings if not one.owner and one.exists(now) and one.name not in fake.hidden
        ]
        rows, after = fake.page(request, found)
        scopes: dict[str, Any] = {}
        for row in rows:
            scope = scopes.setdefault(f"zones/{row.zone}", compute_v1.ReservationsScopedList())
            scope.reservations.append(_reservation(fake, row))
        return compute_v1.ReservationAggregatedList(items=scopes, next_page_token=after)

    def futures(request: Request) -> Any:
        rows, after = fake.page(request, [one for one in fake.project.holdings if one.future and not one.owner])
        scopes: dict[str, Any] = {}
        for row in rows:
            scope = scopes.setdefault(f"zones/{row.zone}", compute_v1.FutureReservationsScopedList())
            scope.future_reservations.append(future_reservation(row, fake.clock.now(), zone_url(row.zone), moment))
        return compute_v1.FutureReservationsAggregatedListResponse(items=scopes, next_page_token=after)

    return (
        ("GET", "reservations.get", one, get),
        ("GET", "reservations.aggregatedList", "aggregated/reservations", everything),
        ("GET", "futureReservations.aggregatedList", "aggregated/futureReservations", futures),
        ("GET", "reservationBlocks.get", block, get_block),
        ("GET", "reservationSubBlocks.get", sub_block, get_sub_block),
    )


def _holding(fake: FakeGce, request: Request) -> Holding:
    """The reservation that a path names."""
    project, zone, name = (request.groups[key] for key in ("project", "zone", "name"))
    if project in fake.unreadable:
        raise ApiError(403, "forbidden", f"Required 'compute.reservations.get' permission for 'projects/{project}'")
    owner = "" if project in (PROJECT, NUMBER) else project
    for one in fake.project.holdings:
        if (one.owner, one.zone, one.name) == (owner, zone, name) and one.exists(fake.clock.now()):
            return one
    raise ApiError(404, "notFound", f"The resource 'projects/{project}/zones/{zone}/reservations/{name}'")


def _reservation(fake: FakeGce, one: Holding) -> Any:
    return reservation(one, fake.project.used(one, counted=True), zone_url(one.zone), moment)


def _block(fake: FakeGce, request: Request) -> tuple[Holding, Block]:
    holding, name = _holding(fake, request), request.groups["block"]
    found = next((one for one in holding.blocks if one.name == name), None)
    if found is None:
        raise ApiError(404, "notFound", f"The resource 'reservationBlocks/{name}' was not found")
    return holding, found


def _shown(holding: Holding, found: Block, used: int) -> compute_v1.ReservationBlock:
    degraded = sum(bool(one.degraded or one.broken) for one in found.sub_blocks)
    health = compute_v1.ReservationBlockHealthInfo(
        degraded_sub_block_count=degraded,
        healthy_sub_block_count=len(found.sub_blocks) - degraded,
        health_status="DEGRADED" if degraded else "HEALTHY",
    )
    return compute_v1.ReservationBlock(
        name=found.name,
        zone=zone_url(holding.zone),
        status="READY",
        count=found.hosts,
        in_use_count=used,
        in_use_host_count=used,
        reservation_sub_block_count=len(found.sub_blocks),
        health_info=health,
        physical_topology=compute_v1.ReservationBlockPhysicalTopology(cluster="cluster-1", block=f"hash-{found.name}"),
    )


def _sub_shown(holding: Holding, block: Block, found: SubBlock, used: int) -> compute_v1.ReservationSubBlock:
    health = compute_v1.ReservationSubBlockHealthInfo(
        degraded_host_count=found.degraded,
        healthy_host_count=found.hosts - found.degraded,
        degraded_infra_count=int(found.broken),
        healthy_infra_count=int(not found.broken),
        health_status="DEGRADED" if found.degraded or found.broken else "HEALTHY",
    )
    return compute_v1.ReservationSubBlock(
        name=found.name,
        zone=zone_url(holding.zone),
        status=found.status,
        count=found.hosts,
        in_use_count=used,
        in_use_host_count=used,
        health_info=health,
        physical_topology=compute_v1.ReservationSubBlockPhysicalTopology(
            cluster="cluster-1", block=f"hash-{block.name}", sub_block=f"hash-{found.name}"
        ),
    )
