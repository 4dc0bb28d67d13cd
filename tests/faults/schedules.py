"""Random schedules of work and trouble over the production loop, the AWS adapter and the fake EC2, in virtual time.

Whatever comes together — calls that time out after their effect, cut connections, faults and throttles of EC2, empty
pools, interruptions, lost machines, API conflicts, lost writes, a controller that dies anywhere — the invariants of
invariants.py hold: no pod is taken from its node without a reason, no healthy node ends, no machine is doubled, nobody
waits for somebody else's trouble, and nothing is left once the work is done and the trouble is over.
"""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from functools import cache, partial
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from autoscaler.cluster.api import Object, key_of, list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES, RESOURCE_SLICES
from autoscaler.loop.loop import Tick
from autoscaler.simulation.scenario import Scenario, parse_scenario
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from tests.crash.life import START, small_catalog
from tests.fakes.ec2 import PROMPT, SLUGGISH, Behaviour, FakeEc2
from tests.fakes.ec2.machines import Machine
from tests.faults import invariants
from tests.faults.account_rules import THEIRS, AccountRules
from tests.faults.groups import GroupSimulation, SizedGroupSimulation
from tests.faults.living import live
from tests.faults.machine_rules import MachineRules
from tests.faults.oddities import ODD_PODS, Oddity, foreign_node, foreign_pod
from tests.faults.scenes import CALLS, FAULTS, GANG_OF, GROUP_CALLS, PLACES, PODS_OF, POOL, QUEUE_CALLS, RARE_CALLS
from tests.faults.shaky import Mishap, Shaky
from tests.faults.witness import Witness
from tests.faults.world import AwsSimulation, booted, instances_run

# The longest back-off that the faults above lead to is an hour.
RECOVERY = timedelta(hours=4)
RESYNC = timedelta(minutes=5)


@cache
def scenario(text: str) -> Scenario:
    return parse_scenario(text)


