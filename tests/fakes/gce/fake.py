"""The fake: which call does what. Paths are those of the REST API, and each method checks what it is given."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from typing import Any, Final, TypeVar

from google.cloud import compute_v1

from providers.contract import Clock
from tests.fakes.gce import answers, recreation, reserved, resize_requests, sold
from tests.fakes.gce.answers import rendered
from tests.fakes.gce.calendar import recommended
from tests.fakes.gce.deletion import chosen
from tests.fakes.gce.errors import ApiError, Faults, LateError, Silence
from tests.fakes.gce.gke import Clusters
from tests.fakes.gce.rates import Rates, group_of
from tests.fakes.gce.state import NUMBER, PROJECT, PROMPT, Behaviour, Error, Group, Machine, Member, Project

Json = Mapping[str, Any]
T = TypeVar("T")
_NAME: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_PROJECT: Final = r"/compute/v1/projects/(?P<project>[^/]+)"
_ZONAL: Final = rf"{_PROJECT}/zones/(?P<zone>[^/]+)"
_GROUP: Final = rf"{_ZONAL}/instanceGroupManagers/(?P<group>[^/]+)"
# What other projects may let this one read.
_SHARED: Final = frozenset({"reservations.get", "reservationBlocks.get", "reservationSubBlocks.get"}) | {
    "instanceTemplates.get",
    "regionInstanceTemplates.get",
}
_DISABLED: Final = (
    "Compute Engine API has not been used in project 424242424242 before or it is disabled. Enable it by visiting "
    "https://console.developers.google.com/apis/api/compute.googleapis.com/overview then retry."
)
_EXHAUSTED: Final = {"error": {"code": 429, "message": "Quota exceeded.", "status": "RESOURCE_EXHAUSTED"}}
_LAUNCHES: Final = frozenset({"createInstances", "resizeRequests"})
# Google takes at most so many names in one call.
_MOST: Final = 1000


@dataclass(frozen=True, slots=True)
class Request:
    """A call that was understood."""

    groups: Mapping[str, str]
    query: Mapping[str, str]
    body: str

    def message(self, kind: Any) -> Any:
        """The body as a proto type; a field that it does not know is the client's mistake."""
        try:
            return kind.from_json(self.body or "{}", ignore_unknown_fields=False)
        except Exception as error:
            raise ApiError(400, "invalid", f"Invalid JSON payload received. {error}") from error


