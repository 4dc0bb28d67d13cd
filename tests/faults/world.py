"""The production loop over the AWS adapter: a simulated cluster whose machines are those of the fake EC2.

The adapter, boto3 and everything above them are the real ones; requests end below boto3, in the fake. Machines join as
their user data says, so a node that was launched wrongly would register wrongly.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, Final

from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.resources import DAEMON_SETS
from autoscaler.cluster.store import Store
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop, Tick
from autoscaler.simulation.kubelets import Kubelets
from autoscaler.simulation.simulation import Simulation
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.kubernetes.labels import LAUNCH_TOKEN
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.taint import Taint
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.instance_type import CapacityType
from providers.aws.provider import Account, AwsProvider
from providers.contract import TAG_CLUSTER, Clock, LaunchRequest, OfferingKey, Provider
from providers.simulated.cloud import Launch
from providers.simulated.machines import Behaviour as Pace
from providers.simulated.machines import Machine
from tests.aws import TEMPLATE, FakeAws, Written, wire
from tests.fakes.ec2 import PROMPT, Behaviour, FakeEc2
from tests.fakes.ec2.machines import Machine as Ec2Machine

# From the launch to the Ready node, of which EC2 calls the first seconds pending.
BOOT: Final = timedelta(seconds=150)
# A machine does not see its own tags, and a member of a group has ours only a while after it was launched.
_UNSEEN: Final = FrozenMap({TAG_CLUSTER: "-"})
_NODE_CONFIG: Final = re.compile(r"application/node\.eks\.aws\n\n(?P<json>\{.*?\n\})\n", re.DOTALL)


class Booted(Machine):
    """An EC2 instance as Kubernetes knows it."""

    @property
    def provider_id(self) -> str:
        return f"aws:///{self.offering.zone}/{self.id}"


def booted(machine: Ec2Machine) -> Booted:
    """An instance of the fake as such a machine."""
    order = machine.order
    held = machine.reservation and order.market == "on-demand"
    kind = CapacityType.RESERVED if held else CapacityType(order.market)
    return Booted(
        id=machine.id,
        node=f"ip-{machine.address.replace('.', '-')}.ec2.internal",
        offering=OfferingKey(order.instance_type, order.zone, kind, machine.reservation),
        launched_at=machine.launched_at,
        tags=FrozenMap(machine.tags),
        ended_at=machine.ends_at,
        stopped=machine.stopped,
        message=machine.reason[1],
    )


@dataclass
class Skewed:
    """The clock of the controller's machine, which somebody may set: `offset` ahead of everybody else's."""

    clock: Clock
    offset: timedelta = timedelta(0)

    def now(self) -> datetime:
        """What that machine takes for the time."""
        return self.clock.now() + self.offset

    def monotonic(self) -> float:
        """Nobody sets this one."""
        return self.clock.monotonic()

    def wait(self, seconds: float) -> None:
        """Waiting is not set either."""
        self.clock.wait(seconds)


@dataclass(frozen=True, slots=True)
class Instances(Mapping[str, Booted]):
    """The instances by id, each converted when it is looked at."""

    found: Mapping[str, Ec2Machine]

    def __getitem__(self, machine: str) -> Booted:
        return booted(self.found[machine])

    def __iter__(self) -> Iterator[str]:
        return iter(self.found)

    def __len__(self) -> int:
        return len(self.found)


class Inside:
    """What kubelets need to know of machines, read from the fake. The counterpart of the simulated cloud's."""

    def __init__(self, fake: FakeEc2) -> None:
        self._fake = fake
        self._requests: dict[str, LaunchRequest] = {}

    @property
    def behaviour(self) -> Pace:
        """How long machines take."""
        return Pace(boot=BOOT, shutdown=self._fake.account.behaviour.shutting_down)

    @property
    def machines(self) -> Mapping[str, Booted]:
        """All machines, by id."""
        self._fake.account.catch_up()
        return Instances(self._fake.account.machines)

    @property
    def launches(self) -> Mapping[str, Launch]:
        """Each machine with what its user data makes of it."""
        return {m.id: Launch(self._request(m), (m.id,), ()) for m in self._fake.account.machines.values()}

    def reclaim_at(self, machine: Machine) -> datetime | None:
        """When EC2 takes it back, as things stand."""
        holding = self._fake.account.holdings.get(machine.offering.reservation)
        return None if holding is None else holding.reclaim_at(self._fake.account.now)

    def _request(self, machine: Ec2Machine) -> LaunchRequest:
        if machine.id not in self._requests:
            self._requests[machine.id] = _request(booted(machine), machine.order.launch["UserData"])
        return self._requests[machine.id]


