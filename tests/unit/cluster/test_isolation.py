"""What cannot be written down of one batch, node or pool stops no other; nothing is launched that is not written."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from structlog.testing import capture_logs

from autoscaler.cluster.api import ForbiddenError, UnavailableError
from autoscaler.cluster.isolation import Isolation, Trouble
from autoscaler.cluster.journal import Journal
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import CAPACITY_POOLS, LAUNCH_BATCHES, PROVISIONED_NODES, Resource
from autoscaler.cluster.status_memory import Backoffs, save_quarantines
from autoscaler.model.gang import Gang
from autoscaler.model.plan import NodeAction, NodeDecision, Plan, PlannedNode
from autoscaler.model.pod import GangRef, Pod
from autoscaler.model.provisioned_node import Phase
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Quarantine, Snapshot
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap
from providers.errors import ShortageError
from tests.desk import POOL, A, Desk, new_desk, planned
from tests.unit.cluster.odd import FAULTS, OddApi

ODD = "default/odd"
GOOD = tuple(planned(f"n{number}", pods=(f"default/p{number}",)) for number in range(4))


def journal_of(
    desk: Desk, verb: str, resource: Resource, fault: str, *, text: str = ODD, at_once: int = 1
) -> tuple[OddApi, Journal]:
    api = OddApi(desk.api, lambda v, r, t: (v, r) == (verb, resource) and text in t, FAULTS[fault])
    return api, Journal(api, at_once=at_once)


def record(journal: Journal, desk: Desk, *launches: PlannedNode, snapshot: Snapshot | None = None) -> list[Trouble]:
    return list(journal.record(Plan(launches=launches), snapshot or Snapshot(pools=(POOL,)), desk.now))


def to_launch(journal: Journal) -> set[str]:
    return {name for batch in journal.pending().launches for name in batch.nodes}


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("resource", [LAUNCH_BATCHES, PROVISIONED_NODES], ids=str)
@pytest.mark.parametrize("fault", ["403", "422", "webhook"])
def test_a_node_that_is_refused_leaves_its_batch(resource: Resource, fault: str, at_once: int) -> None:
    desk = new_desk()
    _, journal = journal_of(desk, "create", resource, fault, at_once=at_once)
    troubles = record(journal, desk, *GOOD[:2], planned("odd", pods=(ODD,)), *GOOD[2:])
    assert to_launch(journal) == {"n0", "n1", "n2", "n3"}
    assert [trouble.pods for trouble in troubles] == [(ODD,)]
    assert {node.name for node in desk.nodes()} == {"n0", "n1", "n2", "n3"}
    assert {name for batch in desk.batches() for name in batch.nodes} == {"n0", "n1", "n2", "n3"}


@pytest.mark.parametrize("fault", ["404", "409", "429", "500", "time-out", "bug"])
@pytest.mark.parametrize("resource", [LAUNCH_BATCHES, PROVISIONED_NODES], ids=str)
def test_what_failed_otherwise_leaves_out_its_batch_alone(resource: Resource, fault: str) -> None:
    desk = new_desk()
    api, journal = journal_of(desk, "create", resource, fault)
    other = planned("other", replace(A, zone="us-east-1c"), pods=("default/p",))
    troubles = record(journal, desk, planned("odd", pods=(ODD,)), other)
    assert to_launch(journal) == {"other"}
    assert len(troubles) == 1
    api.fails = lambda verb, resource, text: False
    journal.resume(desk.batches(), desk.nodes(), desk.now)
    assert record(journal, desk, *(() if "odd" in to_launch(journal) else (planned("odd", pods=(ODD,)),))) == []
    assert to_launch(journal) == {"odd", "other"}


def test_after_a_bug_each_node_stands_alone() -> None:
    desk = new_desk()
    _, journal = journal_of(desk, "create", LAUNCH_BATCHES, "bug")
    with capture_logs() as lines:
        assert record(journal, desk, GOOD[0], planned("odd", pods=(ODD,)))[0].reason == "Unexpected"
    assert [line["event"] for line in lines] == ["unexpected_error"]
    assert lines[0]["exc_info"]
    record(journal, desk, GOOD[0], planned("odd", pods=(ODD,)))
    assert to_launch(journal) == {"n0"}


def test_a_gang_stays_together() -> None:
    desk = new_desk()
    _, journal = journal_of(desk, "create", LAUNCH_BATCHES, "422")
    pods = tuple(Pod("default", name, gang=GangRef("default", "g")) for name in ("odd", "p0"))
    gangs = FrozenMap({"default/g": Gang("default", "g", "PodGroup", 2)})
    snapshot = Snapshot(pods=pods, gangs=gangs, pools=(POOL,))
    troubles = record(journal, desk, GOOD[0], planned("odd", pods=(ODD,)), snapshot=snapshot)
    assert to_launch(journal) == set()
    assert len(troubles) == 1


def test_a_batch_that_is_taken_back_leaves_a_node_of_an_earlier_one() -> None:
    desk = new_desk()
    desk.record(planned("n1"))
    before = desk.nodes()
    _, journal = journal_of(desk, "create", PROVISIONED_NODES, "422", text="odd")
    journal.resume(desk.batches(), before, desk.now)
    record(journal, desk, planned("n1"), planned("odd"))
    assert desk.nodes() == before


def test_a_pod_that_does_not_fit_the_schema_is_left_out() -> None:
    desk = new_desk()
    journal = Journal(desk.api)
    (trouble,) = record(journal, desk, *GOOD, planned("odd", pods=("default/" + "x" * 400,)))
    assert (trouble.reason, trouble.unexpected) == ("Invalid", False)
    assert "xxx" not in trouble.text
    assert to_launch(journal) == {"n0", "n1", "n2", "n3"}


def test_a_node_that_is_not_written_is_not_launched_after_a_restart_either() -> None:
    desk = new_desk()
    record(Journal(desk.api), desk, planned("odd", pods=(ODD,)))
    desk.api.patch(PROVISIONED_NODES, "odd", {"metadata": {"finalizers": None}})
    desk.api.delete(PROVISIONED_NODES, "odd")
    _, journal = journal_of(desk, "create", PROVISIONED_NODES, "500")
    (trouble,) = journal.resume(desk.batches(), desk.nodes(), desk.now)
    assert trouble.kind == "LaunchBatch"
    assert to_launch(journal) == set()


def test_a_decision_that_cannot_be_written_stops_no_other() -> None:
    desk = new_desk()
    desk.record(planned("n1"), planned("odd"))
    _, journal = journal_of(desk, "update", PROVISIONED_NODES, "422", text="'odd'")
    journal.resume(desk.batches(), desk.nodes(), desk.now)
    deleted = (Reason.of(Code.POOL_DELETED),)
    drain = tuple(NodeDecision(name, NodeAction.DRAIN, reasons=deleted) for name in ("odd", "n1"))
    (trouble,) = journal.record(Plan(nodes=drain), Snapshot(pools=(POOL,)), desk.now)
    assert (trouble.kind, trouble.name) == ("ProvisionedNode", "odd")
    assert {node.name: node.phase for node in desk.nodes()} == {"n1": Phase.DRAINING, "odd": Phase.INTENDED}


def test_an_observation_that_cannot_be_written_stops_no_other() -> None:
    desk = new_desk()
    desk.record(planned("n1"), planned("odd"))
    _, journal = journal_of(desk, "update", PROVISIONED_NODES, "webhook", text="'odd'")
    journal.resume(desk.batches(), desk.nodes(), desk.now)
    (trouble,) = journal.note([replace(node, empty_since=desk.now) for node in reversed(desk.nodes())])
    assert trouble.name == "odd"
    assert {node.name: node.empty_since for node in desk.nodes()} == {"n1": desk.now, "odd": None}


@pytest.mark.parametrize(
    ("rights", "general"), [(frozenset({("create", "launchbatches")}), True), (frozenset(), False)]
)
def test_a_403_is_about_everything_only_if_the_role_says_so(rights: frozenset[tuple[str, str]], general: bool) -> None:
    desk = new_desk()
    _, journal = journal_of(desk, "create", LAUNCH_BATCHES, "403", text="")
    desk.api._forbidden = rights
    troubles = record(journal, desk, *GOOD)
    assert (journal.refusal is not None) == general
    assert (troubles == []) == general
    assert to_launch(journal) == set()


def test_a_back_off_that_cannot_be_written_holds_and_does_not_undo_an_answer() -> None:
    desk = new_desk()
    api = OddApi(desk.api, lambda verb, resource, text: resource == CAPACITY_POOLS, FAULTS["403"])
    backoffs = Backoffs(api)
    backoffs.failed("gpu", A, ShortageError("none left"), desk.now)
    (trouble,) = backoffs.take_troubles()
    assert (trouble.kind, trouble.name, backoffs.take_troubles()) == ("CapacityPool", "gpu", ())
    backoffs.resume(backoffs.with_unsaved(()))
    assert backoffs.forbid("gpu", A, desk.now)


def test_quarantines_of_other_pools_are_written() -> None:
    desk = new_desk()
    for name in ("a", "b"):
        desk.api.create(CAPACITY_POOLS, {"metadata": {"name": name}, "spec": {}})
    api = OddApi(desk.api, lambda verb, resource, text: text.startswith("a "), FAULTS["422"])
    (trouble,) = save_quarantines(api, (), [Quarantine(name, "t", ()) for name in ("a", "b")])
    assert trouble.name == "a"
    assert desk.api.get(CAPACITY_POOLS, "b")["status"]["quarantines"]


def fail(error: Exception) -> Callable[[], None]:
    def raises() -> None:
        raise error

    return raises


def test_lost_leadership_passes() -> None:
    with pytest.raises(LeadershipLostError):
        Isolation().attempt("Pod", "a", fail(LeadershipLostError("another leads")))


def test_a_silent_api_server_is_not_asked_for_each_object() -> None:
    isolation, asked = Isolation(), []

    def ask() -> None:
        asked.append(1)
        raise UnavailableError("no answer")

    troubles = [isolation.attempt("Pod", str(number), ask) for number in range(10)]
    assert all(troubles)
    assert len(asked) == 3


@pytest.mark.parametrize(("answers", "attempts"), [(True, 10), (False, 3)])
def test_requests_that_fail_alone_are_not_taken_for_a_silent_api_server(answers: bool, attempts: int) -> None:
    """A webhook that fails for some objects must not keep those after them from their turn in each round."""
    api = OddApi(new_desk().api, lambda verb, resource, text: not answers, FAULTS["time-out"])
    isolation, asked = Isolation(api), []

    def ask() -> None:
        asked.append(1)
        raise UnavailableError("failed calling webhook (500)")

    troubles = [isolation.attempt("Pod", str(number), ask) for number in range(10)]
    assert all(troubles)
    assert len(asked) == attempts


def test_an_answer_ends_the_silence() -> None:
    isolation = Isolation()
    errors: list[Exception] = [UnavailableError("no"), UnavailableError("no"), ForbiddenError("no")]
    for error in errors * 3:
        trouble = isolation.attempt("Pod", "a", fail(error))
        assert trouble is not None
        assert trouble.error is error
