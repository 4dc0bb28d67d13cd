"""ProvisioningRequests of the production loop in virtual time: a gang gets all of its nodes, or none stays behind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from autoscaler.cluster.api import Object, list_all
from autoscaler.cluster.resources import (
    CAPACITY_POOLS,
    DEVICE_CLASSES,
    LAUNCH_BATCHES,
    NODES,
    POD_TEMPLATES,
    PODS,
    PROVISIONING_REQUESTS,
)
from autoscaler.simulation.simulation import Simulation
from instance_catalog.kubernetes import labels
from tests.builders import pool_manifest, shipped
from tests.unit.simulation.queue import Gang, Queue, condition, holds, machines, named, request_of

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
TWO = Gang("train", ((2, 1, "1"),))


def cluster(mode: str = "Act") -> tuple[Simulation, Queue]:
    simulation = Simulation(catalog=shipped("g6.xlarge", "g6.12xlarge"), start=START)
    simulation.api.create(CAPACITY_POOLS, pool_manifest(nodes=6, mode=mode))
    return simulation, Queue(simulation.api)


def live(simulation: Simulation, queue: Queue, minutes: float) -> None:
    """Live on, with the queue looking every ten seconds."""
    for _ in range(int(minutes * 6)):
        simulation.run(simulation.clock.now() + timedelta(seconds=10))
        queue.step()


def nodes_of(simulation: Simulation, request: Object) -> set[str]:
    value = request["metadata"]["uid"]
    found = list_all(simulation.api, NODES)[0]
    return {n["metadata"]["name"] for n in found if n["metadata"]["labels"].get(labels.PROVISIONING_REQUEST) == value}


def test_a_gang_gets_its_nodes_and_its_pods_run_there() -> None:
    simulation, queue = cluster()
    queue.ask(TWO)
    simulation.run(START + timedelta(seconds=5))
    request = queue.request("train")
    assert holds(request, "Accepted")
    assert condition(request, "Provisioned")["reason"] == "CapacityIsComing"
    (batch,) = list_all(simulation.api, LAUNCH_BATCHES)[0]
    assert len(batch["spec"]["nodes"]) == machines(simulation.api)
    live(simulation, queue, 5)
    request = queue.request("train")
    assert holds(request, "Provisioned")
    details = request["status"]["provisioningClassDetails"]
    assert details[labels.PROVISIONING_REQUEST] == request["metadata"]["uid"]
    pods = queue.pods_of("train")
    assert len(pods) == 2
    assert {pod["spec"]["nodeName"] for pod in pods} == nodes_of(simulation, request)
    assert condition(request, "BookingExpired")["reason"] == "CapacityBookingConsumed"
    assert not holds(request, "Failed")
    live(simulation, queue, 20)
    assert machines(simulation.api) == 0
    assert [c["type"] for c in queue.request("train")["status"]["conditions"] if c["status"] == "True"] == [
        "Accepted",
        "Provisioned",
        "BookingExpired",
    ]


def test_nothing_is_said_as_long_as_no_pool_acts() -> None:
    simulation, queue = cluster("Observe")
    queue.ask(TWO)
    simulation.run(START + timedelta(minutes=5))
    assert "status" not in queue.request("train")
    assert machines(simulation.api) == 0


def test_a_gang_for_which_there_is_not_room_enough_gets_nothing() -> None:
    simulation, queue = cluster()
    queue.ask(Gang("large", ((40, 1, "1"),)))
    live(simulation, queue, 3)
    request = queue.request("large")
    assert condition(request, "Provisioned")["status"] == "False"
    assert "limit" in condition(request, "Provisioned")["message"]
    assert not holds(request, "Failed")
    assert machines(simulation.api) == 0


def test_claims_that_nothing_can_meet_fail_with_the_nearest_miss() -> None:
    simulation, queue = cluster()
    huge = "device.capacity['gpu.nvidia.com'].memory.compareTo(quantity('500Gi')) >= 0"
    queue.ask(Gang("huge", ((2, 1, "1"),), selector=huge))
    simulation.run(START + timedelta(seconds=20))
    assert not holds(queue.request("huge"), "Failed"), "watches may still be catching up"
    simulation.run(START + timedelta(minutes=2))
    failed = condition(queue.request("huge"), "Failed")
    assert (failed["status"], failed["reason"]) == ("True", "CapacityIsNotFound")
    assert "nearest miss" in failed["message"]
    assert machines(simulation.api) == 0


def test_templates_that_do_not_come_fail_the_request() -> None:
    simulation, queue = cluster()
    simulation.api.create(PROVISIONING_REQUESTS, request_of(TWO))
    simulation.run(START + timedelta(seconds=20))
    assert not holds(queue.request("train"), "Failed"), "Kueue creates them after the request"
    simulation.run(START + timedelta(minutes=2))
    failed = condition(queue.request("train"), "Failed")
    assert failed["reason"] == "FailedToCreatePods"
    assert "PodTemplate default/ppt-train-0" in failed["message"]


CLASS_OF_GPUS = "gpu.nvidia.com"


def without_class(simulation: Simulation, seconds: float, *, restart: bool = False) -> None:
    """Somebody installs the driver anew: its DeviceClass is away for so long."""
    found = simulation.api.get(DEVICE_CLASSES, CLASS_OF_GPUS)
    simulation.api.delete(DEVICE_CLASSES, CLASS_OF_GPUS)
    simulation.run(simulation.clock.now() + timedelta(seconds=seconds / 2))
    if restart:
        simulation.new_loop()
    simulation.run(simulation.clock.now() + timedelta(seconds=seconds / 2))
    again = {"metadata": {"name": CLASS_OF_GPUS}, "spec": found["spec"]}
    simulation.api.create(DEVICE_CLASSES, again)


@pytest.mark.parametrize("restart", [False, True], ids=["one-process", "a-restart-meanwhile"])
def test_what_is_away_for_a_moment_fails_no_request_however_old_it_is(*, restart: bool) -> None:
    simulation, queue = cluster()
    queue.ask(Gang("large", ((40, 1, "1"),)))  # it waits: the pool's limit is too low for it
    simulation.run(START + timedelta(minutes=30))
    said = condition(queue.request("large"), "Provisioned")["message"]
    for _ in range(3):
        without_class(simulation, 20, restart=restart)
        simulation.run(simulation.clock.now() + timedelta(seconds=15))
        assert not holds(queue.request("large"), "Failed")
        assert condition(queue.request("large"), "Provisioned")["message"] == said
    without_class(simulation, 40)
    assert holds(queue.request("large"), "Failed"), "thirty seconds on end are no moment"


def test_a_pod_template_that_is_away_for_a_moment_fails_no_request() -> None:
    simulation, queue = cluster()
    queue.ask(Gang("large", ((40, 1, "1"),)))
    simulation.run(START + timedelta(minutes=30))
    found = simulation.api.get(POD_TEMPLATES, "ppt-large-0", namespace="default")
    simulation.api.delete(POD_TEMPLATES, "ppt-large-0", namespace="default")
    simulation.run(simulation.clock.now() + timedelta(seconds=20))
    assert "ppt-large-0" in condition(queue.request("large"), "Provisioned")["message"]
    simulation.api.create(POD_TEMPLATES, {"metadata": named("ppt-large-0"), "template": found["template"]})
    simulation.run(simulation.clock.now() + timedelta(minutes=2))
    assert not holds(queue.request("large"), "Failed")


def test_a_restart_begins_the_time_of_grace_anew() -> None:
    simulation, queue = cluster()
    simulation.api.create(PROVISIONING_REQUESTS, request_of(TWO))
    simulation.run(START + timedelta(seconds=25))
    simulation.new_loop()
    simulation.run(START + timedelta(seconds=50))
    assert not holds(queue.request("train"), "Failed")
    simulation.run(START + timedelta(seconds=60))
    assert holds(queue.request("train"), "Failed")


def test_a_claim_template_that_does_not_exist_fails_the_request() -> None:
    simulation, queue = cluster()
    simulation.api.create(PROVISIONING_REQUESTS, request_of(TWO))
    spec = {
        "containers": [{"name": "main", "image": "pause"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "nowhere"}],
    }
    simulation.api.create(POD_TEMPLATES, {"metadata": named("ppt-train-0"), "template": {"spec": spec}})
    simulation.run(START + timedelta(minutes=2))
    assert "ResourceClaimTemplate default/nowhere" in condition(queue.request("train"), "Failed")["message"]


def test_a_booking_that_nobody_uses_expires_and_its_nodes_go() -> None:
    simulation, queue = cluster()
    queue.ask(TWO)
    queue.started.add("train")  # its pods never come
    live(simulation, queue, 5)
    assert holds(queue.request("train"), "Provisioned")
    live(simulation, queue, 7)
    assert machines(simulation.api) > 0, "its nodes are kept although they are empty"
    live(simulation, queue, 12)
    assert condition(queue.request("train"), "BookingExpired")["reason"] == "CapacityReservationTimeExpired"
    assert machines(simulation.api) == 0


def test_two_requests_never_share_a_node() -> None:
    simulation, queue = cluster()
    for name in ("one", "two"):
        queue.ask(Gang(name, ((1, 2, "1"),)))  # a g6.12xlarge would hold both
    live(simulation, queue, 6)
    first, second = (nodes_of(simulation, queue.request(name)) for name in ("one", "two"))
    assert first
    assert second
    assert not first & second
    for name, own in (("one", first), ("two", second)):
        assert {pod["spec"]["nodeName"] for pod in queue.pods_of(name)} == own


def test_a_restart_in_the_middle_buys_nothing_twice() -> None:
    simulation, queue = cluster()
    queue.ask(TWO)
    most = 0
    for _ in range(40):
        simulation.run(simulation.clock.now() + timedelta(seconds=10))
        queue.step()
        simulation.new_loop()
        most = max(most, machines(simulation.api))
    request = queue.request("train")
    assert holds(request, "Provisioned")
    assert len(queue.pods_of("train")) == 2
    assert most == len(nodes_of(simulation, request)) > 0


class Rival:
    """Another controller that writes the status of the same requests between our read and our write."""

    def __init__(self, api: Any) -> None:
        self._api = api
        self.writes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._api, name)

    def patch(self, resource: Any, name: str, patch: Object, **options: Any) -> Object:
        if resource is PROVISIONING_REQUESTS and self.writes < 6:
            self.writes += 1
            note = {"status": {"provisioningClassDetails": {"rival.example.com/turn": str(self.writes)}}}
            self._api.patch(resource, name, note, namespace="default", subresource="status")
        found: Object = self._api.patch(resource, name, patch, **options)
        return found


def test_two_controllers_on_one_request_overwrite_nothing_of_each_other() -> None:
    simulation, queue = cluster()
    rival = Rival(simulation.api)
    simulation.new_loop(rival)  # type: ignore[arg-type]
    queue.ask(TWO)
    live(simulation, queue, 6)
    request = queue.request("train")
    assert rival.writes == 6
    assert request["status"]["provisioningClassDetails"]["rival.example.com/turn"] == "6"
    assert holds(request, "Provisioned")
    assert len(list_all(simulation.api, PODS)[0]) == 2


def test_a_check_only_answers() -> None:
    simulation, queue = cluster()
    queue.ask(Gang("ask", ((1, 1, "1"),), class_name="check.foreslice.dev"))
    simulation.run(START + timedelta(minutes=3))
    said = condition(queue.request("ask"), "Provisioned")
    assert (said["status"], said["reason"]) == ("False", "CapacityIsNotFound")
    assert machines(simulation.api) == 0
    final = Gang("last", ((1, 1, "1"),), class_name="check.foreslice.dev", parameters={"noRetry": "true"})
    queue.ask(final)
    simulation.run(START + timedelta(minutes=4))
    assert holds(queue.request("last"), "Failed")
    queue.ask(Gang("train", ((2, 1, "1"),), runs_for="1m"))
    live(simulation, queue, 3)
    assert not holds(queue.request("ask"), "Provisioned"), "what is booked is not free"
    live(simulation, queue, 4)
    assert holds(queue.request("ask"), "Provisioned"), "its pods have ended, and their node takes another"
    assert len(queue.pods_of("train")) == 2


@pytest.mark.parametrize("lost", [True, False], ids=["a-node-is-lost", "nothing-is-lost"])
def test_capacity_that_goes_before_it_is_used_is_revoked(*, lost: bool) -> None:
    simulation, queue = cluster()
    queue.ask(TWO)
    queue.started.add("train")
    live(simulation, queue, 5)
    (node, *_) = sorted(nodes_of(simulation, queue.request("train")))
    if lost:
        simulation.api.delete(NODES, node)
    live(simulation, queue, 1)
    assert holds(queue.request("train"), "CapacityRevoked") is lost


def test_more_pods_than_are_taken_at_once_are_refused_with_the_number() -> None:
    simulation, queue = cluster()
    queue.ask(Gang("huge", ((1_000_000, 1, "1"),)))
    simulation.run(START + timedelta(minutes=2))
    failed = condition(queue.request("huge"), "Failed")
    assert failed["reason"] == "FailedToCreatePods"
    assert "1000000 pods in one request (at most 10000 at once: split it" in failed["message"]
