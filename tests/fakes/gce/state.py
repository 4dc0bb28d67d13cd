"""A project's groups, machines and operations, on a virtual clock. Nothing happens but at `catch_up`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final

from instance_catalog.kubernetes.taint import Taint
from providers.contract import Clock
from tests.fakes.gce.calendar import Free
from tests.fakes.gce.holdings import Holding, chips_of
from tests.fakes.gce.holdings import named as read_name
from tests.fakes.gce.quotas import Quotas
from tests.fakes.gce.waiting import Resize, advance

PROJECT: Final = "gpu-project"
NUMBER: Final = "424242424242"
Error = tuple[str, str]  # code and message


@dataclass(frozen=True, slots=True)
class Behaviour:
    """How long things take. `retry` is how often a group tries again what failed; `visibility` is how far lists lag,
    `counting` how far what reservations say is in use."""

    operation: timedelta = timedelta(seconds=1)
    provisioning: timedelta = timedelta(seconds=3)
    staging: timedelta = timedelta(seconds=10)
    stopping: timedelta = timedelta(seconds=30)
    retry: timedelta = timedelta(seconds=30)
    visibility: timedelta = timedelta(0)
    counting: timedelta = timedelta(0)
    page: int = 500


PROMPT: Final = Behaviour()
SLUGGISH: Final = Behaviour(
    operation=timedelta(seconds=5),
    provisioning=timedelta(seconds=20),
    staging=timedelta(seconds=60),
    stopping=timedelta(minutes=2),
    retry=timedelta(minutes=1),
    visibility=timedelta(seconds=45),
    counting=timedelta(seconds=90),
    page=7,
)


@dataclass
class Machine:
    """An instance. `group` is "" for one that no group made; `ended` is when its deletion began, or its stop.

    `restarted` is when somebody started it again, `revived` when Google did; `halted` is its last stop before that.
    """

    id: int
    name: str
    zone: str
    machine_type: str
    model: str
    created: datetime
    group: str = ""
    reservation: str = ""  # as the instance template names it
    ended: datetime | None = None
    deleting: bool = False
    stopped: bool = False
    preempted: bool = False  # Google has begun to take it back
    maintenance: datetime | None = None
    restarts: bool = True  # elsewhere, after maintenance or an error of its host; Spot machines do not
    warning: timedelta = timedelta()  # how long it runs on once it is preempted
    ends: datetime | None = None  # the end of its run duration
    labels: dict[str, str] = field(default_factory=dict)
    restarted: datetime | None = None
    revived: datetime | None = None
    halted: datetime | None = None

    def status(self, now: datetime, behaviour: Behaviour) -> str:
        """As Instance.status; "" when it is gone."""
        if self.ended is not None and now >= self.ended:
            if now < self.ended + behaviour.stopping:
                return "STOPPING"
            return "" if self.deleting else "TERMINATED"
        begun = self.restarted or self.created
        if now < begun + behaviour.provisioning:
            return "PROVISIONING"
        return "STAGING" if now < begun + behaviour.provisioning + behaviour.staging else "RUNNING"

    def last_start(self, now: datetime, behaviour: Behaviour) -> datetime | None:
        """When its host last began to start it; that of an earlier start while it has none again."""
        begun = [self.created + behaviour.provisioning, self.revived]
        begun.append(self.restarted + behaviour.provisioning if self.restarted is not None else None)
        return max((one for one in begun if one is not None and one <= now), default=None)

    def last_stop(self, now: datetime, behaviour: Behaviour) -> datetime | None:
        """When it was last down."""
        over = self.ended + behaviour.stopping if self.ended is not None else None
        return over if over is not None and over <= now else self.halted


@dataclass
class Member:
    """A managed instance: a name that the group keeps, with or without a machine."""

    name: str
    action: str
    tries_at: datetime
    errors: list[Error] = field(default_factory=list)


@dataclass
class Group:
    """A zonal managed instance group with one instance template. `base` is its baseInstanceName."""

    name: str
    zone: str
    base: str
    machine_type: str
    model: str = "STANDARD"
    accelerator: str = "nvidia-h100-80gb"
    accelerators: int = 8
    reservation: str = ""
    affinity: str = ""  # how it uses the reservation, if not "by name alone"
    kube_labels: dict[str, str] = field(default_factory=dict)
    kube_taints: tuple[Taint, ...] = ()
    repairs: bool = False
    regional: bool = False  # its instance template
    bulk: bool = False  # its target size policy
    flexible: bool = False  # an instance flexibility policy
    canary: bool = False  # a second version
    autoscaled: bool = False  # by an autoscaler of Compute Engine
    standby: str = ""  # its standby policy's mode
    updates: str = "OPPORTUNISTIC"  # its update policy
    preemptible: bool = False  # its machines, without the model SPOT
    template_of: str = PROJECT  # the project of its instance template
    slice_of: int = 0  # hosts of the TPU slice that it is; 0: its machines come one by one
    policy: str = ""  # its workload policy, by name
    queues_names: bool = False  # members without a machine have a name and no URL
    undoes: bool = False  # a machine whose creation fails is a member's for a while, as it is being deleted
    pageless: bool = False  # listManagedInstances answers with everything, whatever page is asked for
    members: dict[str, Member] = field(default_factory=dict)
    asked: dict[str, Resize] = field(default_factory=dict)  # its resize requests, by name
    history: list[tuple[datetime | None, str, Error]] = field(default_factory=list)  # what listErrors answers
    history_of: str = "CREATING"  # the action of these errors


@dataclass
class Operation:
    """A zonal operation. `of` are the project's system events, which nobody asked for."""

    name: str
    kind: str
    zone: str
    began: datetime
    done: datetime
    target: str = ""
    target_id: int = 0
    error: tuple[str, str, int] | None = None