def _request(machine: Booted, user_data: str) -> LaunchRequest:
    """The launch as the machine learns of it: nodeadm's NodeConfig in its user data."""
    found = _NODE_CONFIG.search(base64.b64decode(user_data).decode())
    if found is None:
        raise AssertionError(f"{machine.id} was launched without a NodeConfig and could never join")
    kubelet = json.loads(found["json"])["spec"]["kubelet"]
    (labels,) = (flag.removeprefix("--node-labels=") for flag in kubelet["flags"] if flag.startswith("--node-labels="))
    config = kubelet.get("config", {})
    taints = tuple(Taint(t["key"], t["value"], t["effect"]) for t in config.get("registerWithTaints", ()))
    reserved = {name: Quantity.parse(amount) for name, amount in config.get("kubeReserved", {}).items()}
    return LaunchRequest(
        token=machine.id,
        nodes=(machine.node,),
        offerings=(machine.offering,),
        tags=_UNSEEN,
        labels=FrozenMap(dict(pair.split("=", 1) for pair in labels.split(","))),
        taints=taints,
        kubelet_reserved=FrozenMap(reserved),
        drivers=("nvidia",),
    )


# The kubelet plugin of dra-driver-nvidia-gpu, as far as the autoscaler looks before it buys.
DRIVER: Final = {
    "metadata": {"name": "nvidia-dra-driver-gpu-kubelet-plugin", "namespace": "default"},
    "spec": {
        "selector": {"matchLabels": {"app": "dra"}},
        "template": {
            "metadata": {"labels": {"app": "dra"}},
            "spec": {
                "nodeSelector": {"nvidia.com/gpu.present": "true"},
                "tolerations": [{"operator": "Exists"}],
                "containers": [
                    {
                        "name": "gpus",
                        "image": "registry.k8s.io/dra-driver-nvidia/dra-driver-nvidia-gpu:v0.4.1",
                        "command": ["gpu-kubelet-plugin"],
                    }
                ],
            },
        },
    },
}


class AwsSimulation(Simulation):
    """A cluster, the fake EC2, and the autoscaler with the AWS adapter between them. `provider` makes the adapter.

    `queue`: EC2 also sends notices, to a queue that the adapter reads.
    """

    kind: ClassVar[str] = "AWSNodeTemplate"
    provider: ClassVar[type[AwsProvider]] = AwsProvider

    def __init__(
        self, *, catalog: Catalog, start: datetime, ec2: Behaviour = PROMPT, queue: bool = False, **options: Any
    ) -> None:
        self._pace = ec2
        self._queue = queue
        super().__init__(catalog=catalog, start=start, **options)
        self.api.create(DAEMON_SETS, DRIVER)
        store = Store(self.api, self._profile)
        inside: Any = Inside(self.fake)
        self._kubelets = Kubelets(self.api, store, inside, catalog, self.clock)

    @cached_property
    def fake(self) -> FakeEc2:
        """The account."""
        return FakeEc2(self.clock, behaviour=self._pace, skew=lambda: self.ours.offset)

    @cached_property
    def ours(self) -> Skewed:
        """The controller's clock."""
        return Skewed(self.clock)

    def run(self, until: datetime, observe: Callable[[Tick], None] = lambda tick: None) -> None:
        """Live until `until` by everybody else's clock."""

        def seen(tick: Tick) -> None:
            if tick.wake_at is not None:
                self._wake_at = tick.wake_at - self.ours.offset
            observe(tick)

        super().run(until, seen)

    @property
    def cluster(self) -> str:
        """The uid that owns its machines."""
        return self._uid

    @cached_property
    def queue(self) -> str:
        """The URL of the queue; "" without one."""
        return self.fake.account.notices.queue("notices").url if self._queue else ""

    def new_loop(self, api: KubernetesApi | None = None, *, catalog: Catalog | None = None) -> Loop:
        """The production loop over the AWS adapter, both with empty memory."""
        wire().fake = self.fake
        known = catalog or self._catalog
        self.loop = Loop(
            api=api or self.api,
            providers=Providers({self.kind: self.adapter(known)}, cluster=self._uid),
            catalog=known,
            profile=self._profile,
            clock=self.ours,
            settings=self._settings,
        )
        return self.loop

    def adapter(self, catalog: Catalog) -> Provider:
        """The adapter, with empty memory."""
        return self.provider(Account(FakeAws(), self.ours, catalog, self._uid), self.written, queue=self.queue)

    @cached_property
    def written(self) -> Written:
        """The node template, which people may edit."""
        return Written()

    def edit(self, number: int) -> None:
        """Somebody changes the node template, or takes it away: every third time."""
        if number % 3:
            self.written.templates["gpu"] = replace(TEMPLATE, tags=FrozenMap({"edit": str(number)}))
        else:
            self.written.templates.pop("gpu", None)

    def mend(self) -> None:
        """The node template is as it was in the beginning."""
        self.written.templates["gpu"] = TEMPLATE


def instances_run(simulation: AwsSimulation) -> Mapping[str, bool]:
    """By provider id, whether each instance of ours there ever was still runs."""
    now, machines = simulation.clock.now(), simulation.fake.account.machines.values()
    ours = (machine for machine in machines if LAUNCH_TOKEN in machine.tags)
    return {booted(machine).provider_id: machine.alive(now) for machine in ours}
