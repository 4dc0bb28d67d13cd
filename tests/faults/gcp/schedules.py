"""Random schedules of work and trouble over the production loop and the Google Cloud adapter, in virtual time.

The invariants are those of invariants.py. What is Google's own: operations that fail late, groups that try for ever,
machines that are made anew under the same name, and strangers in the same groups.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from datetime import timedelta
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from autoscaler.cluster.api import key_of, list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES
from autoscaler.loop.loop import Tick
from instance_catalog.dataclass import replace
from instance_catalog.types.catalog import Catalog
from providers.gcp.names import batch_of, read
from tests.crash.life import START, small_catalog
from tests.fakes.gce.errors import CUT_AFTER, CUT_BEFORE, THROTTLED, UNAVAILABLE, Fault, LateError, refused
from tests.fakes.gce.errors import ApiError as HttpError
from tests.fakes.gce.state import PROMPT, SLUGGISH, Behaviour, Machine
from tests.faults import invariants
from tests.faults.gcp.project_rules import PLACES, ProjectRules
from tests.faults.gcp.world import ACCELERATORS, KIND, ZONES, GcpSimulation, booted, machines_run
from tests.faults.living import live
from tests.faults.schedules import GANG_OF, PODS_OF, POOL, RECOVERY, RESYNC, scenario
from tests.faults.shaky import Mishap, Shaky
from tests.faults.witness import Witness

CALLS = (
    "createInstances",
    "deleteInstances",
    "listManagedInstances",
    "instances.aggregatedList",
    "operations.aggregatedList",
    "zoneOperations.get",
    "instanceGroupManagers.get",
    "instanceGroupManagers.list",
    "instanceTemplates.get",
    "instances.get",
    "resizeRequests.insert",
    "resizeRequests.get",
    "resizeRequests.cancel",
    "resizeRequests.delete",
)
CHANGES = ("createInstances", "deleteInstances", "resizeRequests.insert", "resizeRequests.cancel", "resize")
FAULTS = {
    "is cut after the effect": CUT_AFTER,
    "is cut before the effect": CUT_BEFORE,
    "fails inside after the effect": Fault(HttpError(500, "internalError"), effect=True),
    "fails inside": Fault(HttpError(500, "internalError")),
    "finds the front end overloaded": UNAVAILABLE,
    "finds the front end overloaded after the effect": Fault(HttpError(503, "backendError"), effect=True),
    "finds what it changes in use": refused("resourceInUseByAnotherResource"),
    "is throttled": THROTTLED,
    "gets a code nobody knows": refused("teapot"),
    "exceeds a quota": refused("quotaExceeded", 403, "Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally."),
}
LATE = {
    "a stock-out in the operation": LateError("ZONE_RESOURCE_POOL_EXHAUSTED"),
    "a quota in the operation": LateError("QUOTA_EXCEEDED", status=403),
    "an operation that yields nothing": LateError(""),
}
CHEAPEST = "g2-standard-4"
POOLS = POOL.replace("KIND", KIND).replace("us-east-1a, us-east-1b", ", ".join(ZONES))
# Until something happens to machines, somebody must have asked for them and they must have come.
PAUSES = (1, 10, 30, 60, 150, 170, 300, 900)


class GcpWitness(Witness):
    """Google's ids are not part of a Node's providerID, so they are told as that."""

    simulation: GcpSimulation

    def terminates(self, ids: Iterable[str]) -> None:
        ids = tuple(ids)
        machines = self.simulation.fake.project.machines
        told = [booted(machines[int(one)]).provider_id for one in ids if one.isdecimal() and int(one) in machines]
        super().terminates([*told, *(one for one in ids if not one.isdecimal())])


class GcpSchedules(ProjectRules, RuleBasedStateMachine):
    """A cluster to which things happen. `told` counts them over all schedules of a run, and the schedules that had
    them, by the `name` of what is drawn."""

    name: ClassVar[str] = "Google Cloud"
    told: ClassVar[Counter[str]] = Counter()
    world: ClassVar[type[GcpSimulation]] = GcpSimulation
    types: ClassVar[tuple[str, ...]] = tuple(ACCELERATORS)
    calls: ClassVar[tuple[str, ...]] = CALLS
    pools: ClassVar[str] = POOLS

    @initialize(
        pace=st.sampled_from([PROMPT, SLUGGISH]),
        copies=st.integers(1, 3),
        lead=st.sampled_from([1, 30, 200, 600]),
        queues=st.booleans(),
        scarce=st.sampled_from([9, 9, 2, 1, 0]),
    )
    def begin(self, pace: Behaviour, copies: int, lead: int, queues: bool, scarce: int) -> None:
        """`scarce`: so many machines that are cheapest are there in each zone."""
        self.scarce = {(CHEAPEST, zone, "SPOT"): scarce for zone in ZONES}
        self.start(pace, copies=copies, lead=lead, queues=queues)

    def start(self, pace: Behaviour, *, copies: int, lead: int, queues: bool) -> None:
        """Some pods are there when the trouble begins, with or without machines. `queues`: gangs are asked for by
        resize requests."""
        self.simulation = self.world(catalog=self.catalog(), start=START, gce=pace)
        self.simulation.sleeps = True
        self.simulation.add(scenario(self.pools))
        witness = GcpWitness(self.simulation.api, self.machines, self.observes)
        witness.simulation = self.simulation
        self.witness = witness
        self.api = Shaky(self.simulation.api, witness=witness)
        self.simulation.template.found = replace(self.simulation.template.found, resize_requests=queues)
        self.restart()
        self.submitted = 0
        self.excused: set[str] = set()
        self.strangers: list[Machine] = []
        self.seen: set[str] = set()
        self.simulation.fake.project.stock.update(self.scarce)
        self.told["schedules"] += 1
        self.prepare()
        self.submit(copies, minutes=20, gang=False)
        if queues:
            self.submit(3, minutes=5, gang=True)
        self.live(timedelta(seconds=lead))

    def catalog(self) -> Catalog:
        """What may be bought."""
        return small_catalog(*self.types)

    def prepare(self) -> None:
        """Whatever else there is from the beginning."""

    def saw(self, what: str, times: int = 1) -> None:
        """It happened in this schedule."""
        self.seen.add(what)
        self.told[what] += times

    @rule(copies=st.integers(1, 3), minutes=st.integers(1, 20), gang=st.booleans())
    def submit(self, copies: int, minutes: int, gang: bool) -> None:
        if self.submitted == 4:
            return
        self.submitted += 1
        label = f"scheduling.x-k8s.io/pod-group: gang-{self.submitted}" if gang else ""
        text = PODS_OF.format(number=self.submitted, copies=copies, minutes=minutes, gang=label)
        if gang:
            text = GANG_OF.format(number=self.submitted, copies=copies) + text
            self.excused |= {f"default/work-{self.submitted}-{number}" for number in range(copies)}
        self.simulation.add(scenario(text))
        self.told["pods"] += copies
        self.live(timedelta(seconds=1))

    @rule(call=st.sampled_from(CALLS), name=st.sampled_from(sorted(FAULTS)), times=st.integers(1, 4))
    def trouble(self, call: str, name: str, times: int) -> None:
        self.simulation.fake.faults.inject(call, *[FAULTS[name]] * times)
        self.saw(f"a call {name}", times)

    @rule(call=st.sampled_from(CHANGES), name=st.sampled_from(sorted(LATE)))
    def late_trouble(self, call: str, name: str) -> None:
        self.simulation.fake.faults.inject(call, Fault(LATE[name]))
        self.saw(name)

    @rule(after=st.integers(0, 12), mishap=st.sampled_from(Mishap))
    def mishap(self, after: int, mishap: Mishap) -> None:
        self.api.mishaps.append((after, mishap))
        self.saw(f"a write: {mishap.value}")

    @rule(place=st.sampled_from(PLACES), machines=st.integers(0, 2))
    def limit(self, place: tuple[str, str, str], machines: int) -> None:
        self.simulation.fake.project.stock[place] = machines
        self.saw("a limit")

    @precondition(lambda self: self.running())
    @rule(index=st.integers(0, 7))
    def loses(self, index: int) -> None:
        """Google takes a machine back."""
        self.simulation.fake.project.preempt(self.chosen(index))
        self.saw("a machine preempted")

    @precondition(lambda self: self.running())
    @rule(index=st.integers(0, 7))
    def stops(self, index: int) -> None:
        """A person stops a machine."""
        self.simulation.fake.project.stop(self.chosen(index))
        self.saw("a machine stopped")

    @precondition(lambda self: len(self.strangers) < 2)
    @rule(group=st.integers(0, 7))
    def stranger(self, group: int) -> None:
        """Somebody adds a machine to one of the groups: a surge upgrade, or a person."""
        project = self.simulation.fake.project
        groups = list(project.groups.values())
        found = groups[group % len(groups)]
        name = f"{found.base}-x{len(self.strangers)}yz"
        self.strangers.append(project.stranger(name, found.zone, found.machine_type, group=found.name))
        self.saw("a stranger")

    @rule(group=st.integers(0, 7))
    def changes_the_template(self, group: int) -> None:
        """A person takes a group out of the GCPNodeTemplate, or puts it back, whatever is going on in it."""
        found, all_ = self.simulation.template.found, self.simulation.groups
        chosen = all_[group % len(all_)]
        kept = tuple(one for one in all_ if (one in found.groups) is not (one == chosen))
        self.simulation.template.found = replace(found, groups=kept)
        self.saw("a group in or out of the template")

    @rule(index=st.integers(0, 7))
    def deletes_a_node(self, index: int) -> None:
        """A person orders a node to go, whatever runs there."""
        found = list_all(self.simulation.api, PROVISIONED_NODES)[0]
        if found:
            self.simulation.api.delete(PROVISIONED_NODES, found[index % len(found)]["metadata"]["name"])
            self.saw("a node deleted by a person")

    @rule(seconds=st.sampled_from(PAUSES))
    def passes(self, seconds: int) -> None:
        self.live(timedelta(seconds=seconds))

    @rule(seconds=st.sampled_from(PAUSES))
    def passes_on(self, seconds: int) -> None:
        """As often again: what does not last has no effect."""
        self.live(timedelta(seconds=seconds))

    @rule(seconds=st.sampled_from(PAUSES))
    def passes_further(self, seconds: int) -> None:
        """And again."""
        self.live(timedelta(seconds=seconds))

    @rule()
    def dies(self) -> None:
        self.restart()
        self.saw("a restart")

    @invariant()
    def everything_holds(self) -> None:
        if not hasattr(self, "simulation"):
            return
        self.witness.looks()
        alive = Counter(map(self.batch, self.counted()))
        more = invariants.more_than_asked(alive, self.api.batches)
        invariants.hold([*self.witness.found, *more, *self.wrong_in_project()])
        touched = [m.name for m in self.strangers if m.ended is not None]
        assert not touched, f"machines of strangers were ended: {touched}"

    def teardown(self) -> None:
        """The trouble is over: everything that was asked for runs to its end, and nothing is left."""
        if not hasattr(self, "simulation"):
            return
        project = self.simulation.fake.project
        self.mend()
        end = self.simulation.clock.now() + RECOVERY
        while self.simulation.clock.now() < end and not (self.done() and self.simulation.clock.now() > START):
            self.live(RESYNC)
        self.everything_holds()
        pods = [pod for pod in list_all(self.simulation.api, PODS)[0] if key_of(pod) not in self.excused]
        found = [*invariants.kept_waiting(pods, bad=self.excused)]
        found += invariants.left_over("machines", (m.name for m in self.simulation.ours()))
        for resource in (PROVISIONED_NODES, LAUNCH_BATCHES, NODES):
            names = (one["metadata"]["name"] for one in list_all(self.simulation.api, resource)[0])
            strange = {machine.name for machine in self.strangers}
            found += invariants.left_over(str(resource), (name for name in names if name not in strange))
        kept = (name for group in project.groups.values() for name in group.members)
        held = (name for group in project.groups.values() for name, one in group.asked.items() if one.held)
        found += invariants.left_over("resize requests that wait", held)
        invariants.hold([*found, *invariants.left_over("names in groups", kept)])
        self.look_back()
        self.told["resize requests"] += self.simulation.fake.calls["resizeRequests.insert"]
        self.told["machines"] += len(project.machines)
        self.told["calls"] += self.simulation.fake.calls.total()

    def mend(self) -> None:
        """No more trouble."""
        project = self.simulation.fake.project
        self.simulation.fake.faults.clear()
        self.calm_down()
        self.api.mishaps.clear()
        self.simulation.template.found = replace(self.simulation.template.found, groups=self.simulation.groups)
        project.stock.clear()
        for machine in project.machines.values():
            if machine.stopped and not machine.deleting:
                machine.stopped, machine.ended = False, None

    def look_back(self) -> None:
        """Count the schedules in which something happened, as opposed to being about to happen."""
        project = self.simulation.fake.project
        groups, machines = project.groups.values(), project.machines.values()
        happened = {
            "a call that met a fault": bool(self.simulation.fake.faults.met),
            "a change that met a fault": any(self.simulation.fake.faults.met[call] for call in CHANGES),
            "a group that could not start a machine": any(one.history for one in groups),
            "a resize request": self.simulation.fake.calls["resizeRequests.insert"] > 0,
            "a Spot machine": any(one.model == "SPOT" for one in machines),
            "no machine at all": not machines,
        }
        self.seen |= {what for what, whether in happened.items() if whether}
        self.told[f"{self.name}: schedules"] += 1
        for what in self.seen:
            self.told[f"{self.name}: schedules with {what}"] += 1

    def machines(self) -> dict[str, bool]:
        """By provider id, whether each machine of ours runs."""
        return machines_run(self.simulation)

    def counted(self) -> list[Machine]:
        """The machines of which a batch has no more than nodes. Those of a gang that came in part are ended, and the
        launch goes on in another group as soon as Google has agreed to that."""
        return [machine for machine in self.simulation.ours() if not machine.deleting]

    def running(self) -> list[Machine]:
        """Machines of ours that run."""
        if not hasattr(self, "simulation"):
            return []
        status = self.simulation.fake.project.status
        return [machine for machine in self.simulation.ours() if status(machine) == "RUNNING"]

    def chosen(self, index: int) -> Machine:
        """One of them."""
        found = self.running()
        return found[index % len(found)]

    def batch(self, machine: Machine) -> str:
        """The LaunchBatch that its name was chosen for."""
        launched = read(machine.name, self.simulation.uid)
        uid = self.simulation.uid
        return next((b for b in self.api.batches if launched and batch_of(uid, b) == launched.batch), machine.name)

    def done(self) -> bool:
        """Whether no pod waits or runs, and no machine of ours is left."""
        pods = list_all(self.simulation.api, PODS)[0]
        waits = any(pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") for pod in pods)
        objects = [
            one for kind in (PROVISIONED_NODES, LAUNCH_BATCHES) for one in list_all(self.simulation.api, kind)[0]
        ]
        return not waits and not objects and not self.simulation.ours()

    def restart(self) -> None:
        """A controller that begins with empty memory."""
        self.begins_to_compare()
        self.witness.follows(self.simulation.new_loop(self.api))

    def live(self, by: timedelta) -> None:
        """Let time pass; a controller that dies is started again with empty memory, and so is one that gives up."""
        live(self.simulation, by, look=self._look, restart=self.restart)

    def _look(self, tick: Tick) -> None:
        groups = self.simulation.fake.project.groups.values()
        if any(one.held and one.error for group in groups for one in group.asked.values()):
            self.seen.add("a resize request that waits")
        self.witness.looks()
        self.compares_machines(tick)
