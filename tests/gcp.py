"""The Google Cloud adapter on the fake: real clients over HTTP, one template. For every suite that needs both."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from google.oauth2.credentials import Credentials

from autoscaler.clock import VirtualClock
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import CapacityType
from providers.contract import (
    TAG_BATCH,
    TAG_CLUSTER,
    TAG_POOL,
    Clock,
    LaunchAnswer,
    LaunchRequest,
    OfferingKey,
    Reservation,
    TemplateRef,
    TemplateStatus,
)
from providers.errors import AmbiguousError, WaitingError
from providers.gcp.node_template.template import Batch, GroupRef, GroupTemplate, PoolNodes
from providers.gcp.provider import GcpProvider, Project
from providers.gcp.session import Gcp
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.gke import TPU_LABELS, NodePool
from tests.fakes.gce.holdings import Holding
from tests.fakes.gce.in_process import InProcess
from tests.fakes.gce.server import Server
from tests.fakes.gce.state import PROJECT, PROMPT, Behaviour, Group

CLUSTER = "11111111-2222-3333-4444-555555555555"
ZONE = "us-central1-a"
A3 = OfferingKey("a3-highgpu-8g", ZONE, CapacityType.ON_DEMAND)
A3_SPOT = OfferingKey("a3-highgpu-8g", ZONE, CapacityType.SPOT)
FLEX = OfferingKey("a3-highgpu-8g", ZONE, CapacityType.FLEX_START)
V6E = OfferingKey("ct6e-standard-4t", ZONE, CapacityType.ON_DEMAND)
A2 = OfferingKey("a2-highgpu-8g", ZONE, CapacityType.ON_DEMAND)
TEMPLATE_REF = TemplateRef("GCPNodeTemplate", "gpu")


@cache
def server() -> Server:
    """Where all clients end."""
    return Server()


@cache
def gcp() -> Gcp:
    """Clients as production makes them. Making one takes longer than most tests do."""
    return Gcp(PROJECT, endpoint=server().url)


def expired() -> Gcp:
    """The same clients with credentials that have expired and are not renewed."""
    of: Any = Credentials  # its constructor is not annotated
    found = of(
        "t",
        refresh_token="r",
        client_id="c",
        client_secret="s",
        token_uri=f"{server().url}/token",
        expiry=datetime(2020, 1, 1),  # noqa: DTZ001  # the client compares it with a moment without a zone
    )
    clients = Gcp(PROJECT, endpoint=server().url)
    clients._found = (found, None)
    return clients


@cache
def in_process() -> InProcess:
    """The same clients on a fake without a socket: for what makes thousands of calls."""
    return InProcess(PROJECT)


@dataclass
class Written:
    """The one template there is, as a test writes it."""

    found: GroupTemplate

    def template(self, reference: TemplateRef) -> GroupTemplate:
        return self.found

    def references(self) -> tuple[TemplateRef, ...]:
        return (TemplateRef("GCPNodeTemplate", self.found.name, 1),)


@dataclass
class Rig:
    """A project with a GKE node pool and two groups, and the adapter. `restart` makes the adapter anew."""

    behaviour: Behaviour = PROMPT
    clock: VirtualClock = field(default_factory=VirtualClock)
    ours: Clock | None = None
    batches: list[Batch] = field(default_factory=list)
    expected: list[PoolNodes] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fake = FakeGce(self.clock, self.behaviour)
        server().fake = self.fake
        for offering, model in ((A3, "STANDARD"), (A3_SPOT, "SPOT"), (A2, "STANDARD")):
            name = f"gke-c1-{offering.instance_type[:2]}-{offering.capacity_type[:2]}-0a1b2c3d"
            group = Group(f"{name}-grp", ZONE, name, offering.instance_type, model, pageless=offering is A2)
            group.regional = offering is A3_SPOT
            self.fake.project.add(group)
        groups = list(self.fake.project.groups)
        self.fake.clusters.pools["h100"] = NodePool((groups[0],))
        self.templates = Written(
            GroupTemplate("gpu", "c1", "us-central1", ("h100",), tuple(GroupRef(*one) for one in groups[1:]))
        )
        self.restart()

    def restart(self) -> None:
        project = Project(gcp(), self.ours or self.clock, CLUSTER)
        self.provider = GcpProvider(
            project, self.templates, written=lambda: self.batches, expected=lambda: self.expected
        )

    def queue_gangs(self, *, tried: bool = True) -> None:
        """What has to come together is asked for by resize requests, which a trial has proven in every group or not."""
        groups = frozenset(GroupRef(*one) for one in self.fake.project.groups) if tried else frozenset()
        self.templates.found = replace(self.templates.found, resize_requests=True, tried=groups)

    def hold(
        self,
        *,
        count: int = 1,
        starts_in: timedelta,
        lasts: timedelta,
        part: str = "",
        of: str = A3.instance_type,
        **more: Any,
    ) -> OfferingKey:
        """Calendar capacity, and a group that starts machines in it, or in a `part` of it. Answers what to ask for."""
        now = self.clock.now()
        starts = now + starts_in
        held = {"future": "block", "created": now, "starts": starts, "ends": starts + lasts, **more}
        holding = Holding("block-res", ZONE, of, count, **held)
        self.fake.project.holdings.append(holding)
        named = f"projects/{holding.owner}/reservations/{holding.name}" if holding.owner else holding.name
        model = "RESERVATION_BOUND" if holding.bound else "STANDARD"
        base = "gke-c1-block-0a1b2c3d"
        self.fake.project.add(Group(f"{base}-grp", ZONE, base, of, model, reservation=f"{named}{part}"))
        found = self.templates.found
        self.templates.found = replace(found, groups=(*found.groups, GroupRef(ZONE, f"{base}-grp")))
        kind = "capacity-block" if holding.bound else "reserved"
        future = holding.future and not part  # a part is below the reservation that Google has made
        tail = f"futureReservations/{holding.future}" if future else f"reservations/{holding.name}{part}"
        owner = f"projects/{holding.owner}/" if holding.owner else ""
        return OfferingKey(of, ZONE, kind, f"{owner}zones/{ZONE}/{tail}")

    def flex(self, *, lasts: timedelta = timedelta(hours=2), tried: bool = True) -> OfferingKey:
        """A group of flex-start machines. Answers what to ask for."""
        base = "gke-c1-flex-0a1b2c3d"
        self.fake.project.add(Group(f"{base}-grp", ZONE, base, FLEX.instance_type, "FLEX_START"))
        ref, found = GroupRef(ZONE, f"{base}-grp"), self.templates.found
        known = frozenset({ref} if tried else ())
        self.templates.found = replace(found, groups=(*found.groups, ref), flex_start=lasts, tried=known)
        return FLEX

    def slices(self, count: int = 1, *, tried: bool = True) -> OfferingKey:
        """Node pools that are one slice of four hosts each. Answers what to ask for."""
        refs = []
        for number in range(count):
            base = f"gke-c1-slice{number}-0a1b2c3d"
            of = {labels.GKE_TPU_TOPOLOGY: "4x4", labels.GKE_TPU_ACCELERATOR: "tpu-v6e-slice"}
            group = Group(f"{base}-grp", ZONE, base, V6E.instance_type, kube_labels=of, slice_of=4)
            self.fake.project.add(group)
            made = NodePool(((ZONE, group.name),), machine_type=V6E.instance_type, tpu_topology="4x4", taints=())
            made.labels = dict(TPU_LABELS)
            self.fake.clusters.pools[f"slice{number}"] = made
            refs.append(GroupRef(ZONE, group.name))
        found = self.templates.found
        pools = tuple(f"slice{number}" for number in range(count))
        self.templates.found = replace(found, node_pools=pools, tried=frozenset(refs if tried else ()))
        return V6E

    @property
    def holding(self) -> Holding:
        """The one that `hold` made."""
        (found,) = self.fake.project.holdings
        return found

    def group(self, offering: OfferingKey) -> Group:
        """The group that starts these machines."""
        model = {"spot": "SPOT", "flex-start": "FLEX_START"}.get(offering.capacity_type, "STANDARD")
        groups = self.fake.project.groups.values()
        return next(
            g for g in groups if (g.machine_type, g.zone, g.model) == (offering.instance_type, offering.zone, model)
        )

    def key(self, offering: OfferingKey) -> tuple[str, str, str]:
        """As the fake's stock is counted."""
        return offering.instance_type, offering.zone, self.group(offering).model

    def settle(self) -> None:
        """Let everything finish."""
        b = self.behaviour
        self.advance(b.provisioning + b.staging + b.stopping + b.visibility + timedelta(minutes=1))

    def advance(self, by: timedelta) -> None:
        """Let time pass; a group acts in its own time, whether it is asked or not."""
        self.fake.project.catch_up()
        self.clock.advance(by)
        self.fake.project.catch_up()
        self.fake.project.catch_up()


