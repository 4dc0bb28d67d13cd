"""What happens in a project without anybody's asking, and what people do to the cluster and its controller.

Maintenance that is announced, preemption with a notice, hosts that fail, zones that do not answer, quotas, credentials
that have expired, a clock that somebody sets, pools that change to mode Observe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from autoscaler.cluster.api import key_of, list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, LAUNCH_BATCHES, PODS, PROVISIONED_NODES
from autoscaler.loop.loop import Tick
from tests.fakes.gce.rates import LIMITS
from tests.fakes.gce.recreation import recreate, repair
from tests.fakes.gce.state import Machine
from tests.faults import invariants
from tests.faults.gcp.world import ACCELERATORS, MODELS, ZONES, booted

if TYPE_CHECKING:
    from tests.faults.gcp.world import GcpSimulation

PLACES: Final = [(kind, zone, model) for kind in ACCELERATORS for zone in ZONES for model in MODELS]
_QUOTA: Final = ("QUOTA_EXCEEDED", "Quota 'NVIDIA_L4_GPUS' exceeded. Limit: 0.0 in region us-central1.")
# So long a machine may be in nobody's books: a launch whose answer was lost is repeated, or its machine is an orphan.
UNBOOKED: Final = timedelta(hours=1)
# So long a node may keep a machine that was made anew, while nothing fails: lists and clocks lag for minutes.
MISTAKEN: Final = timedelta(minutes=15)


class ProjectRules:
    """Part of a schedule."""

    told: ClassVar[Counter[str]]
    simulation: GcpSimulation
    excused: set[str]
    _since: Counter[str] | None = None  # the calls there were when the pools began to observe

    if TYPE_CHECKING:

        def saw(self, what: str, times: int = 1) -> None: ...
        def running(self) -> list[Machine]: ...
        def chosen(self, index: int) -> Machine: ...
        def batch(self, machine: Machine) -> str: ...

    @precondition(lambda self: self.running())
    @rule(index=st.integers(0, 7), minutes=st.sampled_from([1, 5, 20, 60]), restarts=st.booleans())
    def announces_maintenance(self, index: int, minutes: int, restarts: bool) -> None:
        """A host will be maintained; then the machine starts again elsewhere, or stays stopped."""
        machine = self.chosen(index)
        machine.maintenance = self.simulation.clock.now() + timedelta(minutes=minutes)
        machine.restarts = restarts
        self.saw("maintenance announced")

    @precondition(lambda self: self.running())
    @rule(index=st.integers(0, 7))
    def warns_and_preempts(self, index: int) -> None:
        """Google takes a machine back, which runs on for half a minute."""
        machine = self.chosen(index)
        machine.warning = timedelta(seconds=30)
        self.simulation.fake.project.preempt(machine)
        self.saw("a machine preempted with a notice")

    @precondition(lambda self: self.running())
    @rule(index=st.integers(0, 7))
    def host_fails(self, index: int) -> None:
        """A host fails: its machine starts again elsewhere, under the same id."""
        self.simulation.fake.project.host_error(self.chosen(index))
        self.saw("a host that failed")

    @precondition(lambda self: self.running())
    @rule(index=st.integers(0, 7))
    def repairs(self, index: int) -> None:
        """The group makes a machine anew under the same name, and an event says so."""
        repair(self.simulation.fake.project, self._over(self.chosen(index)))
        self.saw("a machine made anew")

    @precondition(lambda self: self.running())
    @rule(index=st.integers(0, 7), unseen=st.booleans())
    def recreates(self, index: int, unseen: bool) -> None:
        """So does a person, a rolling update or a health check, and no event says so. `unseen`: it takes no time."""
        machine, project = self._over(self.chosen(index)), self.simulation.fake.project
        if unseen:
            repair(project, machine, told=False)
        else:
            recreate(project, machine)
        self.saw("a machine recreated without an event")

    def _over(self, machine: Machine) -> Machine:
        """The machine; what runs there is gone, and nobody ordered that."""
        pods = list_all(self.simulation.api, PODS, fields={"spec.nodeName": machine.name})[0]
        self.excused |= set(map(key_of, pods))
        return machine

    @rule(zone=st.sampled_from(ZONES), answers=st.sampled_from(["nothing", "a part", "everything"]))
    def zone_is_silent(self, zone: str, answers: str) -> None:
        """A zone does not answer: lists fail, or are partial, until it answers again."""
        fake = self.simulation.fake
        for silent, when in ((fake.unreachable, "nothing"), (fake.partial, "a part")):
            silent.add(zone) if answers == when else silent.discard(zone)
        if answers != "everything":
            self.saw(f"a zone that answers {answers}")

    @rule(place=st.sampled_from(PLACES), exceeded=st.booleans())
    def quota(self, place: tuple[str, str, str], exceeded: bool) -> None:
        """A quota is used up, which groups say of single machines; or it is raised."""
        errors = self.simulation.fake.project.errors
        if exceeded:
            errors[place] = _QUOTA
            self.saw("a quota that is used up")
        else:
            errors.pop(place, None)

    @rule(expired=st.booleans())
    def credentials(self, expired: bool) -> None:
        """Those of the controller expire, or somebody renews them."""
        self.simulation.fake.expired = expired
        if expired:
            self.saw("credentials that have expired")

    @rule(hours=st.sampled_from([-12, -6, -3, -1, 1, 3, 6, 12]))
    def sets_the_clock(self, hours: int) -> None:
        """Somebody sets the clock of the controller's machine."""
        self.simulation.ours_clock.offset += timedelta(hours=hours)
        self.begins_to_compare()
        self.saw("a clock that was set")

    @rule(observes=st.booleans())
    def sets_the_mode(self, observes: bool) -> None:
        """A person sets mode Observe, or Act again."""
        if not observes:
            self.act_again()
        elif self._since is None and self._set_mode("Observe"):
            self._since = Counter(self.simulation.fake.calls)
            self.saw("pools told to observe")

    def observes(self) -> bool:
        """Whether all pools are in mode Observe."""
        return self._since is not None

    def act_again(self) -> None:
        """All pools act."""
        self._set_mode("Act")
        self._since = None

    def calm_down(self) -> None:
        """The project answers, and the controller may ask it."""
        fake, self.simulation.ours_clock.offset = self.simulation.fake, timedelta(0)
        fake.unreachable.clear()
        fake.partial.clear()
        fake.project.errors.clear()
        fake.expired = False
        self.act_again()

    def wrong_in_project(self) -> Iterator[str]:
        """What must not be, whatever happens."""
        fake = self.simulation.fake
        yield from invariants.asked_too_often(fake.failed)
        yield from invariants.over_quota(fake.rates.most, LIMITS)
        if self._since is not None:
            yield from invariants.changed_in_observe(fake.calls - self._since)
        yield from invariants.unbooked(self._unbooked(), now=self.simulation.clock.now(), patience=UNBOOKED)

    def begins_to_compare(self) -> None:
        """Nothing is concluded from ids for minutes after the clock was set, or a controller has begun."""
        self.__dict__["mistaken_since"] = {}

    def compares_machines(self, tick: Tick) -> None:
        """After a round: which nodes stay although their machine is another one than at first."""
        of: dict[str, int] = self.__dict__.setdefault("machine_of", {})
        since: dict[str, datetime] = self.__dict__.setdefault("mistaken_since", {})
        machines = self.simulation.fake.project.machines.values()
        now = {booted(one).provider_id: one.id for one in machines if one.ended is None}
        found = set()
        for node in self.simulation.api.stored(PROVISIONED_NODES):
            machine = now.get(invariants.machine_of(node))
            if machine is not None and machine != of.setdefault(node["metadata"]["uid"], machine):
                found |= set() if invariants.goes(node) else {node["metadata"]["name"]}
        seen = found if not tick.troubles and not self.observes() else set()
        for name in since.keys() - seen:
            del since[name]
        for name in seen:
            since.setdefault(name, self.simulation.clock.now())
        invariants.hold([*invariants.mistaken(since, now=self.simulation.clock.now(), patience=MISTAKEN)])

    def _unbooked(self) -> Mapping[str, datetime]:
        """Since when machines that cost money are in no ProvisionedNode and in no LaunchBatch, by name."""
        api, now = self.simulation.api, self.simulation.clock.now()
        since: dict[str, datetime] = self.__dict__.setdefault("unbooked_since", {})
        nodes: Sequence[Any] = api.stored(PROVISIONED_NODES)
        known = {invariants.machine_of(node) for node in nodes}
        # A launch whose outcome is not known yet has its batch, and pools that observe end no orphans.
        batches = {batch["metadata"]["name"] for batch in api.stored(LAUNCH_BATCHES)}
        alive = [] if self.observes() else [one for one in self.simulation.ours() if one.ended is None]
        unknown = (one for one in alive if booted(one).provider_id not in known)
        found = {one.name for one in unknown if self.batch(one) not in batches}
        for name in since.keys() - found:
            del since[name]
        for name in found:
            since.setdefault(name, now)
        return since

    def _set_mode(self, mode: str) -> bool:
        """Whether there is a pool to tell."""
        pools = list_all(self.simulation.api, CAPACITY_POOLS)[0]
        for pool in pools:
            self.simulation.api.patch(CAPACITY_POOLS, pool["metadata"]["name"], {"spec": {"mode": mode}})
        return bool(pools)
