"""A batch is held until its outcome is known: who deletes it ends the launch, and loses neither machine nor node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from autoscaler.cluster.api import NotFoundError
from autoscaler.cluster.intercepted import InterceptedApi
from autoscaler.cluster.journal import Journal
from autoscaler.cluster.resources import CUSTOM_RESOURCE_DEFINITIONS, LAUNCH_BATCHES, PROVISIONED_NODES, Resource
from autoscaler.cluster.status_memory import Backoffs
from autoscaler.errors import ConfigurationError
from autoscaler.execution.executor import Executor
from autoscaler.execution.finalizers import stop_while_uninstalling
from autoscaler.execution.launch import key_of
from autoscaler.execution.observed import Observed
from autoscaler.kube.custom.launch_batch import FINALIZER
from autoscaler.model.capacity import CapacityPool, Mode
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from providers.simulated.cloud import Call, Fault
from tests.desk import POOL, A, Desk, new_desk, planned


@pytest.fixture
def desk() -> Desk:
    desk = new_desk()
    desk.record(planned("n1"))
    return desk


def carry_out(desk: Desk, *pools: CapacityPool) -> None:
    desk.clock.wait(600)  # past every back-off
    executor = Executor(desk.api, desk.journal, desk.backoffs, desk.providers, desk.clock)
    executor.carry_out(desk.journal.pending(), Observed(Snapshot(pools=pools or (POOL,)), {}), desk.now)


def delete(desk: Desk) -> Desk:
    """Somebody deletes the batch; a controller that sees it."""
    desk.api.delete(LAUNCH_BATCHES, desk.batches()[0].name)
    return desk.restarted()


def finalizers(desk: Desk) -> list[Any]:
    name = desk.journal.batches[0].name
    return list(desk.api.get(LAUNCH_BATCHES, name)["metadata"].get("finalizers") or [])


def test_a_batch_is_held_until_it_is_finished(desk: Desk) -> None:
    assert finalizers(desk) == [FINALIZER]
    desk.cloud.inject(Call.LAUNCH, Fault.LOST_ANSWER)
    carry_out(desk)
    assert (desk.batches()[0].outcome, finalizers(desk)) == ("Calling", [FINALIZER])
    carry_out(desk)
    assert (desk.batches()[0].outcome, finalizers(desk)) == ("Launched", [])


def test_one_that_is_deleted_before_its_call_is_given_up(desk: Desk) -> None:
    desk = delete(desk)
    carry_out(desk)
    assert (len(desk.cloud.machines), desk.batches(), desk.journal.batches) == (0, (), ())
    assert [node.phase for node in desk.nodes()] == [Phase.FAILED]
    carry_out(desk)
    assert desk.nodes() == ()


@pytest.mark.parametrize(
    "pool",
    [
        pytest.param(replace(POOL, mode=Mode.OBSERVE), id="observes by now"),
        pytest.param(replace(POOL, deleting=True), id="is being deleted"),
        pytest.param(replace(POOL, name="another"), id="is gone"),
    ],
)
def test_one_whose_pool_does_not_act_any_more_is_given_up(desk: Desk, pool: CapacityPool) -> None:
    carry_out(desk, pool)
    assert len(desk.cloud.machines) == 0
    assert [node.phase for node in desk.nodes()] == [Phase.FAILED]


def test_one_that_is_deleted_during_its_call_is_finished(desk: Desk) -> None:
    desk.cloud.inject(Call.LAUNCH, Fault.LOST_ANSWER)
    carry_out(desk)
    desk = delete(desk)
    assert desk.batches()[0].deleting, "its outcome is unknown"
    carry_out(desk)
    (node,), (machine,) = desk.nodes(), desk.cloud.machines.values()
    assert (node.phase, node.provider_id, desk.batches()) == (Phase.LAUNCHED, machine.provider_id, ())


def test_one_that_is_deleted_during_its_call_asks_for_nothing_else(desk: Desk) -> None:
    desk.cloud.inject(Call.LAUNCH, Fault.LOST_REQUEST)
    carry_out(desk)
    desk = delete(desk)
    desk.cloud.withdraw(key_of(A))
    carry_out(desk)
    assert (len(desk.cloud.machines), desk.batches()) == (0, ())
    assert [node.phase for node in desk.nodes()] == [Phase.FAILED]


def test_a_finished_one_that_was_held_when_its_process_died_is_let_go(desk: Desk) -> None:
    carry_out(desk)
    name = desk.batches()[0].name
    desk.api.patch(LAUNCH_BATCHES, name, {"metadata": {"finalizers": [FINALIZER]}})
    desk = desk.restarted()
    assert finalizers(desk) == []
    assert [node.phase for node in desk.nodes()] == [Phase.LAUNCHED]


def test_one_of_the_version_before_is_held_from_now_on(desk: Desk) -> None:
    name = desk.batches()[0].name
    desk.api.patch(LAUNCH_BATCHES, name, {"metadata": {"finalizers": None}})
    desk = desk.restarted()
    assert finalizers(desk) == [FINALIZER]
    carry_out(desk)
    assert ([node.phase for node in desk.nodes()], finalizers(desk)) == ([Phase.LAUNCHED], [])


def test_a_batch_is_saved_before_its_nodes_get_their_machines(desk: Desk) -> None:
    writes: list[Resource] = []

    @contextmanager
    def attend(verb: str, resource: Resource) -> Iterator[None]:
        if verb not in ("get", "list", "watch") and desk.cloud.machines:
            writes.append(resource)
        yield

    api = InterceptedApi(desk.api, attend)
    desk.journal, desk.backoffs = Journal(api), Backoffs(api)
    desk.journal.resume(desk.batches(), desk.nodes(), desk.now)
    carry_out(desk)
    # Status and mapping, and only then the finalizer: a batch that may be deleted has nothing left to tell.
    assert writes == [LAUNCH_BATCHES, PROVISIONED_NODES, LAUNCH_BATCHES]


def test_batches_that_go_with_their_definition_are_let_go(desk: Desk) -> None:
    manifest = {"metadata": {"name": str(LAUNCH_BATCHES), "finalizers": ["customresourcecleanup"]}, "spec": {}}
    desk.api.create(CUSTOM_RESOURCE_DEFINITIONS, manifest)
    name = desk.batches()[0].name
    desk.api.delete(LAUNCH_BATCHES, name)
    stop_while_uninstalling(desk.api, Snapshot(), desk.batches())  # a person's order: the definition stays
    desk.api.delete(CUSTOM_RESOURCE_DEFINITIONS, str(LAUNCH_BATCHES))
    with pytest.raises(ConfigurationError, match="all machines stay"):
        stop_while_uninstalling(desk.api, Snapshot(), desk.batches())
    with pytest.raises(NotFoundError):
        desk.api.get(LAUNCH_BATCHES, name)


def test_one_that_nobody_can_launch_any_more_can_still_be_deleted(desk: Desk) -> None:
    name = desk.batches()[0].name
    stored = desk.api.get(LAUNCH_BATCHES, name)
    stored["spec"]["nodeTemplateRef"]["kind"] = "UninstalledNodeTemplate"
    desk.api.update(LAUNCH_BATCHES, stored)
    desk = delete(desk)
    carry_out(desk)
    assert desk.batches() == ()


def test_rounds_go_on_with_the_rights_of_the_version_before(desk: Desk) -> None:
    carry_out(desk)
    name = desk.batches()[0].name
    desk.api.patch(LAUNCH_BATCHES, name, {"metadata": {"finalizers": [FINALIZER]}})
    desk.api._forbidden = frozenset({("patch", "launchbatches")})
    assert [node.phase for node in desk.restarted().journal.nodes] == [Phase.LAUNCHED]