def whole(batch: str = "b1", *, hosts: int = 4, **more: Any) -> LaunchRequest:
    """A launch of one slice of hosts."""
    nodes = tuple(f"{batch}-{number}" for number in range(hosts))
    of = FrozenMap({labels.GKE_TPU_TOPOLOGY: "4x4"})
    return request(*nodes, batch=batch, offerings=(V6E,), minimum=hosts, **{"labels": of, **more})


def request(
    *nodes: str, batch: str = "b1", offerings: tuple[OfferingKey, ...] = (A3,), minimum: int = 1, **more: Any
) -> LaunchRequest:
    """A launch from the template gpu."""
    tags = {TAG_CLUSTER: CLUSTER, TAG_POOL: "gpu", TAG_BATCH: batch}
    return LaunchRequest(
        token=f"token-{batch}",
        nodes=nodes or (f"{batch}-0",),
        offerings=offerings,
        tags=FrozenMap(tags),
        minimum=minimum,
        template=TEMPLATE_REF,
        **more,
    )


def outcome(rig: Rig, asked: LaunchRequest) -> LaunchAnswer:
    """The answer to a launch that is repeated every minute while it waits."""
    for _ in range(20):
        try:
            return rig.provider.launch(asked)
        except (WaitingError, AmbiguousError):
            rig.advance(timedelta(minutes=1))
    raise AssertionError("the launch never comes to an end")


def read(rig: Rig, offering: OfferingKey) -> Reservation:
    """The reservation of the offering, or its part, as a new process reads it."""
    rig.restart()
    return next(one for one in rig.provider.reservations() if one.id == offering.reservation)


def status(rig: Rig) -> TemplateStatus:
    """The status of the only template, as a new process reads it."""
    rig.restart()
    (found,) = rig.provider.template_statuses()
    return found
