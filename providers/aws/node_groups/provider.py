"""Auto-scaling groups and managed node groups as a provider: EC2 Auto Scaling starts the machines; the provider sets
the number and chooses which ones end.

LaunchInstances takes a client token and answers with errors. If it cannot be used, the desired capacity is raised, and
the machines of the token are identified afterwards: until the group has started them, or failed to, the launch is
ambiguous. Before either call a tag on the group records the token. The machines get their tags only later, so after a
change of the template nothing else would find them. One token at a time uses a group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from typing import Any, Final

from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels
from providers.aws.capacity import Reservations
from providers.aws.describe import GROUP_TAG, instance_of, listed, named, provider_id, tags_of
from providers.aws.errors import after_launching, before_launching, translated
from providers.aws.launch import answer_of
from providers.aws.node_groups.groups import SLOT_TAG, Group, Groups, Slot, busy_for_another, slot_of
from providers.aws.node_groups.members import end_members, failures_of, is_alive, started, zone_of
from providers.aws.node_template.boot_times import Booting, BootTimeouts
from providers.aws.node_template.launch_template import tag_list
from providers.aws.node_template.status import GroupVerdicts
from providers.aws.node_template.template import GroupTemplates
from providers.aws.place import Place, Placed
from providers.aws.preflight import group_findings
from providers.aws.provider import WINDOW, Account
from providers.contract import (
    TAG_BATCH,
    Instance,
    InstancePage,
    InstanceState,
    LaunchAnswer,
    LaunchForm,
    LaunchRequest,
    OfferingFailure,
    OfferingKey,
    OfferingStatus,
    Reservation,
    TemplateStatus,
    TerminateAnswer,
    Traits,
)
from providers.errors import (
    AmbiguousError,
    CapacityError,
    GoneError,
    RefusedError,
    TemplateError,
    TokenReusedError,
    understood,
)
from providers.finding import Finding
from providers.fingerprint import fingerprint

TRAITS: Final = Traits(exact=False, counted=True, consistency_window=WINDOW, reserves=True)
# The largest assumed difference between EC2's clock and the controller's.
_SKEW: Final = timedelta(minutes=5)


class AwsNodeGroups(Booting, Placed):
    """Machines of groups that exist already. Also a Preflight and a TemplateJudge."""

    name: Final = "aws-groups"

    def __init__(self, account: Account, templates: GroupTemplates) -> None:
        self._aws = account.aws
        self._clock = account.clock
        self._cluster = account.cluster
        self._place = Place(account.aws, account.clock)
        self._templates = templates
        self._boot = BootTimeouts(templates, account.clock)
        self._groups = Groups(account.aws, account.clock)
        self._verdicts = GroupVerdicts(self._groups, templates, account.clock)
        self._reservations = {
            form: Reservations(account.aws, account.clock, window=WINDOW, form=form)
            for form in (LaunchForm.GROUP, LaunchForm.MANAGED_GROUP)
        }

    @property
    def traits(self) -> Traits:
        """Only sizes are set; machines get the tags of a launch once they exist."""
        return TRAITS

    def launch(self, request: LaunchRequest) -> LaunchAnswer:
        """Machines of the group that starts the first offering; other offerings are left to other requests."""
        offering = request.offerings[0]
        try:
            with understood("launch"):
                machines, failures, group = self._launched(request, offering)
        except CapacityError as error:
            return LaunchAnswer(missing=request.nodes, failures=(OfferingFailure(offering, error),))
        if len(machines) < request.minimum:
            self._undo(machines, group)
            machines = []
        return answer_of(request, machines, failures)

    def describe(self, tags: Mapping[str, str], *, page: str = "") -> InstancePage:
        with understood("DescribeInstances"):
            members = (one for one in listed(self._aws, tags) if GROUP_TAG in tags_of(one))
            found = sorted(members, key=lambda one: one["InstanceId"])
            ends = {r.id: r.reclaim_at for r in self.reservations()} if found else {}
            return InstancePage(
                tuple(instance_of(one, reclaim_at=ends.get(one.get("CapacityReservationId", ""))) for one in found)
            )

    def terminate(self, ids: Sequence[str]) -> TerminateAnswer:
        """End members of groups, whose sizes shrink with them."""
        return end_members(self._aws, self._cluster, ids, self._end)

    def reservations(self) -> tuple[Reservation, ...]:
        """Those that the groups start their machines in; managed groups empty themselves earlier before the end."""
        forms = {group.reservation: group.form for group in self._all_groups() if group.reservation}
        return tuple(
            reservation
            for form, reservations in self._reservations.items()
            if form in forms.values()
            for reservation in reservations.all()
            if forms.get(reservation.id) is form
        )

    def held(self) -> frozenset[str]:
        """The ids of reservations that belong to groups."""
        return frozenset(group.reservation for group in self._all_groups() if group.reservation)

    def offerings(self) -> tuple[OfferingStatus, ...]:
        """The offerings of the groups, without prices."""
        return tuple(
            OfferingStatus(group.offering(kind, zone), available=max(group.largest - group.desired, 0))
            for group in self._all_groups()
            for kind in group.types
            for zone in group.zones
        )

    def check(self) -> tuple[Finding, ...]:
        """Checks that the groups exist and may be resized."""
        return group_findings(self._groups, self._templates, self._cluster)

    def template_statuses(self) -> tuple[TemplateStatus, ...]:
        return self._verdicts.all()

    def _all_groups(self) -> Iterator[Group]:
        """The groups that exist. A fault of a template hides no other's groups; `judged` reports it."""
        for reference in self._templates.references():
            with suppress(TemplateError):
                yield from self._groups.existing(self._templates.template(reference))

    def _launched(
        self, request: LaunchRequest, offering: OfferingKey
    ) -> tuple[list[Instance], tuple[OfferingFailure, ...], str]:
        """The machines of a launch, the failures, and the name of the group.

        A launch that has begun continues in the same group and with the same call. Its template may now name another
        group or call, for which the token has no meaning, or may be deleted.
        """
        owned = self._owned(request)
        group = self._groups.serving_now(request.token)
        slot = slot_of(group.tags) if group else None
        if group is None and owned:  # it has ended, and is requested again
            return self._machines(request, offering, owned), (), tags_of(owned[0]).get(GROUP_TAG, "")
        if group is None or slot is None:
            with before_launching():
                template = self._templates.template(request.template)
                group = self._groups.serving(template, offering)
        by_instances = slot.by_instances if slot else template.by_instances
        how = self._by_instances if by_instances else self._by_size
        return (*how(request, group, offering, owned), group.name)

    # --- LaunchInstances -----------------------------------------------------------------------------------------

    def _by_instances(
        self, request: LaunchRequest, group: Group, offering: OfferingKey, owned: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Instance], tuple[OfferingFailure, ...]]:
        del owned  # the token finds them
        slot = slot_of(group.tags)
        repeated = slot is not None and slot.open and slot.token == request.token
        if slot is None or not repeated:
            with before_launching():
                slot = self._opened(request, group, slot, by_instances=True)
        try:
            answer, zones = self._launch_instances(request, group, offering, slot)
        except (CapacityError, RefusedError) as error:
            # The refusal of a repetition is no evidence about the previous call.
            if isinstance(error, CapacityError) or not repeated:
                self._close(group, slot)
            raise
        ids = sorted(zones)
        with after_launching(f"LaunchInstances {group.name} started {', '.join(ids) or 'nothing'}"):
            self._own(request, ids)
            shown = {one["InstanceId"]: one for one in named(self._aws, ids)}
        zones = {key: zone or zone_of(shown.get(key)) for key, zone in zones.items()}
        if not all(zones.values()):
            raise AmbiguousError(f"LaunchInstances {group.name}: EC2 does not show yet in which zone machines started")
        self._close(group, slot)
        running = [key for key in ids if key not in shown or is_alive(shown[key])]
        machines = [self._machine(request, replace(offering, zone=zones[key]), key) for key in running]
        return machines, failures_of(answer, offering)

    def _launch_instances(
        self, request: LaunchRequest, group: Group, offering: OfferingKey, slot: Slot
    ) -> tuple[Mapping[str, Any], dict[str, str]]:
        """The answer, and the zones of the machines that it names. If answers keep leaving machines out, they are
        accepted after a time."""
        zone = {} if offering.zone not in group.zones else {"AvailabilityZones": [offering.zone]}
        with translated(f"LaunchInstances {group.name}"):
            answer: Mapping[str, Any] = self._aws.autoscaling.launch_instances(
                AutoScalingGroupName=group.name,
                RequestedCapacity=len(request.nodes),
                ClientToken=request.token,
                RetryStrategy="none",
                **zone,
            )
        believed = abs(self._clock.now() - slot.since) >= WINDOW
        return answer, started(answer, 0 if believed else len(request.nodes))

    def _close(self, group: Group, slot: Slot) -> None:
        """Another launch may use the group. Raises AmbiguousError: the repetition ends it."""
        with after_launching(f"the end of a launch cannot be written on group {group.name}"):
            self._write(group, replace(slot, open=False))

    # --- desired capacity ----------------------------------------------------------------------------------------

    def _by_size(
        self, request: LaunchRequest, group: Group, offering: OfferingKey, owned: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Instance], tuple[OfferingFailure, ...]]:
        slot = slot_of(group.tags)
        if slot is None or slot.token != request.token or not slot.open:
            with before_launching():
                slot = self._opened(request, group, slot)
        with after_launching(f"group {group.name} is being resized for this launch"):
            if group.desired < slot.size:
                try:
                    with before_launching():
                        self._resize(group, slot.size)
                except RefusedError:
                    self._write(group, replace(slot, open=False))  # this token is not used again
                    raise
                group = self._groups.named(group)
            fresh = self._unowned(group, slot, len(request.nodes) - len(owned))
            self._own(request, [one["InstanceId"] for one in fresh])
            owned = [*owned, *fresh]
            if len(owned) == len(request.nodes):
                self._write(group, replace(slot, open=False))
                return self._machines(request, offering, owned), ()
            return self._failed(request, group, slot, offering, owned)

    def _failed(
        self,
        request: LaunchRequest,
        group: Group,
        slot: Slot,
        offering: OfferingKey,
        owned: list[Mapping[str, Any]],
    ) -> tuple[list[Instance], tuple[OfferingFailure, ...]]:
        """Gives up the missing machines if the group reports why they failed. Raises AmbiguousError until then."""
        error = next(self._groups.failures_after(group, slot.after), None)
        if error is None:
            raise AmbiguousError(
                f"group {group.name} has started {len(owned)} of {len(request.nodes)} machines",
                next_step="Nothing to do: it is checked again until the group has started its machines.",
            )
        self._resize(group, slot.size - (len(request.nodes) - len(owned)))
        self._write(group, replace(slot, open=False))
        return self._machines(request, offering, owned), (OfferingFailure(offering, error),)

    def _opened(self, request: LaunchRequest, group: Group, busy: Slot | None, *, by_instances: bool = False) -> Slot:
        """Write down that this token is about to change the size. Raises when another one is about to."""
        if busy is not None and busy.open and not self._known(busy):
            raise busy_for_another(group.name)
        if by_instances:
            slot = Slot(request.token, group.desired, self._clock.now(), "-", by_instances=True)
            self._write(group, slot)
            return slot
        size = group.desired + len(request.nodes)
        if size > group.largest:
            step = f"raise the maximum size of {group.name}, now {group.largest}"
            raise TemplateError(f"group {group.name} cannot have {size} machines", next_step=step)
        slot = Slot(request.token, size, self._clock.now(), self._groups.newest_activity(group))
        self._write(group, slot)
        return slot

    def _known(self, slot: Slot) -> bool:
        """True if the machines of a launch can be found without the group, although its end could not be written."""
        return slot.by_instances and any(True for _ in listed(self._aws, {labels.LAUNCH_TOKEN: slot.token}))

    def _write(self, group: Group, slot: Slot) -> None:
        tag = {
            "ResourceId": group.name,
            "ResourceType": "auto-scaling-group",
            "Key": SLOT_TAG,
            "Value": slot.text,
            "PropagateAtLaunch": False,
        }
        with translated(f"CreateOrUpdateTags {group.name}"):
            self._aws.autoscaling.create_or_update_tags(Tags=[tag])

    def _resize(self, group: Group, size: int) -> None:
        with translated(f"SetDesiredCapacity {group.name}"):
            self._aws.autoscaling.set_desired_capacity(
                AutoScalingGroupName=group.name, DesiredCapacity=size, HonorCooldown=False
            )

    def _unowned(self, group: Group, slot: Slot, count: int) -> list[Mapping[str, Any]]:
        """Members that started after the slot was opened and belong to no launch, by id."""
        found = [
            one
            for one in named(self._aws, group.members)
            if TAG_BATCH not in tags_of(one) and one["LaunchTime"] >= slot.since - _SKEW and is_alive(one)
        ]
        return sorted(found, key=lambda one: str(one["InstanceId"]))[:count]

    # --- ownership -----------------------------------------------------------------------------------------------

    def _owned(self, request: LaunchRequest) -> list[Mapping[str, Any]]:
        found = list(listed(self._aws, {labels.LAUNCH_TOKEN: request.token}))
        if any(tags_of(one).get(labels.LAUNCH_PARAMETERS) != fingerprint(request) for one in found):
            raise TokenReusedError(f"token {request.token} was used with other parameters")
        return found

    def _own(self, request: LaunchRequest, ids: list[str]) -> None:
        """Tags new members as machines of the launch. A repetition tags those that this call missed."""
        if not ids:
            return
        tags = {
            **request.tags,
            labels.CAPACITY_TYPE: request.offerings[0].capacity_type,
            labels.LAUNCH_TOKEN: request.token,
            labels.LAUNCH_PARAMETERS: fingerprint(request),
        }
        try:
            with translated("CreateTags"):
                self._aws.ec2.create_tags(Resources=ids, Tags=tag_list(tags))
        except GoneError as error:
            raise AmbiguousError(f"new machines are not visible yet: {error.message}", code=error.code) from error

    def _machines(
        self, request: LaunchRequest, offering: OfferingKey, found: list[Mapping[str, Any]]
    ) -> list[Instance]:
        zones = {one["InstanceId"]: one["Placement"]["AvailabilityZone"] for one in found if is_alive(one)}
        return [self._machine(request, replace(offering, zone=zones[key]), key) for key in sorted(zones)]

    def _machine(self, request: LaunchRequest, offering: OfferingKey, key: str) -> Instance:
        return Instance(
            id=key,
            provider_id=provider_id(offering.zone, key),
            offering=offering,
            state=InstanceState.PENDING,
            launched_at=self._clock.now(),
            tags=request.tags,
        )

    def _undo(self, machines: Iterable[Instance], group: str) -> None:
        """Ends the machines of a launch below its minimum. The group knows them, although EC2 may not show them yet.

        If a machine cannot be ended, the launch stays open, so that its repetition ends it. Raises BusyError and errors
        that are not refusals, too.
        """
        for machine in machines:
            with after_launching(f"{machine.id} of a launch below its minimum cannot be ended"), suppress(GoneError):
                self._end(machine.id, group)

    def _end(self, machine: str, group: str) -> None:
        """Raises GoneError if it is no member any more, TemplateError if the group may not shrink.

        BusyError: the group grows to a size that a launch has recorded, and must not shrink meanwhile.
        """
        slot = slot_of(self._groups.tags(group))
        if slot is not None and slot.open and not slot.by_instances:
            raise busy_for_another(group)
        try:
            with translated(f"TerminateInstanceInAutoScalingGroup {machine}"):
                self._aws.autoscaling.terminate_instance_in_auto_scaling_group(
                    InstanceId=machine, ShouldDecrementDesiredCapacity=True
                )
        except TemplateError as error:
            step = "lower the minimum size of its group"
            raise TemplateError(error.message, code=error.code, next_step=step) from error
