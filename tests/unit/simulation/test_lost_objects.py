"""People delete or replace objects that Foreslice relies on: pods run all the same, no stranger's Node is touched."""

from __future__ import annotations

from datetime import timedelta

import pytest

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES, NODES, PODS, PROVISIONED_NODES, Resource
from autoscaler.simulation.simulation import Simulation
from tests.unit.simulation.test_no_eviction import (
    START,
    WAVE,
    Interrupted,
    KilledError,
    finished,
    idle_writes,
    lost,
    pods,
    simulation,
)

STRANGER = "aws:///us-east-1a/i-someoneelse"


def remove(made: Simulation, resource: Resource) -> None:
    """Delete all of a kind, and take their finalizers off, as an impatient person does."""
    for found in list_all(made.api, resource)[0]:
        made.api.delete(resource, found["metadata"]["name"])
    for found in list_all(made.api, resource)[0]:
        made.api.patch(resource, found["metadata"]["name"], {"metadata": {"finalizers": None}})


@pytest.mark.slow
@pytest.mark.parametrize("forced", [False, True], ids=["deleted", "without-finalizer"])
def test_pods_run_although_the_batch_was_deleted_at_any_write_of_a_launch(forced: bool) -> None:
    for at in range(1, idle_writes() // 2):
        made = simulation(pods("a"))

        def delete(made: Simulation = made) -> None:
            if forced:
                remove(made, LAUNCH_BATCHES)
            else:
                for batch in list_all(made.api, LAUNCH_BATCHES)[0]:
                    made.api.delete(LAUNCH_BATCHES, batch["metadata"]["name"])
            made.new_loop()
            raise KilledError

        Interrupted(made, at, delete)
        for minute in range(45):
            try:
                made.run(START + timedelta(minutes=minute))
            except KilledError:
                continue
        assert (lost(made), finished(made)) == ([], WAVE), f"after write {at}"
        assert list_all(made.api, PROVISIONED_NODES)[0] == (), f"after write {at}"
        now = made.clock.now()
        alive = [m.node for m in made.cloud.machines.values() if m.state(now, made.cloud.behaviour).value == "running"]
        assert alive == [], f"after write {at}"


def test_the_node_of_a_stranger_is_neither_drained_nor_deleted() -> None:
    """As an outside review found it: controller off, the Node deleted, another machine registered by its name."""
    made = simulation(pods("a"))
    made.run(START + timedelta(minutes=4))
    for node in list_all(made.api, NODES)[0]:
        name = node["metadata"]["name"]
        made.api.delete(NODES, name)
        made.api.create(NODES, {"metadata": {"name": name}, "spec": {"providerID": f"{STRANGER}-{name}"}})
        spec = {"nodeName": name, "containers": [{"name": "main"}]}
        made.api.create(PODS, {"metadata": {"name": f"of-{name}", "namespace": "default"}, "spec": spec})
    made.new_loop()
    for minute in range(5, 60):
        made.run(START + timedelta(minutes=minute))
    there = list_all(made.api, NODES)[0]
    assert [node["spec"].get("taints", []) for node in there if STRANGER in node["spec"]["providerID"]] == [[]] * WAVE
    theirs = [pod for pod in list_all(made.api, PODS)[0] if pod["metadata"]["name"].startswith("of-")]
    assert [pod["status"]["phase"] for pod in theirs] == ["Running"] * WAVE
    assert all("deletionTimestamp" not in pod["metadata"] for pod in theirs)
