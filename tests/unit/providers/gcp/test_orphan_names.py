"""Names of machines that are gone: their group makes others under them, for ever, unless they are deleted."""

from __future__ import annotations

from datetime import timedelta

import pytest

from providers.abilities import NameKeeper
from providers.errors import BusyError
from tests.fakes.gce.errors import UNAVAILABLE, Fault, LateError
from tests.fakes.gce.recreation import recreate
from tests.fakes.gce.state import PROJECT, Machine
from tests.gcp import A3, V6E, ZONE, Rig, request, whole


def lost(rig: Rig, *, stock: int = 0) -> Machine:
    """A machine that was deleted, and of which its group has not got another one."""
    (found,) = rig.provider.launch(request()).instances
    rig.settle()
    machine = rig.fake.project.machines[int(found.id)]
    rig.fake.project.stock[rig.key(A3)] = stock
    recreate(rig.fake.project, machine)
    rig.advance(timedelta(minutes=5))
    rig.fake.project.catch_up()
    return machine


def provider_id(machine: Machine) -> str:
    return f"gce://{PROJECT}/{ZONE}/{machine.name}"


@pytest.mark.parametrize("queues", [True, False], ids=["a name alone", "a name with a URL"])
def test_a_name_without_a_machine_is_deleted(queues: bool) -> None:
    rig = Rig()
    assert isinstance(rig.provider, NameKeeper)
    machine = lost(rig)
    rig.group(A3).queues_names = queues
    assert list(rig.group(A3).members) == [machine.name]
    asked = (
        provider_id(machine),
        f"gce://{PROJECT}/{ZONE}/other",
        f"gce://other/{ZONE}/{machine.name}",
        "aws:///z/i-1",
    )
    assert rig.provider.kept(asked) == asked[:1]
    rig.provider.release((provider_id(machine),))
    assert rig.group(A3).members == {}
    calls = rig.fake.calls["deleteInstances"]
    rig.provider.release((provider_id(machine),))
    assert rig.fake.calls["deleteInstances"] == calls


def test_a_name_that_a_group_keeps_without_doing_anything_is_deleted() -> None:
    """A group that repairs nothing, and a machine that a person has deleted: the name would count as a machine of its
    slice or NVLink domain for ever."""
    rig = Rig()
    (found,) = rig.provider.launch(request()).instances
    rig.settle()
    machine = rig.fake.project.machines[int(found.id)]
    machine.ended, machine.deleting = rig.clock.now(), True
    rig.advance(timedelta(minutes=5))
    assert [one.action for one in rig.group(A3).members.values()] == ["NONE"]
    assert rig.provider.kept((found.provider_id,)) == (found.provider_id,)
    rig.provider.release((found.provider_id,))
    rig.advance(timedelta(minutes=1))
    assert rig.group(A3).members == {}


def test_a_name_that_has_a_machine_again_is_left_alone() -> None:
    """Also while the group makes another machine."""
    rig = Rig()
    machine = lost(rig, stock=1)
    strange = f"{rig.group(A3).base}-x7k2"
    rig.fake.project.member(rig.group(A3), strange)
    assert rig.provider.kept((provider_id(machine), f"gce://{PROJECT}/{ZONE}/{strange}")) == ()
    rig.provider.release((provider_id(machine),))
    assert list(rig.group(A3).members) == [machine.name, strange]
    assert rig.fake.calls["deleteInstances"] == 0


def test_names_that_no_launch_of_the_cluster_has_chosen_are_left_alone() -> None:
    rig = Rig()
    lost(rig)
    strange = f"{rig.group(A3).base}-x7k2"
    rig.fake.project.member(rig.group(A3), strange)
    for asked in (f"gce://{PROJECT}/{ZONE}/{strange}", f"gce://other/{ZONE}/{strange}", "gce://x", "aws:///z/i-1"):
        rig.provider.release((asked,))
    assert rig.fake.calls["deleteInstances"] == 0


def test_what_cannot_be_read_is_raised_and_done_the_next_time() -> None:
    rig = Rig()
    machine = lost(rig)
    rig.fake.faults.inject("deleteInstances", UNAVAILABLE)
    with pytest.raises(Exception, match="deleteInstances"):
        rig.provider.release((provider_id(machine),))
    rig.provider.release((provider_id(machine),))
    assert rig.group(A3).members == {}


def test_a_name_that_stays_after_its_deletion_is_deleted_again() -> None:
    """An operation that ends without an error and without an effect: the name would get a machine that nobody wants."""
    rig = Rig()
    machine = lost(rig)
    rig.fake.faults.inject("deleteInstances", Fault(LateError("")))
    with pytest.raises(BusyError, match=f"still has {machine.name}"):
        rig.provider.release((provider_id(machine),))
    assert list(rig.group(A3).members) == [machine.name]
    rig.provider.release((provider_id(machine),))
    assert rig.group(A3).members == {}


@pytest.mark.parametrize("others", [True, False])
def test_names_of_a_slice_go_with_the_whole_of_it(others: bool) -> None:
    rig = Rig()
    rig.slices()
    rig.provider.launch(whole())
    rig.settle()
    project = rig.fake.project
    machines = list(project.machines.values())
    project.stock[rig.key(V6E)] = 0
    for machine in machines[: 1 if others else None]:
        recreate(project, machine)
    rig.advance(timedelta(minutes=5))
    project.catch_up()
    rig.provider.release((provider_id(machines[0]),))
    assert (len(rig.group(V6E).members), rig.fake.calls["resize"]) == ((4, 0) if others else (0, 1))
