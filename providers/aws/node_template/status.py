"""The resolved resources of node templates: subnets, groups, image, profile and placement group, or the fault of each.

They are read every few minutes, apart from launches, so that a deleted subnet is reported before a machine is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any, Final

from providers.aws.errors import translated
from providers.aws.launch import Launcher
from providers.aws.node_groups.groups import Groups
from providers.aws.node_template.images import ImageFacts, facts, resolve
from providers.aws.node_template.template import GroupTemplates, NodeTemplate, Templates
from providers.aws.session import Aws
from providers.contract import Clock, TemplateFault, TemplateRef, TemplateStatus
from providers.errors import (
    PermissionDeniedError,
    ProviderError,
    TemplateError,
    ThrottledError,
    UncertainError,
    UnknownRefusalError,
    understood,
)
from providers.ttl_cache import TtlCache

# About six calls for each template. A template with faults is read sooner, because a user may be correcting it.
_LIFETIME: Final = timedelta(minutes=10)
_WHILE_WRONG: Final = timedelta(minutes=2)
_BETWEEN_TIDYINGS: Final = timedelta(hours=1)
# How long IAM is not called after it could not be reached.
_UNREACHED: Final = timedelta(hours=1)
# Codes of calls that are not allowed, as opposed to credentials that are no good for any call.
_DENIED: Final = frozenset({"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"})
# Launches do not make these calls, so a role that lacks them launches all the same.
_NOT_NEEDED_TO_LAUNCH: Final = frozenset({"spec.instanceProfile", "spec.placementGroup"})
# An error of IAM is no evidence about EC2.
_OF_IAM: Final = "spec.instanceProfile"
TAKE_NEW_IMAGE: Final = "nothing must be done; to take the new one, change spec.ami (set its id, or follow: true)"


class _Kept:
    """Verdicts as they were given last, by template and generation."""

    def __init__(self, clock: Clock) -> None:
        self._good: TtlCache[TemplateStatus] = TtlCache(clock, _LIFETIME)
        self._bad: TtlCache[TemplateStatus] = TtlCache(clock, _WHILE_WRONG)

    def of(self, reference: TemplateRef, look: Callable[[TemplateRef], TemplateStatus]) -> TemplateStatus:
        """The verdict on a template; `look` computes it if the last one is too old."""
        known = next((kept.last(reference) for kept in (self._bad, self._good) if kept.fresh(reference)), None)
        return known or self._kept(look(reference))

    def _kept(self, verdict: TemplateStatus) -> TemplateStatus:
        return (self._bad if verdict.faults else self._good).get(verdict.template, lambda: verdict)


class Verdicts:
    def __init__(self, launcher: Launcher, templates: Templates) -> None:
        self._launcher = launcher
        self._templates = templates
        self._known = _Kept(launcher.clock)
        self._tidied: TtlCache[None] = TtlCache(launcher.clock, _BETWEEN_TIDYINGS)
        self._unreached: TtlCache[UncertainError] = TtlCache(launcher.clock, _UNREACHED)

    def all(self) -> tuple[TemplateStatus, ...]:
        """The statuses by name. Raises ProviderErrors only if the templates cannot be listed."""
        references = self._templates.references()
        return tuple(self._known.of(reference, self._look) for reference in references)

    def tidy(self) -> None:
        """Deletes launch templates that are no longer needed. Called before a launch only, since a pool in the mode
        that observes changes nothing."""
        self._tidied.get("", self._tidy)

    def _tidy(self) -> None:
        # A launch template that is not deleted now is deleted later, and costs nothing until then.
        with suppress(ProviderError), understood("DescribeLaunchTemplates"):
            names = frozenset(reference.name for reference in self._templates.references())
            self._launcher.launch_templates.tidy(names)

    def _look(self, reference: TemplateRef) -> TemplateStatus:
        try:
            template = self._templates.template(reference)
        except ProviderError as error:
            return TemplateStatus(reference, faults=(fault_of("spec", error),))
        self._launcher.network.forget(template)
        parts: Mapping[str, Callable[[NodeTemplate], Mapping[str, Any]]] = {
            "spec.cluster": self._cluster,
            "spec.subnets": self._subnets,
            "spec.securityGroups": self._groups,
            "spec.ami": self._image,
            "spec.instanceProfile": self._profile,
            "spec.placementGroup": self._placement,
        }
        resolved: dict[str, Any] = {}
        faults: list[TemplateFault] = []
        for field, look in parts.items():
            try:
                resolved |= look(template)
            except ProviderError as error:
                if _concerns_every_call(error) and not (field == _OF_IAM and isinstance(error, UncertainError)):
                    faults = [fault_of("", error)]
                    break
                faults.append(fault_of(field, error))
        zones = sorted({subnet["zone"] for subnet in resolved.get("subnets", ())})
        return TemplateStatus(reference, resolved, tuple(faults), tuple(zones), drift=resolved.pop("drift", None))

    def _cluster(self, template: NodeTemplate) -> Mapping[str, Any]:
        return {"endpoint": self._launcher.clusters.joined(template.cluster).endpoint}

    def _subnets(self, template: NodeTemplate) -> Mapping[str, Any]:
        found = self._launcher.network.subnets(template)
        return {"subnets": [{"id": subnet.id, "zone": subnet.zone} for subnet in found]}

    def _groups(self, template: NodeTemplate) -> Mapping[str, Any]:
        return {"securityGroups": list(self._launcher.network.security_groups(template))}

    def _image(self, template: NodeTemplate) -> Mapping[str, Any]:
        image, drift = image_of(self._launcher, template)
        return {
            "image": {"id": image.id, "name": image.name, "architecture": image.architecture},
            "drift": drift and f"{drift}; {TAKE_NEW_IMAGE}",
        }

    def _profile(self, template: NodeTemplate) -> Mapping[str, Any]:
        """IAM has no endpoint in most private networks: then each look would hold a tick up until it times out."""
        before = self._unreached.last("iam") if self._unreached.fresh("iam") else None
        if before is not None:
            raise before.with_traceback(None)
        try:
            return {"nodeRole": role_of(self._launcher.aws, template)}
        except UncertainError as error:
            self._unreached.forget("iam")
            self._unreached.get("iam", partial(_itself, error))
            raise

    def _placement(self, template: NodeTemplate) -> Mapping[str, Any]:
        return {"placementStrategy": strategy_of(self._launcher.aws, template)} if template.placement_group else {}


class GroupVerdicts:
    """The verdicts on all AWSGroupNodeTemplates of a cluster: which groups they name, and what those start."""

    def __init__(self, groups: Groups, templates: GroupTemplates, clock: Clock) -> None:
        self._groups = groups
        self._templates = templates
        self._known = _Kept(clock)

    def all(self) -> tuple[TemplateStatus, ...]:
        """The statuses by name. Raises ProviderErrors only if the templates cannot be listed."""
        return tuple(self._known.of(reference, self._look) for reference in self._templates.references())

    def _look(self, reference: TemplateRef) -> TemplateStatus:
        try:
            groups = self._groups.of(self._templates.template(reference))
        except ProviderError as error:
            return TemplateStatus(reference, faults=(fault_of("spec", error),))
        shown = [
            {
                "name": group.name,
                "zones": list(group.zones),
                "instanceTypes": list(group.types),
                "capacityType": group.capacity_type.value,
                "maxSize": group.largest,
            }
            for group in groups
        ]
        zones = sorted({zone for group in groups for zone in group.zones})
        started = (group.offering(kind, zone) for group in groups for kind in group.types for zone in group.zones)
        return TemplateStatus(reference, {"groups": shown}, zones=tuple(zones), groups=frozenset(started))


def image_of(launcher: Launcher, template: NodeTemplate) -> tuple[ImageFacts, str]:
    """The image that launches use, and its difference from the current value of its parameter; "" if there is none.

    Raises TemplateError if the image is gone, also if it is the pinned one.
    """
    pinned = launcher.launch_templates.pinned(template)
    current = resolve(launcher.aws, template.image)
    try:
        used = facts(launcher.aws, pinned or current)
    except TemplateError as error:
        if pinned in ("", current):
            raise
        message = f"{pinned}, which {template.image.parameter} named at first, is gone: {error.message}"
        step = f"take the image that it names now: set spec.ami to id: {current}, or to follow: true"
        raise TemplateError(message, code=error.code, next_step=step) from error
    moved = pinned not in ("", current)
    return used, f"launches use {pinned}, {template.image.parameter} names {current} by now" if moved else ""


def role_of(aws: Aws, template: NodeTemplate) -> str:
    """The name of the role in the instance profile. Raises TemplateError if there is no profile, or no role."""
    name = template.instance_profile.rpartition("/")[2]
    with translated(f"GetInstanceProfile {name}"):
        roles = aws.iam.get_instance_profile(InstanceProfileName=name)["InstanceProfile"]["Roles"]
    if not roles:
        step = "add the node role: aws iam add-role-to-instance-profile"
        raise TemplateError(f"instance profile {name} has no role", next_step=step)
    return str(roles[0]["RoleName"])


def strategy_of(aws: Aws, template: NodeTemplate) -> str:
    """The strategy of the placement group: cluster, partition or spread. Raises TemplateError if there is no group."""
    name = template.placement_group
    with translated(f"DescribePlacementGroups {name}"):
        found = aws.ec2.describe_placement_groups(GroupNames=[name])["PlacementGroups"]
    if not found or found[0]["State"] != "available":
        step = f"create it: aws ec2 create-placement-group --group-name {name} --strategy cluster"
        raise TemplateError(f"placement group {name} is not available", next_step=step)
    return str(found[0]["Strategy"])


def _itself(error: UncertainError) -> UncertainError:
    return error


def fault_of(field: str, error: ProviderError) -> TemplateFault:
    """An error as the fault of a field; not certain if the provider could not read the resource."""
    blind = isinstance(error, ThrottledError | UncertainError | UnknownRefusalError)
    denied = error.code in _DENIED and field in _NOT_NEEDED_TO_LAUNCH
    return TemplateFault(field, error.kind, error.message, error.next_step, certain=not blind and not denied)


def _concerns_every_call(error: ProviderError) -> bool:
    """True if the next call would fail in the same way: no answer, no credentials, too many calls."""
    credentials = isinstance(error, PermissionDeniedError) and error.code not in _DENIED
    return credentials or isinstance(error, ThrottledError | UncertainError | UnknownRefusalError)
