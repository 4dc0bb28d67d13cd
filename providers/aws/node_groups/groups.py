"""Auto-scaling groups as EC2 Auto Scaling describes them, and the properties of their machines.

A group has a slot for one launch at a time, which is written as a tag before the launch changes the group. It records
launches whose machines get no tags. node_groups/provider.py reads and writes the tag.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from itertools import takewhile
from typing import Any, Final

from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes import labels
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType
from providers.aws.errors import MEANINGS, of_code, translated
from providers.aws.node_template.template import GroupTemplate
from providers.aws.session import Aws
from providers.contract import Clock, LaunchForm, OfferingKey
from providers.errors import BusyError, NotInGroupsError, ProviderError, TemplateError
from providers.ttl_cache import TtlCache

SLOT_TAG: Final = labels.RESIZING
# The states of an open slot: of a launch by desired capacity, and by LaunchInstances.
_STATES: Final = ("open", "launching")


@dataclass(frozen=True, slots=True)
class Slot:
    """The token that changes a group's size, and the target size; the text of a tag on the group.

    `since` is the start of the change by the controller's clock, `after` the newest scaling activity at that time ("-":
    none). `by_instances`: LaunchInstances changes the size, so `size` and `after` have no meaning.
    """

    token: str
    size: int
    since: datetime
    after: str
    open: bool = True
    by_instances: bool = False

    @property
    def text(self) -> str:
        """As written on the group."""
        state = _STATES[self.by_instances] if self.open else "closed"
        return f"{self.token} {self.size} {self.since.isoformat()} {self.after} {state}"


def slot_of(tags: Mapping[str, str]) -> Slot | None:
    """The slot in the tags of a group; None without one, or if the tag cannot be read."""
    parts = tags.get(SLOT_TAG, "").split()
    if len(parts) != 5:
        return None
    try:
        size, since = int(parts[1]), datetime.fromisoformat(parts[2])
    except ValueError:  # any user of the account may tag a group
        return None
    if since.tzinfo is None:
        return None
    return Slot(parts[0], size, since, parts[3], parts[4] in _STATES, by_instances=parts[4] == _STATES[True])


def busy_for_another(group: str) -> BusyError:
    """The error for a group whose slot is open for another launch."""
    step = f"Nothing to do while that launch runs; if none runs, remove the tag {SLOT_TAG} from the group."
    return BusyError(f"group {group} is being resized for another launch", next_step=step)


# The content of a version of a launch template never changes; names such as $Latest are read again after this.
_LIFETIME: Final = timedelta(minutes=5)
# Phrases of scaling activities that have no code, in EC2's own words.
_PHRASES: Final = (
    ("do not have sufficient", "InsufficientInstanceCapacity"),
    ("more vcpu capacity than your current vcpu limit", "VcpuLimitExceeded"),
    ("not supported in your requested availability zone", "Unsupported"),
    ("reservation does not have sufficient", "ReservationCapacityExceeded"),
    ("spot request", "InsufficientInstanceCapacity"),
)


@dataclass(frozen=True, slots=True)
class Group:
    """A group: its desired size, its members, and the properties of its machines.

    `propagated`: keys of the cluster's tags that it gives to every machine it starts.
    """

    name: str
    desired: int
    largest: int
    zones: tuple[str, ...]
    members: tuple[str, ...]
    tags: Mapping[str, str]
    types: tuple[str, ...]
    market: str
    reservation: str
    form: LaunchForm
    propagated: frozenset[str] = frozenset()

    @property
    def capacity_type(self) -> CapacityType:
        if self.market == "capacity-block":
            return CapacityType.CAPACITY_BLOCK
        if self.reservation:
            return CapacityType.RESERVED
        return CapacityType.SPOT if self.market == "spot" else CapacityType.ON_DEMAND

    def offering(self, instance_type: str, zone: str) -> OfferingKey:
        """Machines of a type in a zone as it starts them."""
        return OfferingKey(instance_type, zone, self.capacity_type, self.reservation)

    def serves(self, offering: OfferingKey) -> bool:
        """True if the group starts machines of the offering."""
        return (
            offering.instance_type in self.types
            and offering.zone in (*self.zones, ANY_ZONE)
            and self._is_paid_as(offering)
            and offering.reservation == self.reservation
        )

    def _is_paid_as(self, offering: OfferingKey) -> bool:
        """A CapacityBlock may name an on-demand reservation: both sides then name that reservation."""
        own = self.capacity_type
        block = offering.capacity_type == CapacityType.CAPACITY_BLOCK
        return offering.capacity_type == own or (block and own is CapacityType.RESERVED)


class Groups:
    def __init__(self, aws: Aws, clock: Clock) -> None:
        self._aws = aws
        self._names: TtlCache[tuple[tuple[str, LaunchForm], ...]] = TtlCache(clock, _LIFETIME)
        self._launches: TtlCache[Mapping[str, Any]] = TtlCache(clock, _LIFETIME)

    def of(self, template: GroupTemplate) -> tuple[Group, ...]:
        """The groups of a template as they are now. Raises TemplateError when one of them does not exist."""
        forms = dict(self._names.get(template, lambda: tuple(self._named(template))))
        with translated("DescribeAutoScalingGroups"):
            pages = list(
                self._aws.autoscaling.get_paginator("describe_auto_scaling_groups").paginate(
                    AutoScalingGroupNames=sorted(forms)
                )
            )
        found = {group["AutoScalingGroupName"]: group for page in pages for group in page["AutoScalingGroups"]}
        for name in forms:
            if name not in found:
                step = "correct spec.autoScalingGroups, or create it"
                raise TemplateError(f"AWSGroupNodeTemplate {template.name}: no group {name!r}", next_step=step)
        return tuple(self._group(found[name], form) for name, form in sorted(forms.items()))

    def existing(self, template: GroupTemplate) -> Iterator[Group]:
        """Those of its groups that exist."""
        try:
            yield from self.of(template)
        except TemplateError:
            for alone in _one_by_one(template):
                with suppress(TemplateError):
                    yield from self.of(alone)

    def serving(self, template: GroupTemplate, offering: OfferingKey) -> Group:
        """The group that starts such machines. Raises NotInGroupsError if there is none."""
        groups = self.of(template)
        chosen = next((group for group in groups if group.serves(offering)), None)
        if chosen is None:
            known = ", ".join(f"{g.name} ({'/'.join(g.types)} in {'/'.join(g.zones)})" for g in groups)
            raise NotInGroupsError(f"no group of AWSGroupNodeTemplate {template.name} starts {offering}: {known}")
        return chosen

    def named(self, group: Group) -> Group:
        """The current state of the group. Raises TemplateError if it was deleted."""
        with translated(f"DescribeAutoScalingGroups {group.name}"):
            found = self._aws.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group.name])
        if not found["AutoScalingGroups"]:
            step = "create the group again, or take it off spec.autoScalingGroups or spec.nodeGroups"
            raise TemplateError(f"group {group.name} was deleted during a launch", next_step=step)
        return self._group(found["AutoScalingGroups"][0], group.form)

    def serving_now(self, token: str) -> Group | None:
        """The group in which a launch has begun and not ended, among all of the account."""
        noted = [{"Name": "tag-key", "Values": [SLOT_TAG]}]
        with translated("DescribeAutoScalingGroups"):
            pages = list(self._aws.autoscaling.get_paginator("describe_auto_scaling_groups").paginate(Filters=noted))
        for found in (found for page in pages for found in page["AutoScalingGroups"]):
            slot = slot_of(_tags(found))
            if slot is not None and slot.open and slot.token == token:
                return self._group(found, LaunchForm.GROUP)
        return None

    def tags(self, name: str) -> Mapping[str, str]:
        """The current tags of a group; none if it does not exist any more."""
        with translated(f"DescribeAutoScalingGroups {name}"):
            found = self._aws.autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[name])
        return {key: value for group in found["AutoScalingGroups"] for key, value in _tags(group).items()}

    def newest_activity(self, group: Group) -> str:
        """The id of the group's newest scaling activity; "-" without any."""
        return next((str(found["ActivityId"]) for found in self._activities(group)), "-")

    def failures_after(self, group: Group, activity: str) -> Iterator[ProviderError]:
        """The errors of failed launches of the group since an activity, newest first."""
        for found in takewhile(lambda one: one["ActivityId"] != activity, self._activities(group)):
            if found["StatusCode"] in ("Failed", "Cancelled"):
                message = found.get("StatusMessage", "")
                yield of_code(f"group {group.name}", _code_in(message), message)

    def _activities(self, group: Group) -> Sequence[Mapping[str, Any]]:
        with translated(f"DescribeScalingActivities {group.name}"):
            found = self._aws.autoscaling.describe_scaling_activities(AutoScalingGroupName=group.name)
        activities: Sequence[Mapping[str, Any]] = found["Activities"]
        return activities

    def _named(self, template: GroupTemplate) -> Iterator[tuple[str, LaunchForm]]:
        yield from ((name, LaunchForm.GROUP) for name in template.groups)
        for name in template.node_groups:
            with translated(f"DescribeNodegroup {name}"):
                found = self._aws.eks.describe_nodegroup(clusterName=template.cluster, nodegroupName=name)["nodegroup"]
            for group in found.get("resources", {}).get("autoScalingGroups", ()):
                yield group["name"], LaunchForm.MANAGED_GROUP

    def _group(self, found: Mapping[str, Any], form: LaunchForm) -> Group:
        launch, types = self._launch(found)
        target = launch.get("CapacityReservationSpecification", {}).get("CapacityReservationTarget", {})
        return Group(
            name=found["AutoScalingGroupName"],
            desired=found["DesiredCapacity"],
            largest=found["MaxSize"],
            zones=tuple(sorted(found["AvailabilityZones"])),
            members=tuple(sorted(member["InstanceId"] for member in found.get("Instances", ()))),
            tags=_tags(found),
            types=types,
            market=launch.get("InstanceMarketOptions", {}).get("MarketType", ""),
            reservation=target.get("CapacityReservationId", ""),
            form=form,
            propagated=frozenset(
                tag["Key"]
                for tag in found.get("Tags", ())
                if tag.get("PropagateAtLaunch") and tag["Key"].startswith(f"{labels.GROUP}/")
            ),
        )

    def _launch(self, found: Mapping[str, Any]) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """The content of the group's launch template, and the types it starts."""
        mixed = found.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
        chosen = mixed.get("LaunchTemplateSpecification") or found.get("LaunchTemplate") or {}
        types = tuple(o["InstanceType"] for o in mixed.get("Overrides", ()) if "InstanceType" in o)
        if not chosen:
            return {}, types
        key = (chosen.get("LaunchTemplateId") or chosen["LaunchTemplateName"], chosen.get("Version", "$Default"))
        data = self._launches.get(key, lambda: self._read_launch(chosen))
        return data, types or ((data["InstanceType"],) if "InstanceType" in data else ())

    def _read_launch(self, chosen: Mapping[str, str]) -> Mapping[str, Any]:
        named = {key: chosen[key] for key in ("LaunchTemplateId", "LaunchTemplateName") if chosen.get(key)}
        one = dict([next(iter(named.items()))])
        with translated("DescribeLaunchTemplateVersions"):
            found = self._aws.ec2.describe_launch_template_versions(**one, Versions=[chosen.get("Version", "$Default")])
        data: Mapping[str, Any] = found["LaunchTemplateVersions"][0]["LaunchTemplateData"]
        return data


def _one_by_one(template: GroupTemplate) -> Iterator[GroupTemplate]:
    """The template for each of its groups alone."""
    yield from (replace(template, groups=(name,), node_groups=()) for name in template.groups)
    yield from (replace(template, groups=(), node_groups=(name,)) for name in template.node_groups)


def _tags(found: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag.get("Value", "") for tag in found.get("Tags", ())}


def _code_in(message: str) -> str:
    """The EC2 error code in an activity's message; "" if it names no known code."""
    words = set(message.replace(".", " ").replace(",", " ").replace("(", " ").replace(")", " ").split())
    known: Iterable[str] = (code for code in MEANINGS if code in words)
    lowered = message.lower()
    phrase = next((code for text, code in _PHRASES if text in lowered), "")
    return next(iter(known), phrase)
