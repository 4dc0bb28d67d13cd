"""Random schedules over node pools that are TPU slices of four hosts each, in virtual time.

What must hold beside the invariants of all schedules: no group ever has machines of two launches, and a part of a slice
does not stay. A part is what is left after a host was lost, or what Google started of a request against all promises.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, ClassVar, Final

from hypothesis import strategies as st
from hypothesis.stateful import rule

from autoscaler.cluster.resources import DAEMON_SETS
from instance_catalog.kubernetes import labels
from providers.gcp.names import read
from providers.gcp.node_template.template import GroupTemplate
from tests.fakes.gce.fake import FakeGce
from tests.fakes.gce.state import Group
from tests.faults import invariants
from tests.faults.gcp.schedules import CALLS, FAULTS, GcpSchedules
from tests.faults.gcp.world import KIND, GcpSimulation
from tests.faults.world import DRIVER
from tests.gcp import Written

TYPE: Final = "ct6e-standard-4t"
ZONE: Final = "us-central1-a"
HOSTS: Final = 4
SLICES: Final = 2
OWN_CALLS: Final = ("resize", "resizeRequests.insert", "resizeRequests.get", "resizeRequests.list")
# Pods are evicted and stop; then calls may be throttled or cut. A machine that runs longer is a leak.
CLEAN_UP: Final = timedelta(minutes=45)
POOL: Final = f"""
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {{name: gpu}}
spec:
  mode: Act
  capacityTypes: [on-demand]
  nodeTemplateRef: {{kind: {KIND}, name: gpu}}
  drivers: {{profiles: ["tpu:topology=4x4"]}}
  limits: {{nodes: {HOSTS * SLICES}}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: gpu}}
spec:
  spec:
    devices: {{requests: [{{name: gpu, exactly: {{deviceClassName: tpu.google.com, allocationMode: All}}}}]}}
"""


def _driver() -> dict[str, Any]:
    """The DaemonSet of the TPU driver."""
    found: dict[str, Any] = copy.deepcopy(DRIVER)
    found["metadata"]["name"] = "tpu-dra-driver"
    template = found["spec"]["template"]["spec"]
    template["nodeSelector"] = {labels.GKE_TPU_TOPOLOGY: "4x4"}
    image = "registry.k8s.io/dra-driver-google/dra-driver-google-tpu:v0.2.0"
    template["containers"] = [{"name": "tpus", "image": image, "command": ["tpu-dra-kubeletplugin"]}]
    return found


class SliceSimulation(GcpSimulation):
    """A project with two node pools, each of them one slice."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.api.create(DAEMON_SETS, _driver())

    @cached_property
    def fake(self) -> FakeGce:
        fake = FakeGce(self.clock, self._pace)
        own = {
            labels.POOL: "gpu",
            labels.CAPACITY_TYPE: "on-demand",
            labels.CLOUD: "gcp",
            labels.GKE_TPU_TOPOLOGY: "4x4",
            labels.GKE_TPU_ACCELERATOR: "tpu-v6e-slice",
        }
        for number in range(SLICES):
            base = f"slice-{number}"
            fake.project.add(Group(f"{base}-grp", ZONE, base, TYPE, kube_labels=own, slice_of=HOSTS))
        return fake

    @cached_property
    def template(self) -> Written:
        return Written(GroupTemplate("gpu", groups=self.groups, tried=frozenset(self.groups)))

    def hosts(self) -> dict[str, set[str]]:
        """The machines of ours that are not on their way out, by group."""
        found: dict[str, set[str]] = {}
        for machine in self.ours():
            if machine.ended is None:
                found.setdefault(machine.group, set()).add(machine.name)
        return found


class SliceSchedules(GcpSchedules):
    """Slices to which things happen."""

    name: ClassVar[str] = "TPU slices"
    told: ClassVar[Counter[str]] = Counter()
    world: ClassVar[type[GcpSimulation]] = SliceSimulation
    types: ClassVar[tuple[str, ...]] = (TYPE,)
    pools: ClassVar[str] = POOL
    calls: ClassVar[tuple[str, ...]] = (*CALLS, *OWN_CALLS)

    @rule(call=st.sampled_from(OWN_CALLS), name=st.sampled_from(sorted(FAULTS)), times=st.integers(1, 4))
    def trouble_of_slices(self, call: str, name: str, times: int) -> None:
        self.simulation.fake.faults.inject(call, *[FAULTS[name]] * times)
        self.saw(f"a call of slices {name}", times)

    @rule(machines=st.integers(0, HOSTS * SLICES))
    def limits_hosts(self, machines: int) -> None:
        self.simulation.fake.project.stock[TYPE, ZONE, "STANDARD"] = machines
        self.saw("a limit of hosts")

    @rule(index=st.integers(0, SLICES - 1), come=st.integers(0, HOSTS - 1))
    def breaks_a_promise(self, index: int, come: int) -> None:
        """Google starts a part of what it should start all of or none."""
        self.simulation.fake.project.parts[f"slice-{index}-grp"] = come
        self.saw("a part of a slice started")

    def strange(self) -> Iterator[str]:
        """What is wrong with the slices now."""
        simulation: Any = self.simulation
        now: datetime = simulation.clock.now()
        since: dict[str, datetime] = self.__dict__.setdefault("part_since", {})
        uid = simulation.uid
        for group, names in simulation.hosts().items():
            launches = {(one.batch, one.token) for name in names if (one := read(name, uid)) is not None}
            if len(launches) > 1:
                yield f"invariant 2: {group} has machines of {len(launches)} slices"
            if len(names) > HOSTS:
                yield f"invariant 2: {group} has {len(names)} machines"
        # As long as pools observe, nobody ends a part.
        hosts = {} if self.observes() else simulation.hosts()
        parts = {group for group, names in hosts.items() if len(names) < HOSTS}
        self.told["parts of slices seen"] += len(parts - since.keys())
        for group in parts:
            if now - since.setdefault(group, now) > CLEAN_UP:
                yield f"invariant 9: a part of {group} runs since {since[group]}"
        for group in since.keys() - parts:
            del since[group]

    def _look(self, tick: Any) -> None:
        super()._look(tick)
        invariants.hold([*self.strange()])
