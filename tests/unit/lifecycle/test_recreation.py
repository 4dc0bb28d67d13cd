"""A machine that was made anew under the same provider id differs from the old one by its id, and by nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from autoscaler.kube.custom.launch_batch import parse_launch_batch, write_launch_batch
from autoscaler.kube.custom.provisioned_node import parse_provisioned_node, write_provisioned_node
from autoscaler.lifecycle.leaving import may_evict
from autoscaler.lifecycle.recreation import SeenMachine, compared, own_id
from autoscaler.lifecycle.reflect import World, reflect
from autoscaler.model.provisioned_node import BatchMember, LaunchBatch, Phase, PhaseChange, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import replace
from tests.builders import ours

NOW = datetime(2027, 1, 31, 8, 0, tzinfo=UTC)
LAUNCHED = NOW - timedelta(hours=1)
WINDOW = timedelta(minutes=3)
NODE = ours(
    "n1",
    phase=Phase.READY,
    phase_since=LAUNCHED,
    provider="gcp",
    provider_id="gce://p/z/base-1",
    instance_id="7001",
    history=(PhaseChange(Phase.LAUNCHED, LAUNCHED, "Obtained"),),
)
OLD = replace(NODE, instance_id="")  # as an older version wrote it
SAME = SeenMachine("7001", LAUNCHED - timedelta(seconds=30))
OTHER = SeenMachine("7002", NOW - timedelta(minutes=5))


@pytest.mark.parametrize(
    ("node", "seen", "known", "recreated"),
    [
        pytest.param(NODE, SAME, "7001", "", id="the machine of the launch"),
        pytest.param(NODE, OTHER, "7001", "7002", id="another machine"),
        pytest.param(NODE, None, "7001", "", id="none is listed"),
        pytest.param(replace(NODE, recreated_as="7002"), None, "7001", "7002", id="another one, which is gone"),
        pytest.param(replace(NODE, recreated_as="7002"), SeenMachine("7003", NOW), "7001", "7003", id="a third one"),
        pytest.param(OLD, SAME, "7001", "", id="of an older version"),
        pytest.param(OLD, OTHER, "", "7002", id="of an older version, and created long after the launch"),
        pytest.param(
            OLD, SeenMachine("7002", LAUNCHED + timedelta(minutes=9)), "7002", "", id="clocks differ by minutes"
        ),
        pytest.param(replace(OLD, history=(), phase_since=None), OTHER, "", "", id="nobody knows when it was launched"),
        pytest.param(replace(NODE, provider_id=""), OTHER, "7001", "", id="no machine yet"),
        pytest.param(
            replace(OLD, provider_id="aws:///z/i-1"), SeenMachine("i-1", NOW), "", "", id="its provider id says it"
        ),
    ],
)
def test_a_machine_is_known_by_its_id(
    node: ProvisionedNode, seen: SeenMachine | None, known: str, recreated: str
) -> None:
    found = compared(node, seen, WINDOW, NOW)
    assert (found.instance_id, found.recreated_as, found.phase) == (known, recreated, Phase.READY)


@pytest.mark.parametrize("window", [None, timedelta(hours=2)], ids=["silent", "lists lag"])
def test_nothing_follows_while_lists_lag_or_nobody_answers(window: timedelta | None) -> None:
    """A list may still have an earlier machine of the name, for which a launch asked in vain."""
    assert compared(NODE, OTHER, window, NOW) == NODE


@pytest.mark.parametrize(
    ("node", "seen", "goes"),
    [
        pytest.param(NODE, OTHER, True, id="another machine"),
        pytest.param(OLD, OTHER, True, id="of an older version"),
        pytest.param(NODE, SAME, False, id="its own, which is listed again"),
        pytest.param(OLD, SAME, False, id="perhaps its own"),
        pytest.param(NODE, None, False, id="none"),
    ],
)
def test_an_object_that_is_left_ends_the_machine_that_got_its_name(
    node: ProvisionedNode, seen: SeenMachine | None, goes: bool
) -> None:
    """A controller that dies before it removes the objects of a machine finds another one there."""
    found = compared(replace(node, phase=Phase.GONE), seen, WINDOW, NOW)
    assert (found.phase, may_evict(found)) == ((Phase.DRAINING, True) if goes else (Phase.GONE, False))
    assert [reason.code for reason in found.reasons] == ([Code.MACHINE_RECREATED] if goes else [])


@pytest.mark.parametrize("phase", [Phase.DRAINING, Phase.TERMINATING])
def test_a_node_on_its_way_out_evicts_what_the_new_machine_has_started(phase: Phase) -> None:
    empty = replace(NODE, phase=phase, reasons=(Reason.of(Code.NODE_EMPTY),))
    found = compared(empty, OTHER, WINDOW, NOW)
    assert (found.phase, may_evict(found)) == (phase, True)
    assert compared(found, OTHER, WINDOW, NOW) == found


def test_what_is_seen_is_written_down() -> None:
    world = World(Snapshot(provisioned=(NODE,)), windows={"gcp": WINDOW}, known_as={NODE.provider_id: OTHER})
    (found,) = reflect(world, NOW).provisioned
    assert found.recreated_as == "7002"
    again = parse_provisioned_node(write_provisioned_node(found))
    assert (again.instance_id, again.recreated_as) == ("7001", "7002")


@pytest.mark.parametrize("ids", [("7001", "7002"), ("7001", ""), ("", "")])
def test_a_launch_remembers_which_machines_it_got(ids: tuple[str, ...]) -> None:
    """Until they are carried over to their nodes, which a controller that dies does not do any more."""
    members = tuple(
        BatchMember(f"n{index}", provider_id=f"gce://p/z/base-{index}", obtained=NODE.offering, instance_id=one)
        for index, one in enumerate(ids)
    )
    manifest = write_launch_batch(LaunchBatch("b", "p", members, NODE.offerings, answered=True))
    assert parse_launch_batch(manifest).members == members
    assert manifest["status"].get("instanceIDs", []) == (list(ids) if any(ids) else [])


@pytest.mark.parametrize(
    ("provider_id", "machine", "own"),
    [
        ("gce://p/z/base-1", "7001", "7001"),
        ("aws:///us-east-1a/i-1", "i-1", ""),
        ("kwok://n1", "n1", ""),
        ("gce://p/z/base-7001", "7001", "7001"),
    ],
)
def test_what_a_provider_id_says_already_is_not_written_twice(provider_id: str, machine: str, own: str) -> None:
    assert own_id(provider_id, machine) == own
