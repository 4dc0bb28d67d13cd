"""A storm of kills: whoever leads is killed, again and again, while pods come and go and nodes empty within seconds.

Two replicas with a Lease, real processes on a real control plane, whose API server and etcd are killed as well. Pods
are created again at the moment at which nodes are drained for being empty, which is when a pod can be taken along. What
must hold is in tests/faults/invariants.py. A leader is killed after a number of changes to nodes, which the seed says,
so that a slow machine lets it do as much as a fast one.
"""

from __future__ import annotations

import random
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from typing import Final

from autoscaler.cluster.api import ApiError, NotFoundError, Object, key_of
from autoscaler.cluster.resources import LAUNCH_BATCHES, LEASES, NODES, PODS, PROVISIONED_NODES, RESOURCE_CLAIMS
from tests.e2e.harness.gpu_pods import TEMPLATE, pool
from tests.e2e.harness.installation import BRISK, NAME, NAMESPACE, Controller, Installation
from tests.faults import invariants

SEED: Final = 7
KILLS: Final = 30
PODS_IN_ALL: Final = 100
WAVE: Final = 20
# A wave whose pods run is looked at so often before its pods end: an eviction may come seconds after the binding.
LOOKS: Final = 40
# A wave of pods makes some 200 changes that are seen.
CHANGES: Final = 40
PATIENCE: Final = 1200.0  # seconds; a death takes 5 to 15, by how busy the machine is
SETTINGS: Final = {**BRISK, "lease": {"duration": "4s", "renewDeadline": "3s", "retry": "1s"}}
POOL: Final = pool(mode="Act", limits={"nodes": 60}, disruption={"after": "2s"})


