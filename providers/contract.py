"""The guarantees of a provider, and the types of its requests and answers.

A provider rents machines. It knows instance types, zones, reservations and prices. It does not know pods, claims or
plans, and never imports the autoscaler. Guarantees of every provider (providers/conformance.py checks them):

Idempotency. `launch` is idempotent by token: repeating a request with an equal token and equal parameters never
    launches more machines, and answers with those of the token. An equal token with other parameters raises
    TokenReusedError. A token that launched no machine is not used up: repeating it tries again. The caller derives
    tokens from recorded data, so a restart repeats and never doubles.
One zone. All offerings of a request are in one zone, because tokens are zonal on some clouds. Another zone is another
    request with another token, sent only once the first is known to have failed.
Partial answers. `launch` answers with the instances that exist and with one failure for each skipped offering; both may
    be non-empty. Fewer than `minimum` instances are never left running. It raises only if the request as a
    whole was refused, or if the result is unknown (AmbiguousError): then repeat it unchanged.
Eventual consistency. For at most `traits.consistency_window` after a launch, `describe` may omit the instance and
    `terminate` may report it as gone. A missing instance counts as gone only if it is older than that.
Absence is no answer. A list may lack machines that run. A missing one is looked up by its id: if the provider reports
    it as terminated it is gone; if the id is unknown, the machine may be in another account or region, so the caller
    concludes little (lifecycle/absence.py), and nothing while `place` differs from the place of the launch.
Gone is an answer. Terminating twice, or an unknown id, is no error: the id is returned under `gone`.
A refusal is certain. A refusing answer, with any code, launched nothing: it refuses that offering. Only a lost answer
    and a fault of the server are uncertain. Every error defines how long its scope is left alone. Credentials and
    clocks are checked before tokens, so the refusal of a repetition is no evidence about the call that it repeats,
    unless it is `settled`. A refusal after something was launched is raised as AmbiguousError.
Unexpected answers are errors. An answer that cannot be read is a ProviderError of the call, never another exception,
    and never a silently skipped part of a list. Resources of other owners hide none of the cluster's own, in any form.
A stop is no end. A machine that was stopped from outside is STOPPED until it is started or terminated.
Ownership. Every machine carries the tags of its request from its creation on; with them anything can be found again
    without other records. A provider never changes a machine that lacks them. Only a tag that launches alone write
    proves ownership, never a tag that a group propagates to machines that Foreslice did not request.
Reading removes nothing. Notices that a provider reads stay until `acknowledge` (abilities.py) is called.
Ends are the provider's. `reclaim_at` is the time when the provider takes machines back (before a block's end, at a spot
    notice). It depends on the launch form: a group that the provider operates is emptied earlier than machines that
    Foreslice launches are taken back. It may move in both directions, so every decision reads it again.
The cloud's clock. Times in answers are the cloud's; the cloud decides whether a reservation has begun, not the caller's
    clock. Clocks that differ by minutes change no answer.
No retries inside. A provider makes each call once; back-off belongs to the caller, who sees every error.
Counted groups. If only a group's size can be set, `launch` raises AmbiguousError until the group has started its
    machines or failed to: the caller repeats the call unchanged, as after a lost answer. `terminate` names machines and
    lowers the size with them, so that the group neither replaces them nor chooses others.
Waiting. A Withdrawer (abilities.py) may raise WaitingError: it holds the request, for weeks perhaps, until it can start
    all of its machines. The repetition requests nothing twice, and `withdraw` ends it.

Errors are one tree, providers/errors.py. Optional abilities are Protocols: Preflight here, CapacityMarket in market.py.
plugins.py finds third-party providers. Times are aware UTC, prices decimal USD per instance hour.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Final, Protocol, runtime_checkable

from instance_catalog.dataclass import dataclass, field
from instance_catalog.frozen_map import EMPTY, FrozenMap
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.instance_type import CapacityType
from providers.errors import ProviderError
from providers.finding import Finding
from providers.registered import Registered, Room

# Ownership tags. Providers whose clouds allow fewer characters translate them, reversibly.
TAG_CLUSTER: Final = labels.CLUSTER_TAG  # uid of the namespace kube-system
TAG_POOL: Final = labels.POOL
TAG_BATCH: Final = labels.LAUNCH_BATCH_TAG  # name of the LaunchBatch

# EC2 allows 64 ASCII characters (RunInstances and CreateFleet ClientToken), the shortest known limit.
TOKEN_LENGTH: Final = 64


class Clock(Protocol):
    """Time as a parameter. `now` may be shifted by tests; `monotonic` (leases, rates, time-outs) never is."""

    def now(self) -> datetime:
        """The wall clock, aware UTC."""

    def monotonic(self) -> float:
        """Seconds since an arbitrary time; never decreases."""

    def wait(self, seconds: float) -> None:
        """Returns once `monotonic` has advanced by that much; at once if it is not positive."""


class LaunchForm(Enum):
    """The way in which machines are started; it decides how long before a reservation's end they are taken back."""

    DIRECT = "direct"  # the provider adapter requests each machine
    GROUP = "group"  # members of a group whose size the adapter sets
    MANAGED_GROUP = "managed-group"  # members of a group that the provider operates and empties itself