@dataclass
class FakeGce:
    """A project for tests. `denied` are methods that the caller has no permission for; `calls` counts what was asked.

    `unreachable` are zones that do not answer: lists are partial then, or fail. Those of `partial` are missing with a
    warning of their scope. `expired`: the caller's credentials. `failed`: when launches failed, by method.
    """

    clock: Clock
    behaviour: Behaviour = PROMPT
    faults: Faults = field(default_factory=Faults)
    denied: set[str] = field(default_factory=set)
    lacking: set[str] = field(default_factory=set)  # permissions, as the Resource Manager names them
    disabled: bool = False  # the APIs
    unreachable: set[str] = field(default_factory=set)
    partial: set[str] = field(default_factory=set)
    expired: bool = False
    failed: dict[str, list[datetime]] = field(default_factory=dict)
    owners: set[str] = field(default_factory=set)  # other projects that share reservations and instance templates
    unreadable: set[str] = field(default_factory=set)  # those of them that this project may not read
    # zones of types and accelerators, if not the groups'
    sold: dict[str, tuple[str, ...]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # reservations that lists do not show yet
    calls: Counter[str] = field(default_factory=Counter)
    rates: Rates = field(default_factory=Rates)
    clusters: Clusters = field(default_factory=Clusters)

    def __post_init__(self) -> None:
        self.project = Project(self.clock, self.behaviour)
        self._methods: Sequence[tuple[str, str, re.Pattern[str], Callable[[Request], Any]]] = tuple(
            (verb, name, re.compile(path), call)
            for verb, name, path, call in (
                ("POST", "createInstances", rf"{_GROUP}/createInstances", self._create),
                ("POST", "deleteInstances", rf"{_GROUP}/deleteInstances", self._delete),
                ("POST", "listManagedInstances", rf"{_GROUP}/listManagedInstances", self._members),
                *((verb, name, f"{_GROUP}{tail}", call) for verb, name, tail, call in resize_requests.methods(self)),
                *((verb, name, f"{_GROUP}{tail}", call) for verb, name, tail, call in recreation.methods(self)),
                ("GET", "listErrors", rf"{_GROUP}/listErrors", self._errors),
                ("GET", "instanceGroupManagers.get", _GROUP, self._group),
                ("GET", "instanceGroupManagers.list", rf"{_ZONAL}/instanceGroupManagers", self._groups),
                ("GET", "instanceGroupManagers.aggregatedList", _aggregated("instanceGroupManagers"), self._all_groups),
                (
                    "GET",
                    "resourcePolicies.get",
                    rf"{_PROJECT}/regions/us-central1/resourcePolicies/(?P<name>[^/]+)",
                    self._policy,
                ),
                ("GET", "instances.get", rf"{_ZONAL}/instances/(?P<name>[^/]+)", self._instance),
                ("GET", "instances.aggregatedList", _aggregated("instances"), self._instances),
                *((verb, name, f"{_PROJECT}/{tail}", call) for verb, name, tail, call in reserved.methods(self)),
                *((verb, name, f"{_PROJECT}/{tail}", call) for verb, name, tail, call in sold.methods(self)),
                ("GET", "operations.aggregatedList", _aggregated("operations"), self._events),
                ("GET", "zoneOperations.get", rf"{_ZONAL}/operations/(?P<name>[^/]+)", self._operation),
                (
                    "POST",
                    "advice.calendarMode",
                    r"/compute/v1/projects/(?P<project>[^/]+)/regions/us-central1/advice/calendarMode",
                    self._advice,
                ),
                (
                    "GET",
                    "instanceTemplates.get",
                    r"/compute/v1/projects/(?P<project>[^/]+)/global/instanceTemplates/(?P<group>[^/]+)",
                    self._template,
                ),
                (
                    "GET",
                    "regionInstanceTemplates.get",
                    r"/compute/v1/projects/(?P<project>[^/]+)/regions/us-central1/instanceTemplates/(?P<group>[^/]+)",
                    partial(self._template, regional=True),
                ),
            )
        )

    def answer(self, verb: str, path: str, query: Mapping[str, str], body: str) -> tuple[int, Json] | Silence:
        """(status, JSON), or nothing at all."""
        if path == "/token":  # where credentials are refreshed
            return 400, {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
        if self.expired:
            return 401, ApiError(401, "authError", "Request had invalid authentication credentials.").body()
        if self.disabled:
            return 403, ApiError(403, "accessNotConfigured", _DISABLED).body()
        if path == f"/v1/projects/{PROJECT}:testIamPermissions":
            self.calls["testIamPermissions"] += 1
            if "testIamPermissions" in self.denied:
                text = _DISABLED.replace("Compute Engine", "Cloud Resource Manager")
                return 403, ApiError(403, "accessNotConfigured", text).body()
            return 200, {"permissions": [one for one in json.loads(body)["permissions"] if one not in self.lacking]}
        if path.startswith("/v1/projects/"):
            self.calls["container.get"] += 1
            if not self.rates.take("container.get", self.clock.now()):
                return 429, _EXHAUSTED
            return self.clusters.answer(path, "container.get" in self.denied)
        answer: tuple[int, Json] | Silence
        try:
            answer = self._answered(verb, path, query, body)
        except ApiError as error:
            answer = error.status, error.body()
        launch = path.rpartition("/")[2]
        if verb == "POST" and launch in _LAUNCHES and (isinstance(answer, Silence) or answer[0] != 200):
            self.failed.setdefault(launch, []).append(self.clock.now())
        return answer

    def _answered(self, verb: str, path: str, query: Mapping[str, str], body: str) -> tuple[int, Json] | Silence:
        for expected, name, pattern, call in self._methods:
            if verb != expected or (found := pattern.fullmatch(path)) is None:
                continue
            self.calls[name] += 1
            if not self.rates.take(name, self.clock.now()):
                raise ApiError(
                    403, "rateLimitExceeded", f"Quota exceeded for '{group_of(name)}' per minute of {PROJECT}"
                )
            if name in self.denied:
                raise ApiError(403, "forbidden", f"Required 'compute.{name}' permission for 'projects/{PROJECT}'")
            if found["project"] != PROJECT and not (name in _SHARED and found["project"] in {*self.owners, NUMBER}):
                raise ApiError(404, "notFound", f"The resource 'projects/{found['project']}' was not found")
            self.project.catch_up()
            fault = self.faults.next(name)
            if fault is not None and isinstance(fault.ending, LateError):
                late = fault.ending
                zone = found.groupdict().get("zone", "")
                error = (late.code, late.message, late.status) if late.code else None
                failed = self.project.begin(name, zone, "", error)
                return 200, rendered(answers.operation(failed, self.clock.now()))
            if fault is None or fault.effect:
                answer = rendered(call(Request(found.groupdict(), query, body)))
                if fault is None:
                    return 200, answer
            if isinstance(fault.ending, ApiError):
                raise fault.ending
            return Silence.CUT
        raise ApiError(501, "notImplemented", f"the fake does not know {verb} {path}")

    # --- groups ------------------------------------------------------------------------------------------------

    def of(self, request: Request) -> Group:
        key = (request.groups["zone"], request.groups["group"])
        if key not in self.project.groups:
            path = f"projects/{PROJECT}/zones/{key[0]}/instanceGroupManagers/{key[1]}"
            raise ApiError(404, "notFound", f"The resource '{path}' was not found")
        return self.project.groups[key]

    def _group(self, request: Request) -> Any:
        return answers.manager(self.project, self.of(request))

    def _groups(self, request: Request) -> Any:
        found = [group for group in self.project.groups.values() if group.zone == request.groups["zone"]]
        rows, after = self.page(request, found)
        of = compute_v1.InstanceGroupManagerList
        return answers.whole(of, items=[answers.manager(self.project, one) for one in rows], nextPageToken=after)

    def _all_groups(self, request: Request) -> Any:
        rows, after = self.page(request, list(self.project.groups.values()))
        scopes = answers.scoped(
            "instanceGroupManagers", ((one.zone, answers.manager(self.project, one)) for one in rows)
        )
        return answers.whole(compute_v1.InstanceGroupManagerAggregatedList, items=scopes, nextPageToken=after)

    def _template(self, request: Request, *, regional: bool = False) -> Any:
        wanted = (request.groups["project"], request.groups["group"], regional)
        groups = self.project.groups.values()
        found = next((one for one in groups if (one.template_of, one.name, one.regional) == wanted), None)
        if found is None:
            raise ApiError(404, "notFound", f"The resource 'instanceTemplates/{wanted[1]}' was not found")
        return answers.template(found)

    def _policy(self, request: Request) -> Any:
        name = request.groups["name"]
        if name not in self.project.policies:
            path = f"projects/{PROJECT}/regions/us-central1/resourcePolicies/{name}"
            raise ApiError(404, "notFound", f"The resource '{path}' was not found")
        policy = compute_v1.ResourcePolicyWorkloadPolicy(**self.project.policies[name])
        return compute_v1.ResourcePolicy(name=name, region="us-central1", status="READY", workload_policy=policy)

    def _create(self, request: Request) -> Any:
        group = self.of(request)
        names = [one.name for one in request.message(compute_v1.InstanceGroupManagersCreateInstancesRequest).instances]
        again = self.repeated(request)
        if again is not None:
            return again
        if not names or len(names) > _MOST or len(set(names)) != len(names):
            raise ApiError(400, "invalid", "Invalid value for field 'resource.instances'")
        if group.slice_of:
            raise ApiError(400, "invalid", f"Group {group.name} is one slice: it is asked for by resize requests only")
        if group.model == "FLEX_START":  # which has no run duration then
            raise ApiError(400, "invalid", f"Group {group.name} starts machines by resize requests only")
        if group.bulk and group.members:
            raise ApiError(400, "invalid", f"Group {group.name} is in bulk mode, and it is not empty")
        self._room(group, len(names))
        for name in names:
            if not _NAME.fullmatch(name) or not name.startswith(f"{group.base}-"):
                raise ApiError(400, "invalid", f"Invalid value for field 'resource.instances[].name': '{name}'")
            self.unused(group, name)
        kind, now = "compute.instanceGroupManagers.createInstances", self.clock.now()
        late = self.project.late.get((group.machine_type, group.zone, group.model))
        error = self.project.quotas.refuse(self.project, group, len(names)) or late
        for name in names if error is None else ():
            group.members[name] = Member(name, "CREATING", now + self.behaviour.operation)
        return self.begun(request, group, kind, error)

    def _room(self, group: Group, more: int) -> None:
        """Refuse what does not fit in the NVLink domain that a group of A4X is; without a policy it has one machine."""
        if not group.machine_type.startswith("a4x-"):
            return
        topology = self.project.policies.get(group.policy, {}).get("accelerator_topology", "")
        if sum(one.action != "DELETING" for one in group.members.values()) + more > (18 if topology == "1x72" else 1):
            raise ApiError(400, "invalid", f"Group {group.name} has no room for {more} more instances ({topology})")

    def unused(self, group: Group, name: str) -> None:
        """Refuse a name that a machine, a member, or a request that waits has."""
        waits = any(name in one.names and one.held for one in group.asked.values())
        if name in group.members or waits or self.project.named(name, group.zone) is not None:
            raise ApiError(409, "alreadyExists", f"Instance {name} already exists")

    def _delete(self, request: Request) -> Any:
        group = self.of(request)
        body = request.message(compute_v1.InstanceGroupManagersDeleteInstancesRequest)
        again = self.repeated(request)
        if again is not None:
            return again
        if group.slice_of:
            raise ApiError(400, "invalid", f"Group {group.name} is one slice: it ends by the size 0 only")
        if not 0 < len(body.instances) <= _MOST:
            raise ApiError(400, "invalid", "Invalid value for field 'resource.instances'")
        skip = body.skip_instances_on_validation_error
        for member in list(chosen(self.project, group, body.instances, skip=skip)):
            self.end(group, member)
        return self.begun(request, group, "compute.instanceGroupManagers.deleteInstances")

    def end(self, group: Group, member: Member) -> None:
        """A member goes, with its machine, at once: also one that has a while left before Google takes it back."""
        machine = self.project.named(member.name, group.zone)
        member.action = "DELETING"
        now = self.clock.now()
        member.tries_at = now + self.behaviour.operation  # a name alone goes a moment after the call
        if machine is not None:
            machine.ended, machine.deleting = min(machine.ended or now, now), True

    def repeated(self, request: Request) -> Any:
        """The operation that an equal request id has begun; the second request is ignored, whatever it says."""
        key = request.query.get("requestId", "")
        if key and not re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", key):
            raise ApiError(400, "invalid", f"Invalid value for field 'requestId': '{key}'")
        known = self.project.requests.get(key)
        return answers.operation(self.project.operations[known], self.clock.now()) if known else None

    def begun(self, request: Request, group: Group, kind: str, error: Error | None = None) -> Any:
        begun = self.project.begin(kind, group.zone, group.name, (*error, 403) if error is not None else None)
        if request.query.get("requestId"):
            self.project.requests[request.query["requestId"]] = begun.name
        return answers.operation(begun, self.clock.now())

    def _members(self, request: Request) -> Any:
        group = self.of(request)
        members = [answers.member(self.project, group, one) for one in group.members.values()]
        rows, after = (members, "") if group.pageless else self.page(request, members)
        of = compute_v1.InstanceGroupManagersListManagedInstancesResponse
        return answers.whole(of, managedInstances=rows, nextPageToken=after)

    def _errors(self, request: Request) -> Any:
        rows, after = self.page(request, list(answers.failures(self.of(request))))
        return compute_v1.InstanceGroupManagersListErrorsResponse(items=rows, next_page_token=after)

    # --- machines ----------------------------------------------------------------------------------------------

    def _instance(self, request: Request) -> Any:
        name, zone = request.groups["name"], request.groups["zone"]
        found = self.project.named(name, zone)
        if found is None:
            raise ApiError(404, "notFound", f"The resource 'projects/{PROJECT}/zones/{zone}/instances/{name}'")
        return answers.instance(self.project, found)

    def _instances(self, request: Request) -> Any:
        admitted = _filter(request.query.get("filter", ""))
        latest = self.clock.now() - self.behaviour.visibility
        machines = [
            one
            for one in sorted(self.project.machines.values(), key=lambda one: (one.zone, one.name))
            if one.created <= latest and self.project.status(one) and admitted(one)
        ]
        if self.unreachable:
            if request.query.get("returnPartialSuccess") != "true":
                raise ApiError(503, "backendError", f"zones {sorted(self.unreachable)} are unreachable")
            machines = [one for one in machines if one.zone not in self.unreachable]
        machines = [one for one in machines if one.zone not in self.partial]
        rows, after = self.page(request, machines)
        scopes = answers.scoped("instances", ((one.zone, answers.instance(self.project, one)) for one in rows))
        scopes["regions/us-central1"] = {"warning": {"code": "NO_RESULTS_ON_PAGE"}}
        scopes |= {f"zones/{zone}": {"warning": {"code": "UNREACHABLE"}} for zone in sorted(self.partial)}
        missing = [answers.zone_url(zone) for zone in sorted(self.unreachable)]
        of = compute_v1.InstanceAggregatedList
        return answers.whole(of, items=scopes, nextPageToken=after, unreachables=missing)

    def _advice(self, request: Request) -> Any:
        asked = request.message(compute_v1.CalendarModeAdviceRequest)
        return recommended(asked, self.project.free, self.clock.now(), answers.moment)

    # --- operations --------------------------------------------------------------------------------------------

    def _operation(self, request: Request) -> Any:
        found = self.project.operations.get(request.groups["name"])
        if found is None:
            raise ApiError(404, "notFound", f"The resource 'operations/{request.groups['name']}' was not found")
        return answers.operation(found, self.clock.now())

    def _events(self, request: Request) -> Any:
        wanted = re.fullmatch(r'operationType eq "(.*)"', request.query.get("filter", ""))
        if wanted is None:
            raise ApiError(400, "invalid", "Invalid value for field 'filter'")
        found = [one for one in self.project.events() if re.fullmatch(wanted[1], one.kind)]
        rows, after = self.page(request, found)
        now = self.clock.now()
        scopes = answers.scoped("operations", ((one.zone, answers.operation(one, now)) for one in rows))
        return answers.whole(compute_v1.OperationAggregatedList, items=scopes, nextPageToken=after)

    def page(self, request: Request, rows: list[T]) -> tuple[list[T], str]:
        """The rows that are asked for, and the token of those after them."""
        first = int(request.query.get("pageToken", "") or 0)
        size = min(int(request.query.get("maxResults", "") or 500), self.behaviour.page, 500)
        return rows[first : first + size], str(first + size) if first + size < len(rows) else ""


def _aggregated(kind: str) -> str:
    return rf"/compute/v1/projects/(?P<project>[^/]+)/aggregated/{kind}"


def _filter(text: str) -> Callable[[Machine], bool]:
    """The two filters that the adapter uses; any other one is refused."""
    if not text:
        return lambda _: True
    by_name = re.fullmatch(r'name eq "(.*)"', text)
    if by_name is not None:
        pattern = by_name[1]
        return lambda machine: re.fullmatch(pattern, machine.name) is not None
    ids = re.findall(r"\(id = (\d+)\)", text)
    if text != " OR ".join(f"(id = {one})" for one in ids):
        raise ApiError(400, "invalid", f"Invalid value for field 'filter': '{text}'")
    return lambda machine: str(machine.id) in ids
