"""The calls that make, read, cancel and delete resize requests of a group, and the one that empties a slice."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from google.cloud import compute_v1

from tests.fakes.gce import answers
from tests.fakes.gce.errors import ApiError
from tests.fakes.gce.waiting import Resize

if TYPE_CHECKING:
    from tests.fakes.gce.fake import FakeGce, Request
    from tests.fakes.gce.state import Group

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
# Seconds that flex-start machines may run.
_SHORTEST, _LONGEST = 600, 604_800
_KIND: Final = "compute.instanceGroupManagerResizeRequests"


def methods(fake: FakeGce) -> Sequence[tuple[str, str, str, Callable[[Request], Any]]]:
    """The calls, with the ends of their paths below a group."""
    one = r"/resizeRequests/(?P<name>[^/]+)"

    def found(request: Request) -> tuple[Group, Resize]:
        group, name = fake.of(request), request.groups["name"]
        if name not in group.asked:
            raise ApiError(404, "notFound", f"The resource 'resizeRequests/{name}' was not found")
        return group, group.asked[name]

    def insert(request: Request) -> Any:
        group = fake.of(request)
        body = request.message(compute_v1.InstanceGroupManagerResizeRequest)
        again = fake.repeated(request)
        if again is not None:
            return again
        names = tuple(instance.name for instance in body.instances)
        if group.bulk:
            raise ApiError(400, "invalid", f"Group {group.name} is in bulk mode: it takes no resize requests")
        if fake.project.policies.get(group.policy, {}).get("accelerator_topology"):
            raise ApiError(
                400, "invalid", f"Group {group.name} has an accelerator topology: it takes no resize requests"
            )
        _checked(group, body, names)
        for name in names:
            fake.unused(group, name)
        now, accepted = fake.clock.now(), fake.clock.now() + fake.behaviour.operation
        lasts = timedelta(seconds=body.requested_run_duration.seconds) or None
        exceeded = fake.project.quotas.refuse(fake.project, group, len(names))
        if exceeded is not None:
            return fake.begun(request, group, f"{_KIND}.insert", exceeded)
        group.asked[body.name] = Resize(body.name, names, now, accepted, accepted, lasts)
        for name in names:
            fake.project.waits(group, name)
        return fake.begun(request, group, f"{_KIND}.insert")

    def listed(request: Request) -> Any:
        group = fake.of(request)
        shown = [_shown(group, one) for one in group.asked.values()]
        return compute_v1.InstanceGroupManagerResizeRequestsListResponse(items=shown)

    def cancel(request: Request) -> Any:
        again = fake.repeated(request)
        if again is not None:
            return again
        group, asked = found(request)
        if request.body not in ("", "{}"):
            raise ApiError(400, "invalid", "The request body must be empty.")
        if asked.state != "ACCEPTED":
            raise ApiError(412, "conditionNotMet", f"Resize request is {asked.state}: only ACCEPTED can be cancelled.")
        asked.state, asked.error = "CANCELLED", None
        for name in asked.names:
            group.members.pop(name, None)
        return fake.begun(request, group, f"{_KIND}.cancel")

    def delete(request: Request) -> Any:
        again = fake.repeated(request)
        if again is not None:
            return again
        group, asked = found(request)
        if asked.held:
            raise ApiError(412, "conditionNotMet", f"Resize request is {asked.state}: it is active.")
        del group.asked[asked.name]
        return fake.begun(request, group, f"{_KIND}.delete")

    def resize(request: Request) -> Any:
        """Of slices, to nothing: every other size would let Google choose."""
        again = fake.repeated(request)
        if again is not None:
            return again
        group = fake.of(request)
        if request.query.get("size") != "0" or not group.slice_of:
            raise ApiError(400, "invalid", f"Invalid value for field 'size': '{request.query.get('size')}'")
        for member in list(group.members.values()):
            fake.end(group, member)
        return fake.begun(request, group, "compute.instanceGroupManagers.resize")

    return (
        ("POST", "resize", "/resize", resize),
        ("POST", "resizeRequests.insert", "/resizeRequests", insert),
        ("GET", "resizeRequests.list", "/resizeRequests", listed),
        ("GET", "resizeRequests.get", one, lambda request: _shown(*found(request))),
        ("POST", "resizeRequests.cancel", f"{one}/cancel", cancel),
        ("DELETE", "resizeRequests.delete", one, delete),
    )


def _checked(group: Group, body: Any, names: tuple[str, ...]) -> None:
    """Refuse what Google would refuse, and what the adapter has no reason to send."""
    if not _NAME.fullmatch(body.name):
        raise ApiError(400, "invalid", f"Invalid value for field 'resource.name': '{body.name}'")
    if body.name in group.asked:
        raise ApiError(409, "alreadyExists", f"The resource 'resizeRequests/{body.name}' already exists")
    if body.resize_by or not names or len(names) > 1000 or len(set(names)) != len(names):
        raise ApiError(400, "invalid", "Invalid value for field 'resource.instances'")
    held = [one.name for one in group.asked.values() if one.held]
    if group.slice_of and (len(names) != group.slice_of or group.members or held):
        text = f"Group {group.name} is one slice of {group.slice_of}: it has {[*group.members, *held]} already"
        raise ApiError(400, "invalid", text)
    lasts = body.requested_run_duration.seconds
    if bool(lasts) != (group.model == "FLEX_START") or (lasts and not _SHORTEST <= lasts <= _LONGEST):
        raise ApiError(400, "invalid", "Invalid value for field 'resource.requestedRunDuration'")
    for name in names:
        if not _NAME.fullmatch(name) or not name.startswith(f"{group.base}-"):
            raise ApiError(400, "invalid", f"Invalid value for field 'resource.instances[].name': '{name}'")


def _shown(group: Group, asked: Resize) -> compute_v1.InstanceGroupManagerResizeRequest:
    status = compute_v1.InstanceGroupManagerResizeRequestStatus()
    if asked.error is not None:
        code, message = asked.error
        error = compute_v1.Error(errors=[compute_v1.Errors(code=code, message=message)])
        if asked.state == "FAILED":
            status.error = error
        else:
            status.last_attempt = compute_v1.InstanceGroupManagerResizeRequestStatusLastAttempt(error=error)
    return compute_v1.InstanceGroupManagerResizeRequest(
        name=asked.name,
        zone=answers.zone_url(group.zone),
        creation_timestamp=answers.moment(asked.created),
        instances=[compute_v1.PerInstanceConfig(name=name) for name in asked.names],
        state=asked.state,
        status=status,
    )
