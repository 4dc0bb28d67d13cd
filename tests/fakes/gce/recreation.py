"""Machines that their group makes anew: the same name, another id. It makes none anew that it deletes.

Whoever asks for it, a person (recreateInstances), a rolling update that keeps names, or a health check, the machine is
deleted, and another one is made under its name. Only of automatic repair a system event says so. Source: Compute Engine
API reference, v1, instanceGroupManagers.recreateInstances; client google-cloud-compute 1.56.0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from google.cloud import compute_v1

from instance_catalog.dataclass import replace
from tests.fakes.gce.deletion import chosen
from tests.fakes.gce.state import Machine, Project

if TYPE_CHECKING:
    from tests.fakes.gce.fake import FakeGce, Request

_KIND = "compute.instanceGroupManagers.recreateInstances"
_EVENT = "compute.instances.repair.recreateInstance"


def methods(fake: FakeGce) -> tuple[tuple[str, str, str, Callable[[Request], Any]], ...]:
    """The call that only people make."""

    def asked(request: Request) -> Any:
        group = fake.of(request)
        body = request.message(compute_v1.InstanceGroupManagersRecreateInstancesRequest)
        again = fake.repeated(request)
        if again is not None:
            return again
        for member in list(chosen(fake.project, group, body.instances, skip=False)):
            machine = fake.project.named(member.name, group.zone)
            if machine is not None:
                recreate(fake.project, machine)
        return fake.begun(request, group, _KIND)

    return (("POST", "recreateInstances", "/recreateInstances", asked),)


def recreate(project: Project, machine: Machine) -> None:
    """Its group deletes it, which takes as long as any deletion, and then makes another one."""
    if machine.deleting:
        return
    now = project.clock.now()
    machine.ended, machine.deleting = min(machine.ended or now, now), True
    member = project.groups[machine.zone, machine.group].members[machine.name]
    member.action, member.tries_at = "RECREATING", now


def repair(project: Project, machine: Machine, *, told: bool = True) -> Machine:
    """Its group makes another one at once, which nobody sees in between. `told`: a system event says so."""
    if machine.deleting:
        return machine
    now = project.clock.now()
    project.machines[machine.id] = replace(machine, ended=now - project.behaviour.stopping, deleting=True)
    if told:
        project.note(_EVENT, machine)
    again = replace(machine, id=project.new_id(), created=now, ended=None, preempted=False)
    again.maintenance = again.restarted = again.revived = again.halted = None
    project.machines[again.id] = again
    return again
