"""One cluster with machines of two clouds: both adapters, each over the fake of its cloud, under one loop."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from functools import cached_property
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.store import Store
from autoscaler.composition.gcp import written_batches
from autoscaler.execution.launch import Providers
from autoscaler.loop.loop import Loop
from autoscaler.simulation.kubelets import Kubelets
from instance_catalog.kubernetes.labels import LAUNCH_TOKEN
from providers.aws.provider import Account, AwsProvider
from providers.contract import TAG_BATCH, Provider
from providers.gcp.provider import GcpProvider, Project
from tests.aws import FakeAws, wire
from tests.aws import Written as AwsWritten
from tests.crash.life import SMALL
from tests.fakes.ec2 import FakeEc2
from tests.fakes.gce.state import PROMPT, SLUGGISH, Behaviour
from tests.faults import invariants
from tests.faults.gcp.schedules import GcpSchedules
from tests.faults.gcp.world import ACCELERATORS, KIND, GcpSimulation, machines_run
from tests.faults.scenes import CALLS, FAULTS, POOL
from tests.faults.world import Inside, booted
from tests.gcp import gcp, in_process, server

AWS_KIND = "AWSNodeTemplate"
# Beside that of the other cloud, of which it has the claim template.
AWS_POOL = POOL.replace("KIND", AWS_KIND).replace("metadata: {name: gpu}", "metadata: {name: gpu-aws}", 1)
AWS_POOL = AWS_POOL.partition("---")[0]


class BothKubelets:
    """The machines of both clouds, each of which registers as its cloud's do."""

    def __init__(self, *kubelets: Kubelets) -> None:
        self._kubelets = kubelets

    def step(self) -> bool:
        """Let each take a step; whether anything was written."""
        wrote = [kubelets.step() for kubelets in self._kubelets]
        return any(wrote)

    def next_moment(self) -> datetime | None:
        """When something will happen by itself."""
        moments = [moment for kubelets in self._kubelets if (moment := kubelets.next_moment()) is not None]
        return min(moments, default=None)


class BothClouds(GcpSimulation):
    """The cluster of the Google Cloud adapter, with the AWS adapter beside it. `over_http`: Google's clients ask the
    fake over a socket."""

    over_http: bool = False

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        inside: Any = Inside(self.ec2)
        store = Store(self.api, self._profile)
        both: Any = BothKubelets(self._kubelets, Kubelets(self.api, store, inside, self._catalog, self.clock))
        self._kubelets = both

    @cached_property
    def ec2(self) -> FakeEc2:
        """The account."""
        return FakeEc2(self.clock, skew=lambda: self.ours_clock.offset)

    def new_loop(self, api: KubernetesApi | None = None, **_: Any) -> Loop:
        """The production loop over both adapters, all with empty memory."""
        server().fake = in_process().session.fake = self.fake
        wire().fake = self.ec2
        objects = ProviderObjects(api or self.api)
        project = Project(gcp() if self.over_http else in_process(), self.ours_clock, self._uid)
        account = Account(FakeAws(), self.ours_clock, self._catalog, self._uid)
        providers: dict[str, Provider] = {
            AWS_KIND: AwsProvider(account, AwsWritten()),
            KIND: GcpProvider(project, self.template, written=lambda: written_batches(objects)),
        }
        self.loop = Loop(
            api=api or self.api,
            providers=Providers(providers, cluster=self._uid),
            catalog=self._catalog,
            profile=self._profile,
            clock=self.ours_clock,
            settings=self._settings,
        )
        return self.loop

    def ours_by_cloud(self) -> Mapping[str, int]:
        """How many machines of ours cost money, by cloud."""
        return {"aws": len(self.ec2.account.alive()), "gcp": len(self.ours())}


class BothSchedules(GcpSchedules):
    """Schedules over both clouds: pods go where it is cheapest, or where there is anything left, and both fail."""

    name: ClassVar[str] = "both clouds"
    told: ClassVar[Counter[str]] = Counter()
    world = BothClouds
    types = (*SMALL, *ACCELERATORS)
    # Google's machines are cheaper; what is more than two goes to the other cloud.
    pools = f"{GcpSchedules.pools.replace('{nodes: 8}', '{nodes: 2}')}---{AWS_POOL}"
    simulation: BothClouds

    @initialize(
        pace=st.sampled_from([PROMPT, SLUGGISH]),
        copies=st.integers(1, 3),
        lead=st.sampled_from([1, 30, 200, 600]),
        queues=st.booleans(),
        scarce=st.sampled_from([9, 9, 2, 1, 0]),
        socket=st.integers(0, 9),
    )
    def begin(self, pace: Behaviour, copies: int, lead: int, queues: bool, scarce: int, socket: int = 0) -> None:
        """`socket`: every tenth schedule asks Google's fake over HTTP."""
        self.over_http = socket == 9
        super().begin(pace, copies, lead, queues, scarce)
        if self.over_http:
            self.seen.add("HTTP")

    def restart(self) -> None:
        self.simulation.over_http = self.over_http
        super().restart()

    @rule(call=st.sampled_from(CALLS), name=st.sampled_from(sorted(FAULTS)), times=st.integers(1, 4))
    def trouble_at_aws(self, call: str, name: str, times: int) -> None:
        self.simulation.ec2.faults.inject(call, *[FAULTS[name]] * times)
        self.told["a call of EC2 in trouble"] += times

    def machines(self) -> dict[str, bool]:
        now, machines = self.simulation.clock.now(), self.simulation.ec2.account.machines.values()
        ours = {booted(one).provider_id: one.alive(now) for one in machines if LAUNCH_TOKEN in one.tags}
        return {**machines_run(self.simulation), **ours}

    def done(self) -> bool:
        return super().done() and not self.simulation.ec2.account.alive()

    def teardown(self) -> None:
        if not hasattr(self, "simulation"):
            return
        self.simulation.ec2.faults.clear()
        super().teardown()
        account = self.simulation.ec2.account
        alive = Counter(one.tags.get(TAG_BATCH, "") for one in account.alive())
        found = invariants.more_than_asked(alive, self.api.batches)
        invariants.hold([*found, *invariants.left_over("machines of EC2", (one.id for one in account.alive()))])
        self.told["machines of EC2"] += len(account.machines)