class Schedules(AccountRules, MachineRules, RuleBasedStateMachine):
    """A cluster to which things happen. `told` counts them over all schedules of a run.

    `worlds`: where nodes come from; half of the schedules launch their machines themselves.
    """

    told: ClassVar[Counter[str]] = Counter()
    worlds: ClassVar[tuple[type[AwsSimulation], ...]] = (
        AwsSimulation,
        AwsSimulation,
        GroupSimulation,
        SizedGroupSimulation,
    )

    @initialize(
        pace=st.sampled_from([PROMPT, SLUGGISH]),
        world=st.integers(0, 3),
        queue=st.booleans(),
        leaves_out=st.integers(0, 3),
        whole=st.booleans(),
        twins=st.booleans(),
    )
    def begin(
        self, pace: Behaviour, world: int, queue: bool, leaves_out: int = 0, whole: bool = False, twins: bool = False
    ) -> None:
        """`leaves_out` and `whole`: see Behaviour. `twins`: a zone has two subnets, one of them small."""
        chosen = self.worlds[world % len(self.worlds)]
        pace = replace(pace, leaves_out=leaves_out, refuses_templates=whole)
        self.simulation = chosen(catalog=small_catalog(), start=START, ec2=pace, queue=queue)
        self.simulation.add(scenario(POOL.replace("KIND", chosen.kind)))
        self.witness = Witness(self.simulation.api, partial(instances_run, self.simulation), self.observes)
        self.begin_account(twins=twins)
        self.api = Shaky(self.simulation.api, witness=self.witness)
        self.restart()
        self.stranger: tuple[str, str] | None = None  # somebody else's Node, and the uid of its pod
        self.submitted = 0
        self.excused: set[str] = set()
        self.odd: set[Oddity] = set()
        self.lost = 0
        self.told["schedules"] += 1
        self.told[f"schedules with {chosen.__name__}"] += 1
        self.told["schedules with a queue of notices"] += queue
        self.told["schedules with answers that lack optional members"] += leaves_out > 0
        self.told["schedules with two subnets in a zone"] += twins

    @property
    def fake(self) -> FakeEc2:
        """The account."""
        return self.simulation.fake

    @rule(copies=st.integers(1, 3), minutes=st.integers(1, 20), gang=st.booleans())
    def submit(self, copies: int, minutes: int, gang: bool) -> None:
        if self.submitted == 4:
            return
        self.submitted += 1
        label = f"scheduling.x-k8s.io/pod-group: gang-{self.submitted}" if gang else ""
        text = PODS_OF.format(number=self.submitted, copies=copies, minutes=minutes, gang=label)
        if gang:
            text = GANG_OF.format(number=self.submitted, copies=copies) + text
        self.simulation.add(scenario(text))
        if gang:  # when a machine of a gang is lost, the pods that are left wait for a member that nobody makes again
            self.excused |= {f"default/work-{self.submitted}-{number}" for number in range(copies)}
        self.told["pods"] += copies
        self.live(timedelta(seconds=1))

    @rule(
        call=st.sampled_from(CALLS + RARE_CALLS),
        name=st.sampled_from(sorted(FAULTS)),
        times=st.integers(1, 4),
    )
    def trouble(self, call: str, name: str, times: int) -> None:
        self.fake.faults.inject(call, *[FAULTS[name]] * times)
        self.told[f"a call {name}"] += times

    @rule(
        call=st.sampled_from(CALLS + RARE_CALLS),
        names=st.lists(st.sampled_from(sorted(FAULTS)), min_size=2, max_size=4),
    )
    def troubles_in_turn(self, call: str, names: list[str]) -> None:
        """Calls of one kind meet one fault after another: their effect is lost, say, and the repetition is refused."""
        self.fake.faults.inject(call, *[FAULTS[name] for name in names])
        self.told["different faults in turn on one call"] += len(set(names)) > 1

    @precondition(lambda self: isinstance(self.simulation, GroupSimulation))
    @rule(
        call=st.sampled_from(GROUP_CALLS),
        names=st.lists(st.sampled_from(sorted(FAULTS)), min_size=2, max_size=4),
    )
    def troubles_with_groups_in_turn(self, call: str, names: list[str]) -> None:
        self.troubles_in_turn(call, names)

    @precondition(lambda self: isinstance(self.simulation, GroupSimulation))
    @rule(call=st.sampled_from(GROUP_CALLS), name=st.sampled_from(sorted(FAULTS)), times=st.integers(1, 4))
    def trouble_with_groups(self, call: str, name: str, times: int) -> None:
        self.trouble(call, name, times)

    @precondition(lambda self: self.simulation.queue)
    @rule(call=st.sampled_from(QUEUE_CALLS), name=st.sampled_from(sorted(FAULTS)), times=st.integers(1, 4))
    def trouble_with_notices(self, call: str, name: str, times: int) -> None:
        self.trouble(call, name, times)

    @rule(after=st.integers(0, 12), mishap=st.sampled_from(Mishap))
    def mishap(self, after: int, mishap: Mishap) -> None:
        self.api.mishaps.append((after, mishap))
        self.told[f"a write: {mishap.value}"] += 1

    @rule(place=st.sampled_from(PLACES), minutes=st.integers(1, 30))
    def shortage(self, place: tuple[str, str], minutes: int) -> None:
        now = self.simulation.clock.now()
        self.fake.account.stock.shortage(*place, since=now, until=now + timedelta(minutes=minutes))
        self.told["a shortage"] += 1

    @rule(place=st.sampled_from(PLACES), market=st.sampled_from(["spot", "on-demand"]), machines=st.integers(0, 2))
    def limit(self, place: tuple[str, str], market: str, machines: int) -> None:
        self.fake.account.stock.limit(*place, machines, market=market)
        self.told["a limit"] += 1

    @precondition(lambda self: self.fake.account.alive())
    @rule(index=st.integers(0, 7), notice=st.booleans())
    def loses(self, index: int, notice: bool) -> None:
        alive = self.fake.account.alive()
        machine = alive[index % len(alive)].id
        if notice:
            self.fake.account.interrupt(machine)
        else:
            self.fake.account.lose(machine)
        self.lost += 1
        self.told["a machine interrupted" if notice else "a machine lost"] += 1

    @rule(oddity=st.sampled_from(Oddity))
    def comes_oddly(self, oddity: Oddity) -> None:
        """Something legal that is hard to handle; whether its own pod runs is not asked, whether others' do is."""
        grouped = isinstance(self.simulation, GroupSimulation)
        if oddity in self.odd or (oddity is Oddity.LONG_POOL and (grouped or self.observes())):
            return  # that pool acts
        self.odd.add(oddity)
        self.excused |= ODD_PODS
        self.simulation.add(scenario(oddity.value.replace("KIND", self.simulation.kind)))
        self.told[f"odd: {oddity.name}"] += 1
        self.live(timedelta(seconds=1))

    @rule(index=st.integers(0, 7))
    def deletes_a_batch(self, index: int) -> None:
        """A person deletes a LaunchBatch in the middle of its work."""
        found = list_all(self.simulation.api, LAUNCH_BATCHES)[0]
        if found:
            self.simulation.api.delete(LAUNCH_BATCHES, found[index % len(found)]["metadata"]["name"])
            self.told["a batch deleted by a person"] += 1

    @rule(index=st.integers(0, 7))
    def deletes_a_node(self, index: int) -> None:
        """A person orders a node to go, whatever runs there."""
        found = list_all(self.simulation.api, PROVISIONED_NODES)[0]
        if found:
            self.simulation.api.delete(PROVISIONED_NODES, found[index % len(found)]["metadata"]["name"])
            self.told["a node deleted by a person"] += 1

    @rule(index=st.integers(0, 7))
    def loses_its_address(self, index: int) -> None:
        """A machine is lost, and a machine of somebody else gets its address and so its Node's name."""
        nodes = {node["metadata"]["name"]: node for node in list_all(self.simulation.api, NODES)[0]}
        alive = [machine for machine in self.fake.account.alive() if booted(machine).node in nodes]
        if self.stranger is not None or not alive:
            return
        machine = alive[index % len(alive)]
        name, api = booted(machine).node, self.simulation.api
        self.fake.account.lose(machine.id)
        self.lost += 1
        for pod in list_all(api, PODS, fields={"spec.nodeName": name})[0]:
            api.delete(PODS, pod["metadata"]["name"], namespace=pod["metadata"]["namespace"], grace_seconds=0)
        for piece in list_all(api, RESOURCE_SLICES, fields={"spec.nodeName": name})[0]:
            api.delete(RESOURCE_SLICES, piece["metadata"]["name"])
        api.delete(NODES, name)
        api.create(NODES, foreign_node(name))
        self.stranger = name, str(api.create(PODS, foreign_pod(name))["metadata"]["uid"])
        self.told["an address used again"] += 1

    @rule(hours=st.sampled_from([-12, -6, -3, -1, 1, 3, 6, 12]))
    def sets_the_clock(self, hours: int) -> None:
        """Somebody sets the clock of the controller's machine."""
        self.simulation.ours.offset += timedelta(hours=hours)
        self.told["a clock that was set"] += 1

    @rule(seconds=st.sampled_from([1, 10, 60, 150, 170, 300, 900]))
    def passes(self, seconds: int) -> None:
        self.live(timedelta(seconds=seconds))

    @rule()
    def dies(self) -> None:
        self.restart()
        self.told["a restart"] += 1

    @invariant()
    def everything_holds(self) -> None:
        if not hasattr(self, "simulation"):
            return
        self.witness.looks()
        alive = Counter(map(_batch, self.ours()))
        asked = [*invariants.more_than_asked(alive, self.api.batches), *invariants.asked_too_often(self.fake.failed)]
        invariants.hold([*self.witness.found, *asked, *self.found_in_account()])

    def teardown(self) -> None:
        """The trouble is over: everything that was asked for runs to its end, and nothing is left."""
        if not hasattr(self, "simulation"):
            return
        self.fake.faults.clear()
        self.calm_down()
        self.simulation.mend()
        self.act_again()
        self.api.mishaps.clear()
        self.simulation.ours.offset = timedelta(0)  # as long as it is wrong, AWS refuses every call
        for kind, zone in PLACES:
            for market in ("spot", "on-demand"):
                self.fake.account.stock.limit(kind, zone, 100, market=market)
        end = self.simulation.clock.now() + RECOVERY
        while self.simulation.clock.now() < end and not (self.done() and self.simulation.clock.now() > START):
            self.live(RESYNC)
        self.everything_holds()
        waiting = invariants.kept_waiting(self.pods(), bad=self.excused)
        invariants.hold([*waiting, *self.left(), *self.strangers_lost()])
        alive = [m for m in self.strangers() if m.alive(self.simulation.clock.now()) and m.group != THEIRS]
        expected = self.lost + self.raised
        assert len(alive) <= expected, f"{len(alive)} unknown machines, {expected} were lost or asked for by others"
        self.told["machines"] += len(self.fake.account.machines)
        self.told["calls"] += self.fake.calls.total()
        for launch in ("CreateFleet", "RunInstances", "LaunchInstances", "SetDesiredCapacity"):
            self.told[f"calls of {launch}"] += self.fake.calls[launch]

    def strangers_lost(self) -> list[str]:
        """What somebody else had on a Node of his own."""
        if self.stranger is None:
            return []
        name, uid = self.stranger
        there = {node["metadata"]["name"] for node in list_all(self.simulation.api, NODES)[0]}
        gone = [] if name in there else [f"invariant 4: Node {name} of somebody else is gone"]
        return [*gone, *invariants.lost({"default/stranger": uid}, list_all(self.simulation.api, PODS)[0])]

    def left(self) -> list[str]:
        """Machines and objects that nobody needs any more."""
        strange = [] if self.stranger is None else [self.stranger[0]]
        found = [*invariants.left_over("machines", (f"{m.id} of {_batch(m)}" for m in self.ours()))]
        # The Node of a machine that is not ours is not ours to delete either.
        theirs = {booted(machine).provider_id for machine in self.strangers()}
        for resource in (PROVISIONED_NODES, LAUNCH_BATCHES, NODES):
            objects = list_all(self.simulation.api, resource)[0]
            names = [one["metadata"]["name"] for one in objects if one["spec"].get("providerID") not in theirs]
            names = [name for name in names if resource != NODES or name not in strange]
            found += invariants.left_over(str(resource), names)
        return found

    def ours(self) -> list[Machine]:
        """The machines that cost money, but those of groups that do not have our tags, or not yet."""
        return [machine for machine in self.fake.account.alive() if not machine.group or _batch(machine)]

    def strangers(self) -> list[Machine]:
        """The other machines there were: in the end those that a group started in place of one that was lost."""
        return [m for m in self.fake.account.machines.values() if m.group and not _batch(m)]

    def pods(self) -> list[Object]:
        """Those that the controller is asked to serve."""
        excused = self.excused | _NOT_AWAITED
        return [pod for pod in list_all(self.simulation.api, PODS)[0] if key_of(pod) not in excused]

    def done(self) -> bool:
        """Whether no pod waits or runs, and no machine of ours is left."""
        every = [pod for pod in list_all(self.simulation.api, PODS)[0] if key_of(pod) not in _NOT_AWAITED]
        waits = any(pod.get("status", {}).get("phase") not in ("Succeeded", "Failed") for pod in every)
        objects = [
            item for kind in (PROVISIONED_NODES, LAUNCH_BATCHES) for item in list_all(self.simulation.api, kind)[0]
        ]
        return not waits and not objects and not self.ours()

    def restart(self) -> None:
        """A controller that begins with empty memory."""
        self.witness.follows(self.simulation.new_loop(self.api))

    def live(self, by: timedelta) -> None:
        """Let time pass; a controller that dies is started again with empty memory, and so is one that gives up."""
        live(self.simulation, by, look=self._look, restart=self.restart)

    def _look(self, _: Tick) -> None:
        self.witness.looks()
        self.look_at_account()


# Pods that may wait, or run, for ever.
_NOT_AWAITED = ODD_PODS | {"default/stranger"}


def _batch(machine: Machine) -> str:
    return machine.tags.get(labels.LAUNCH_BATCH_TAG, "")