class Project:
    """Everything there is. Stock is by (machine type, zone, model)."""

    def __init__(self, clock: Clock, behaviour: Behaviour) -> None:
        self.clock = clock
        self.behaviour = behaviour
        self.groups: dict[tuple[str, str], Group] = {}
        self.machines: dict[int, Machine] = {}
        self.operations: dict[str, Operation] = {}
        self.requests: dict[str, str] = {}  # request id: operation
        self.stock: dict[tuple[str, str, str], int] = {}
        self.errors: dict[tuple[str, str, str], Error] = {}  # what creation fails with instead
        self.late: dict[tuple[str, str, str], Error] = {}  # what operations fail with that ask for machines, as stock
        self.quotas = Quotas()
        self.holdings: list[Holding] = []
        self.free: list[Free] = []
        self.policies: dict[str, dict[str, str]] = {}  # workload policies of us-central1 by name, as the API has them
        self.forgets = False  # whether members show no errors: each is being tried again when somebody looks
        self.parts: dict[str, int] = {}  # group: so many machines of its next resize request come, against all promises
        self._next = 7_000_000_000_000_000_000

    def new_id(self) -> int:
        """An id that was never given before: 64 bits, as Google's are."""
        self._next += 1_000_003
        return self._next

    def add(self, group: Group) -> Group:
        """A group, as if somebody had made it before the test."""
        self.groups[group.zone, group.name] = group
        return group

    def stranger(self, name: str, zone: str, machine_type: str, *, group: str = "") -> Machine:
        """A machine that nobody here asked for."""
        machine = Machine(self.new_id(), name, zone, machine_type, "STANDARD", self.clock.now(), group)
        self.machines[machine.id] = machine
        return machine

    def status(self, machine: Machine) -> str:
        """By now."""
        return machine.status(self.clock.now(), self.behaviour)

    def named(self, name: str, zone: str) -> Machine | None:
        """The machine that has this name now."""
        return next((m for m in self.machines.values() if (m.name, m.zone) == (name, zone) and self.status(m)), None)

    def catch_up(self) -> None:
        """Let everything happen that is due by now."""
        self._stop_bound()
        self._end_runs()
        self._maintain()
        for group in self.groups.values():
            for asked in group.asked.values():
                advance(self, group, asked)
            for member in list(group.members.values()):
                self._member(group, member)

    def _stop_bound(self) -> None:
        """Google stops what was bound to a reservation that has ended. Its disks and its name stay."""
        now = self.clock.now()
        for machine in self.machines.values():
            holding = self.holding(machine.zone, machine.reservation)
            if holding is not None and holding.bound and holding.ends is not None and now >= holding.ends:
                machine.ended = machine.ended or holding.ends

    def _end_runs(self) -> None:
        """A group deletes machines whose run duration is over, and with them their names."""
        for machine in self.machines.values():
            if machine.ends is not None and machine.ended is None and self.clock.now() >= machine.ends:
                machine.ended, machine.deleting = machine.ends, True
                member = self.groups[machine.zone, machine.group].members.get(machine.name)
                if member is not None:
                    member.action, member.tries_at = "DELETING", machine.ends

    def _maintain(self) -> None:
        """Hosts are maintained: their machines start again elsewhere, or stay stopped."""
        now = self.clock.now()
        for machine in self.machines.values():
            due = machine.maintenance
            if due is not None and now >= due and machine.ended is None:
                machine.maintenance = None
                machine.ended = None if machine.restarts else due
                machine.revived = due if machine.restarts else machine.revived
                self.note("compute.instances.terminateOnHostMaintenance", machine, due)

    def holding(self, zone: str, named: str) -> Holding | None:
        """The reservation that an instance template names, with or without a part of it."""
        if not named:
            return None
        text = read_name(named)
        wanted = (zone, text.name, "" if text.owner == NUMBER else text.owner)
        return next((one for one in self.holdings if (one.zone, one.name, one.owner) == wanted), None)

    def used(self, holding: Holding, *, counted: bool = False, block: str = "", sub_block: str = "") -> int:
        """How many machines, or TPU chips, are in it, or in a part of it by name; `counted`: as far as it says so
        already."""
        latest = self.clock.now() - (self.behaviour.counting if counted else timedelta(0))
        return sum(
            chips_of(machine.machine_type) if holding.chips else 1
            for machine in self.machines.values()
            if self.holding(machine.zone, machine.reservation) is holding
            and (not block or read_name(machine.reservation).within(block, sub_block))
            and self.status(machine) not in ("", "TERMINATED")
            and machine.created <= latest
        )

    def _refusal(self, group: Group, at: datetime) -> Error | None:
        """Why the group's reservation gives it no machine."""
        if not group.reservation:
            return None
        holding = self.holding(group.zone, group.reservation)
        if holding is None:
            return "INVALID_USAGE", f"Specified reservations [{group.reservation}] do not exist."
        refusal = holding.refusal(group.machine_type, group.model, self.used(holding), at)
        return refusal or self._refused_in_part(group, holding)

    def _refused_in_part(self, group: Group, holding: Holding) -> Error | None:
        """Why the block or sub-block that the group names gives it no machine."""
        part = read_name(group.reservation)
        if not part.block:
            return None
        there = [one for block in holding.blocks for one in block.sub_blocks if block.name == part.block]
        chosen = [one for one in there if part.sub_block in ("", one.name)]
        if not chosen:
            return "INVALID_USAGE", f"Specified reservations [{group.reservation}] do not exist."
        room = sum(one.hosts - one.degraded for one in chosen if one.status == "READY")
        if self.used(holding, block=part.block, sub_block=part.sub_block) >= room:
            text = f"Specified reservation '{group.reservation}' does not have available resources for the request."
            return "INVALID_USAGE", text
        return None

    def _member(self, group: Group, member: Member) -> None:
        machine, now = self.named(member.name, group.zone), self.clock.now()
        if member.action == "DELETING":
            if machine is None and now >= member.tries_at:
                del group.members[member.name]
            return
        if machine is not None:
            if member.action in ("CREATING", "RECREATING") and self.status(machine) == "RUNNING":
                member.action, member.errors = "NONE", []
            if machine.ended is not None and not machine.stopped and group.repairs:
                machine.deleting = True
                member.action, member.tries_at = "RECREATING", now
            return
        if member.action in ("CREATING", "RECREATING") and now >= member.tries_at:
            self._create(group, member)

    def _create(self, group: Group, member: Member) -> None:
        """Try at the moment that the group tries, whenever somebody looks."""
        now = member.tries_at
        error = self.lacks(group, now)
        if error is not None:
            member.errors = [error]
            member.tries_at = self.clock.now() + self.behaviour.retry
            group.history.append((now, member.name, error))
            return
        self.start(group, member.name, now)

    def lacks(self, group: Group, at: datetime, machines: int = 1) -> Error | None:
        """Why the group can start no so many machines."""
        key = (group.machine_type, group.zone, group.model)
        error = self.errors.get(key) or self._refusal(group, at) or self.quotas.exceeded(self, group, machines)
        if error is None and self.stock.get(key, 1 << 30) < self._used(key) + machines:
            resource = f"projects/{PROJECT}/zones/{group.zone}"
            text = f"The zone '{resource}' does not have enough resources available to fulfill the request."
            error = ("ZONE_RESOURCE_POOL_EXHAUSTED", text)
        return error

    def member(self, group: Group, name: str) -> None:
        """A name that the group keeps from now on."""
        group.members[name] = Member(name, "CREATING", self.clock.now())

    def waits(self, group: Group, name: str) -> None:
        """A name that the group has for a resize request, and tries nothing for."""
        group.members[name] = Member(name, "CREATING", datetime.max.replace(tzinfo=UTC))

    def fails(self, group: Group, name: str, at: datetime) -> None:
        """A member whose host turned out not to be there; the group tries again for ever."""
        error = ("ZONE_RESOURCE_POOL_EXHAUSTED", f"{name} could not be placed")
        member = group.members[name]
        member.errors, member.tries_at = [error], at + self.behaviour.retry
        group.history.append((at, name, error))

    def start(self, group: Group, name: str, at: datetime, *, lasts: timedelta | None = None) -> None:
        """A machine of a group."""
        machine = Machine(self.new_id(), name, group.zone, group.machine_type, group.model, at, group.name)
        machine.restarts = group.model != "SPOT"
        machine.reservation = group.reservation
        machine.ends = at + lasts if lasts is not None else None
        self.machines[machine.id] = machine
        self.note("insert", machine)

    def _used(self, key: tuple[str, str, str]) -> int:
        return sum((m.machine_type, m.zone, m.model) == key and bool(self.status(m)) for m in self.machines.values())

    def begin(self, kind: str, zone: str, target: str, error: tuple[str, str, int] | None = None) -> Operation:
        """An operation that is under way."""
        now = self.clock.now()
        name = f"operation-{len(self.operations)}"
        found = Operation(name, kind, zone, now, now + self.behaviour.operation, target, 0, error)
        self.operations[name] = found
        return found

    def note(self, kind: str, machine: Machine, at: datetime | None = None) -> None:
        """An event of a machine, as an operation that is over."""
        now = at or self.clock.now()
        name = f"systemevent-{len(self.operations)}"
        self.operations[name] = Operation(name, kind, machine.zone, now, now, machine.name, machine.id)

    def events(self) -> Iterator[Operation]:
        """Operations that the project's users did not ask for."""
        return (one for one in self.operations.values() if one.kind.startswith("compute.instances."))

    # --- what happens to machines ------------------------------------------------------------------------------

    def preempt(self, machine: Machine) -> None:
        """Take a Spot machine back, after its warning. What is on its way out already, goes no later for that."""
        machine.preempted = True
        machine.ended = machine.ended or self.clock.now() + machine.warning
        self.note("compute.instances.preempted", machine)

    def stop(self, machine: Machine) -> None:
        """Somebody stops it; a group leaves such a machine alone. One that is taken back stops by itself."""
        if machine.preempted:
            return
        machine.ended, machine.stopped = self.clock.now(), True

    def start_again(self, machine: Machine) -> None:
        """Somebody starts what has stopped: the same machine, with the same id and creation."""
        if self.status(machine) != "TERMINATED":
            raise ValueError(f"{machine.name} has not stopped")
        machine.halted = machine.last_stop(self.clock.now(), self.behaviour)
        machine.ended, machine.stopped, machine.preempted = None, False, False
        machine.restarted = self.clock.now()

    def host_error(self, machine: Machine) -> None:
        """Its host fails, and it starts again on another one, under the same id; or it stays stopped."""
        now, again = self.clock.now(), machine.restarts
        machine.revived, machine.ended = (now, machine.ended) if again else (machine.revived, machine.ended or now)
        self.note("compute.instances.hostError", machine)