class Storm:
    """Replicas, their killer and the people who create and delete pods, all moved on by `step`."""

    def __init__(self, cluster: Installation, stack: ExitStack) -> None:
        self._cluster = cluster
        self._stack = stack
        self._chance = random.Random(SEED)
        self._replicas: list[tuple[str, Controller]] = []
        self._started = 0
        self._leader = ""
        self._due = 0
        self._versions: set[tuple[str, str]] = set()  # of nodes of either kind: uid and resourceVersion
        self.kills = 0
        self.created = 0
        self._mine: dict[str, str] = {}  # the pods that nobody but the controller could take away, with their uids
        self._ran: set[str] = set()
        self._looks = 0
        self._ending: set[str] = set()  # pods that a person is deleting
        self.found: list[str] = []
        self.nodes: dict[str, str] = {}  # every Node there was: its uid, and its name

    def start(self) -> None:
        """One replica more."""
        log = f"replica-{self._started}.log"
        self._started += 1
        self._replicas.append((log, self._stack.enter_context(self._cluster.controller(log))))

    def step(self) -> bool:
        """Look, and do what is due; whether the storm is over."""
        self._look()
        self._revive()
        assert self.found == [], f"after {self.kills} kills and {self.created} pods"
        self._kill()
        self._delete()
        if self.kills >= KILLS and self.created >= PODS_IN_ALL:
            return True
        self._tend()
        return False

    def over(self) -> bool:
        """End the pods that are left; whether nothing is left of the storm."""
        self._look()
        self._revive()
        assert self.found == [], "after the storm"
        left = self._cluster.api.list(PODS, namespace="default").items
        self._mine, self._ending = {}, {key_of(pod) for pod in left}
        self._delete()
        return not any(self._cluster.api.list(kind).items for kind in (NODES, PROVISIONED_NODES, LAUNCH_BATCHES))

    def _look(self) -> None:
        """Every invariant that can be seen from outside."""
        pods = self._cluster.api.list(PODS, namespace="default").items
        provisioned = self._cluster.api.list(PROVISIONED_NODES).items
        nodes = self._cluster.api.list(NODES).items
        self.nodes.update({node["metadata"]["uid"]: node["metadata"]["name"] for node in nodes})
        seen = (found["metadata"] for found in (*provisioned, *nodes))
        self._versions.update((found["uid"], found["resourceVersion"]) for found in seen)
        self._ran |= {key_of(pod) for pod in pods if pod.get("status", {}).get("phase") == "Running"}
        gone = list(invariants.lost(self._mine, pods))
        found = [*gone, *invariants.doubled(provisioned)]
        self.found += found
        there = {key_of(pod): pod for pod in pods if "deletionTimestamp" not in pod["metadata"]}
        self._mine = {key: uid for key, uid in self._mine.items() if key in there}

    def _revive(self) -> None:
        """A replica that has ended is replaced, as by a Deployment; it may end by itself when it has lost its Lease."""
        for log, replica in list(self._replicas):
            if not replica.lives:
                if "LeadershipLost" not in replica.log and "could not renew its Lease" not in replica.log:
                    self.found.append(f"invariant 2: the process ends: {replica.log[-500:]}")
                self._replicas.remove((log, replica))
                self.start()

    def _kill(self) -> None:
        """Whoever leads, when so much has changed since it was seen to lead; as many in each wave of pods."""
        leader = self._holder()
        if leader != self._leader:
            self._leader, self._due = leader, len(self._versions) + self._chance.randint(0, CHANGES)
        if not leader or len(self._versions) < self._due or self.kills >= KILLS * self.created // PODS_IN_ALL:
            return
        for log, replica in list(self._replicas):
            if f'"{leader}"' in "\n".join(_led(replica)):
                replica.stop(signal.SIGKILL)
                self._replicas.remove((log, replica))
                self.kills += 1
                self.start()
                if self.kills == KILLS // 3:
                    self._cluster.control_plane.kill_api_server()
                if self.kills == 2 * KILLS // 3:
                    self._cluster.control_plane.kill_etcd()

    def _holder(self) -> str:
        with suppress(NotFoundError):
            lease = self._cluster.api.get(LEASES, NAME, namespace=NAMESPACE)
            return str(lease["spec"].get("holderIdentity") or "")
        return ""

    def _tend(self) -> None:
        """Waves of pods: all run for a while, all end, and the next ones come when their nodes begin to go."""
        if self._mine:
            if self._ran >= self._mine.keys():
                self._looks += 1
            if self._looks > LOOKS:
                self._ending |= self._mine.keys()
                self._mine, self._looks = {}, 0
        elif self._nodes_go():
            names = [f"pod-{self.created + number}" for number in range(WAVE)]
            self.created += WAVE
            with ThreadPoolExecutor(WAVE) as people:
                made = list(people.map(lambda name: self._cluster.api.create(PODS, _pod(name)), names))
            self._mine = {key_of(pod): pod["metadata"]["uid"] for pod in made}

    def _nodes_go(self) -> bool:
        """Whether the time has come for pods: a node is being drained, or there is none."""
        phases = {n.get("status", {}).get("phase", "") for n in self._cluster.api.list(PROVISIONED_NODES).items}
        return not phases or "Draining" in phases

    def _delete(self) -> None:
        with ThreadPoolExecutor(WAVE) as people:
            list(people.map(self._delete_one, sorted(self._ending)))
        self._ending.clear()

    def _delete_one(self, key: str) -> None:
        with suppress(NotFoundError):
            self._cluster.api.delete(PODS, key.partition("/")[2], namespace="default", grace_seconds=0)


def test_no_running_pod_is_lost_in_a_storm_of_kills(tmp_path: Path) -> None:
    with Installation(tmp_path, values={"settings": SETTINGS}) as cluster, ExitStack() as stack:
        cluster.apply(POOL + "---" + TEMPLATE)
        storm = Storm(cluster, stack)
        for _ in range(2):
            storm.start()
        cluster.wait_until(partial(_whenever, storm.step), "the end of the storm", seconds=PATIENCE)
        cluster.wait_until(partial(_whenever, storm.over), "an empty cluster", seconds=PATIENCE)
        assert not cluster.api.list(RESOURCE_CLAIMS, namespace="default").items
        names = list(storm.nodes.values())
        assert len(names) == len(set(names)), "a Node was made twice"


def _whenever(done: Callable[[], bool]) -> bool:
    """Ask; an API server that is down is asked again."""
    with suppress(ApiError):
        return done()
    return False


def _led(replica: Controller) -> Iterator[str]:
    return (line for line in replica.log.splitlines() if '"leading"' in line)


def _pod(name: str) -> Object:
    container = {"name": "main", "image": "pause", "resources": {"claims": [{"name": "gpu"}], "requests": {"cpu": "1"}}}
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "terminationGracePeriodSeconds": 1,
            "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
            "containers": [container],
        },
    }