@dataclass(frozen=True, slots=True)
class Traits:
    """The properties of a provider.

    `exact`: every machine is named or owned one by one. `counted`: only a group's size is set, and machines are
    identified afterwards. `max_nodes` is the most nodes of one request. `consistency_window` covers every lag: of
    visibility and of available counts. `reserves`: `reservations` returns all that exist; without it the absence of one
    has no meaning.
    """

    exact: bool = True
    counted: bool = False
    consistency_window: timedelta = timedelta(0)
    max_nodes: int = 100
    reserves: bool = False


@dataclass(frozen=True, slots=True, order=True)
class OfferingKey:
    """Something that can be asked for. `reservation` is the provider's id; capacity type capacity-block needs it."""

    instance_type: str
    zone: str
    capacity_type: CapacityType
    reservation: str = ""

    def __str__(self) -> str:
        where = f"{self.instance_type} in {self.zone} ({self.capacity_type}"
        return f"{where} {self.reservation})" if self.reservation else f"{where})"


@dataclass(frozen=True, slots=True)
class OfferingStatus:
    """A provider's current data about an offering; None if unknown (then the catalog's price is used).

    `region`: the region of the price if the offering is in any zone.
    """

    offering: OfferingKey
    usd_per_hour: Decimal | None = None
    available: int | None = None
    region: str = ""


@dataclass(frozen=True, slots=True)
class TemplateRef:
    """The provider's node template by kind and name; `generation` is part of what "identical parameters" means."""

    kind: str = ""
    name: str = ""
    generation: int = 0


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """Equal machines in one zone, of the first of `offerings` with capacity.

    `nodes` are the names for the machines to register with. `minimum` is the number that must start together or not at
    all. `drivers` are the driver profiles whose slices are expected. Raises ValueError for a request that no provider
    can serve.
    """

    token: str
    nodes: tuple[str, ...]
    offerings: tuple[OfferingKey, ...]
    tags: FrozenMap[str, str]
    minimum: int = 1
    template: TemplateRef = TemplateRef()
    labels: FrozenMap[str, str] = EMPTY
    taints: tuple[Taint, ...] = ()
    kubelet_reserved: FrozenMap[str, Quantity] = field(default_factory=FrozenMap)
    drivers: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.token.isascii() or not 0 < len(self.token) <= TOKEN_LENGTH:
            raise ValueError(f"token {self.token!r} must be 1 to {TOKEN_LENGTH} ASCII characters")
        if not self.nodes or len(set(self.nodes)) != len(self.nodes):
            raise ValueError("a launch request needs at least one node, each named once")
        if len({offering.zone for offering in self.offerings}) != 1:
            raise ValueError("a launch request needs at least one offering, all of them in one zone")
        if not 1 <= self.minimum <= len(self.nodes):
            raise ValueError(f"minimum must be 1 to {len(self.nodes)}, found {self.minimum}")
        if not self.tags.get(TAG_CLUSTER):
            raise ValueError(f"the tag {TAG_CLUSTER} is missing: unowned machines could never be found again")

    @property
    def zone(self) -> str:
        """The one zone of all offerings."""
        return self.offerings[0].zone


class InstanceState(Enum):
    """The state of a machine. TERMINATED ones are shown for a while and then forgotten.

    STOPPED: it was shut down from outside; it runs no pod, may be started again, and stays until it is terminated.
    """

    __hash__ = object.__hash__  # its members are unique, and each machine of every answer is looked up by its state

    PENDING = "pending"
    RUNNING = "running"
    STOPPED = "stopped"
    TERMINATING = "terminating"
    TERMINATED = "terminated"


@dataclass(frozen=True, slots=True)
class Instance:
    """A machine. `provider_id` is the Node's spec.providerID; `offering` what was obtained.

    `id` is never another machine's; a `provider_id` may be, if a group recreates machines. `node` is "" if the provider
    cannot tell which of its request's nodes the machine is (the launch answer can). `reclaim_at` is when the provider
    takes it back, if known. `noticed_at` is an end that was announced once and that no description shows again;
    `reclaim_at` is not later. `message` explains an end that Foreslice did not request. `hosts` is the number of
    machines in its slice: they share TAG_BATCH, and end in one call.
    """

    id: str
    provider_id: str
    offering: OfferingKey
    state: InstanceState
    launched_at: datetime
    tags: FrozenMap[str, str]
    node: str = ""
    reclaim_at: datetime | None = None
    noticed_at: datetime | None = None
    message: str = ""
    hosts: int = 1


@dataclass(frozen=True, slots=True)
class OfferingFailure:
    """The reason why an offering was skipped. In a partial answer it is not always a lack of capacity. The same reason
    excludes the offerings in `also`."""

    offering: OfferingKey
    error: ProviderError
    also: tuple[OfferingKey, ...] = ()


@dataclass(frozen=True, slots=True)
class LaunchAnswer:
    """Instances in the order of the request's nodes, each with its `node`; `missing` are the nodes without one."""

    instances: tuple[Instance, ...] = ()
    missing: tuple[str, ...] = ()
    failures: tuple[OfferingFailure, ...] = ()


