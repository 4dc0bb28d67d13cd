"""What other people do in the account and to the pool: launch templates that break, groups that give our tags to their
machines, machines that they start, a pool that is told to observe."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import CAPACITY_POOLS, PROVISIONED_NODES
from instance_catalog.kubernetes import labels
from providers.aws.node_groups.groups import SLOT_TAG
from providers.contract import TAG_CLUSTER, TAG_POOL
from tests.fakes.ec2.geography import Subnet
from tests.fakes.ec2.machines import Machine
from tests.faults import invariants
from tests.faults.groups import GroupSimulation, add_group
from tests.faults.scenes import PLACES, TEMPLATE_CODES

if TYPE_CHECKING:
    from tests.faults.world import AwsSimulation

# Somebody else's group, which gives its machines the tags of our cluster and pool.
THEIRS: Final = "theirs"


class AccountRules:
    """Part of a schedule. `raised`: how many machines others asked our groups for."""

    told: ClassVar[Counter[str]]
    simulation: AwsSimulation

    def begin_account(self, *, twins: bool) -> None:
        """Nobody has done anything yet."""
        self.raised = 0
        self.edited = False
        self._since: Counter[str] | None = None  # the calls there were when the pools began to observe
        self._others: dict[str, str] = {}  # machines of others, and what they were like
        self._found: list[str] = []
        if twins:
            subnets = self.simulation.fake.account.geography.subnets
            first = next(subnet for subnet in subnets.values() if subnet.zone == PLACES[0][1])
            small = Subnet("subnet-0fffffffffffffff0", first.zone, addresses=2, tags=dict(first.tags))
            subnets[small.id] = small

    def observes(self) -> bool:
        """Whether all pools are in mode Observe."""
        return self._since is not None

    @rule(code=st.sampled_from(TEMPLATE_CODES), minutes=st.integers(1, 30))
    def breaks_the_templates(self, code: str, minutes: int) -> None:
        """What launch templates name is gone for a while."""
        account = self.simulation.fake.account
        account.break_templates(code, until=account.now + timedelta(minutes=minutes))
        self.told["launch templates that name what is gone"] += 1

    # A machine that a person asks a group for is taken for the launch that raises its size.
    @precondition(lambda self: type(self.simulation) is not GroupSimulation or not self.raised)
    @rule(number=st.integers(0, 7))
    def edits_the_node_template(self, number: int) -> None:
        """A person changes the node template, or takes it away, whatever launches are under way."""
        self.simulation.edit(number)
        self.edited = True
        self.told["a node template edited"] += 1

    @rule()
    def mends_the_node_template(self) -> None:
        """It is as it was in the beginning."""
        self.simulation.mend()

    @precondition(lambda self: not isinstance(self.simulation, GroupSimulation))
    @rule()
    def deletes_the_templates(self) -> None:
        """A person deletes our launch templates."""
        templates = self.simulation.fake.account.templates
        ours = [key for key, found in templates.items() if found.name.startswith("foreslice-")]
        for key in ours:
            del templates[key]
        self.told["launch templates deleted by a person"] += len(ours)

    @rule(labelled=st.booleans())
    def strangers_come(self, labelled: bool) -> None:
        """Somebody's group has the tags of our cluster, and gives them to its machines; `labelled`: also our pool's."""
        fake = self.simulation.fake
        if THEIRS in fake.groups.by_name:
            return
        group = add_group(fake, THEIRS, *PLACES[0], "on-demand")
        group.tags = {TAG_CLUSTER: (self.simulation.cluster, True), SLOT_TAG: ("no slot", False)}
        if labelled:
            group.tags[TAG_POOL] = ("gpu", True)
        group.desired = 1
        fake.groups.catch_up()
        self.told["a machine of somebody else with our tags"] += 1

    @precondition(lambda self: isinstance(self.simulation, GroupSimulation))
    @rule()
    def groups_propagate(self) -> None:
        """Somebody tags our groups so that they give the cluster's tag to every machine."""
        for name in self.simulation.groups:
            self.simulation.fake.groups.by_name[name].tags[TAG_CLUSTER] = (self.simulation.cluster, True)
        self.told["groups that propagate the cluster's tag"] += 1

    @precondition(lambda self: type(self.simulation) is GroupSimulation and not self.edited)
    @rule(index=st.integers(0, 7))
    def raises_a_group(self, index: int) -> None:
        """A person asks one of our groups for a machine more."""
        fake, names = self.simulation.fake, self.simulation.groups
        fake.groups.by_name[names[index % len(names)]].desired += 1
        fake.groups.catch_up()
        self.raised += 1
        self.told["a group resized by a person"] += 1

    @rule(observes=st.booleans())
    def sets_the_mode(self, observes: bool) -> None:
        """A person tells the pools to observe, or to act again."""
        if not observes:
            self.act_again()
        elif self._since is None and self._set_mode("Observe"):
            self._since = Counter(self.simulation.fake.calls)
            self.told["pools told to observe"] += 1

    def act_again(self) -> None:
        """All pools act."""
        self._set_mode("Act")
        self._since = None

    def look_at_account(self) -> None:
        """After each round."""
        account = self.simulation.fake.account
        strangers = {m.id: _like(m) for m in account.machines.values() if _strange(m)}
        mine = list_all(self.simulation.api, PROVISIONED_NODES)[0]
        found = [
            *invariants.strangers_taken(mine, strangers),
            *invariants.strangers_changed(self._others, strangers),
        ]
        self._others |= {key: like for key, like in strangers.items() if key not in self._others}
        if self._since is not None:
            found += invariants.changed_in_observe(self.simulation.fake.calls - self._since)
        self._found += [text for text in found if text not in self._found]

    def found_in_account(self) -> list[str]:
        """What is wrong so far."""
        self.look_at_account()
        return self._found

    def _set_mode(self, mode: str) -> bool:
        """Whether there is a pool to tell."""
        pools = list_all(self.simulation.api, CAPACITY_POOLS)[0]
        for pool in pools:
            self.simulation.api.patch(CAPACITY_POOLS, pool["metadata"]["name"], {"spec": {"mode": mode}})
        return bool(pools)


def _strange(machine: Machine) -> bool:
    """Whether somebody else's group started it: one of ours tags it a moment later, and then it is not."""
    return machine.group == THEIRS


def _like(machine: Machine) -> str:
    ended = machine.reason[0] == "Client.UserInitiatedShutdown"
    own = labels.LAUNCH_TOKEN in machine.tags
    return f"{'ended by a call' if ended else 'left alone'}{' and tagged as launched by us' if own else ''}"