@dataclass(frozen=True, slots=True)
class InstancePage:
    """Some instances; `next_page` is "" on the last page."""

    instances: tuple[Instance, ...] = ()
    next_page: str = ""


@dataclass(frozen=True, slots=True)
class TerminateAnswer:
    """Ids that are terminating, ids that the provider does not know (any more), and ids that it did not terminate."""

    terminating: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    failures: FrozenMap[str, ProviderError] = field(default_factory=FrozenMap)


class ReservationState(Enum):
    """PENDING may still fail; only ACTIVE ones can be launched into; ENDED covers every kind of loss."""

    PENDING = "pending"
    SCHEDULED = "scheduled"
    ACTIVE = "active"
    ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Reservation:
    """Reserved capacity. `count` in instances; `available`: how many more would start now (may lag, see consistency).

    `capacity_type` is RESERVED or CAPACITY_BLOCK. `reclaim_at` <= `ends_at` is when the provider starts to take
    machines back in the launch form `form` (the earliest of those in use); None if machines stay (then they cost the
    on-demand price). `note` is a message for users: why it is not usable, or which part is impaired.
    """

    id: str
    capacity_type: CapacityType
    instance_type: str
    zone: str
    state: ReservationState
    count: int
    available: int
    starts_at: datetime
    ends_at: datetime | None = None
    reclaim_at: datetime | None = None
    tags: FrozenMap[str, str] = EMPTY
    form: LaunchForm = LaunchForm.DIRECT
    note: str = ""

    @property
    def offering(self) -> OfferingKey:
        """The offering of a launch into it."""
        return OfferingKey(self.instance_type, self.zone, self.capacity_type, self.id)


class Provider(Protocol):
    """A way to rent machines. Any method may raise ThrottledError, PermissionDeniedError or an UncertainError.

    BusyError, of `launch` and `terminate`: the same call succeeds once another one has ended.
    """

    @property
    def name(self) -> str:
        """Short, stable and lower case; part of objects and metrics."""

    @property
    def traits(self) -> Traits:
        """The properties of the provider."""

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        """Start machines (see the guarantees above). Also raises TemplateError and TokenReusedError."""

    def describe(self, tags: Mapping[str, str], *, page: str = "") -> InstancePage:
        """One page of the instances that carry all of `tags`, ordered by id; terminated ones may be among them."""

    def look_up(self, provider_ids: Sequence[str]) -> Mapping[str, Instance]:
        """The machines that the provider knows, by provider id, with any owner. A machine that `describe` would not
        list, because it lacks the tags, has no tags here. Terminated ones are included as long as they are known."""

    def place(self) -> str:
        """The account (or project) and the region of its calls, as account/region: a machine of another place is
        unknown here. An unknown part is left out; "" if the provider has no such places."""

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        """Terminates machines. Each id is returned in exactly one of the answer's fields."""

    def reservations(self) -> tuple[Reservation, ...]:
        """All reservations this account can launch into, now or later, ordered by id."""

    def offerings(self) -> tuple[OfferingStatus, ...]:
        """The offerings that the provider lists; () leaves them to the catalog."""


@runtime_checkable
class Preflight(Protocol):
    """Optional: a provider that can check its credentials, permissions and parameters without launching."""

    def check(self) -> tuple[Finding, ...]:
        """Look at everything a launch needs."""


@dataclass(frozen=True, slots=True)
class TemplateFault:
    """A fault of a node template: the field to correct, the error's kind and message, and the next step. `kind` is the
    condition's reason. `certain` selects False or Unknown: not certain if the provider could not read the resource."""

    field: str
    kind: str
    message: str
    next_step: str
    certain: bool = True


@dataclass(frozen=True, slots=True)
class TemplateStatus:
    """The state of a node template. `resolved`: the fields of its status with the resolved resources. `zones`: where
    machines can start; () if unknown. `drift`: a change that launches do not follow, with the step to follow it; "" if
    there is none, None if unknown. `groups`: the offerings of its groups, None without groups or if unknown;
    `registers`: the labels and taints of their nodes; `rooms`: their capacity."""

    template: TemplateRef
    resolved: Mapping[str, Any] = EMPTY
    faults: tuple[TemplateFault, ...] = ()
    zones: tuple[str, ...] = ()
    drift: str | None = None
    groups: frozenset[OfferingKey] | None = None
    registers: Mapping[OfferingKey, Registered] = field(default_factory=FrozenMap)
    rooms: Mapping[OfferingKey, Room] = field(default_factory=FrozenMap)


@runtime_checkable
class TemplateJudge(Protocol):
    """Optional: a provider that can report the faults of a node template before a machine is requested."""

    def template_statuses(self) -> tuple[TemplateStatus, ...]:
        """The statuses of all its templates, by name, a few minutes old at most. Raises only if they cannot be
        listed."""


def describe_all(provider: Provider, tags: Mapping[str, str]) -> Iterator[Instance]:
    page = ""
    while True:
        answer = provider.describe(tags, page=page)
        yield from answer.instances
        if not answer.next_page:
            return
        page = answer.next_page
