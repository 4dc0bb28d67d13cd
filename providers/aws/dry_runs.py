"""Tries launches without starting anything, as `foreslice aws check` does: each call as the launcher makes it.

EC2 answers a dry run that would have succeeded with the error DryRunOperation. Every other answer is a finding: a
launch with these parameters would be refused as well. Interfaces differ from type to type, so a type of each pool is
tried, with the layout, the volumes and the user data of a real launch.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from instance_catalog.dataclass import dataclass
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.types.instance_type import ANY_ZONE, CapacityType
from providers.aws.describe import listed
from providers.aws.errors import translated
from providers.aws.launch import Launcher
from providers.aws.node_template.images import ImageFacts, facts, resolve
from providers.aws.node_template.launch_template import launch_tags, tag_list, template_data, with_root_device
from providers.aws.node_template.network import Subnet, interfaces
from providers.aws.node_template.template import NodeTemplate
from providers.aws.node_template.user_data import user_data
from providers.contract import TAG_CLUSTER, LaunchRequest, OfferingKey, TemplateRef
from providers.errors import (
    NotOfferedError,
    PermissionDeniedError,
    ProviderError,
    QuotaError,
    ShortageError,
    UncertainError,
    UnclassifiedError,
)
from providers.finding import Finding, missing, note, ok

DRY_RUN: Final = "DryRunOperation"
_POLICY: Final = "deploy/aws/controller-policy.json has it"


def no_types(template: str) -> Sequence[str]:
    """The types if no pool is known."""
    return ()


@dataclass(frozen=True, slots=True)
class DryRuns:
    """The dry runs of one cluster. `types` returns the types that the pools of a template start."""

    launcher: Launcher
    cluster: str
    types: Callable[[str], Sequence[str]] = no_types

    def findings(self, template: NodeTemplate) -> Iterator[Finding]:
        """EC2's answers to the calls that a launch from this template makes."""
        image = facts(self.launcher.aws, resolve(self.launcher.aws, template.image))
        for name in self._tried_types(template, image.architecture):
            yield from self._launches(template, name, image)
        yield self._own_template(template, image.id)
        yield from self._end(template)

    def _tried_types(self, template: NodeTemplate, architecture: str) -> Sequence[str]:
        """A type of each pool that this image runs on; without a pool the smallest that the catalog has."""
        sold = (one for one in self.launcher.catalog.types.values() if one.cloud == "aws")
        known = {one.name: one for one in sold if architecture in ("", one.architecture)}
        fitting = [name for name in dict.fromkeys(self.types(template.name)) if name in known]
        return fitting or [one.name for one in sorted(known.values(), key=lambda one: (one.vcpu, one.name))[:1]]

    def _launches(self, template: NodeTemplate, name: str, image: ImageFacts) -> Iterator[Finding]:
        """RunInstances and CreateFleet of one type, in the first zone that sells it."""
        subnets = self.launcher.network.subnets_for(template, ANY_ZONE, "")
        found: ProviderError | None = None
        where = subnets[0]
        for where in subnets:
            found = self._run_instances(template, name, image, where)
            if not isinstance(found, NotOfferedError):
                break
        what = f"{name} in {where.zone} with {_interfaces_text(self._data(template, name)['NetworkInterfaces'])}"
        yield _finding(template, "ec2:RunInstances", what, found)
        yield self._create_fleet(template, name, where)

    def _run_instances(
        self, template: NodeTemplate, name: str, image: ImageFacts, subnet: Subnet
    ) -> ProviderError | None:
        """The content of the launch template is given in the call: dry runs make nothing that one could name."""
        data = self._data(template, name)
        with_subnet = [{**one, "SubnetId": subnet.id} for one in data["NetworkInterfaces"]]
        parameters = {
            **with_root_device(data, image),
            "ImageId": image.id,
            "InstanceType": name,
            "MinCount": 1,
            "MaxCount": 1,
            "NetworkInterfaces": with_subnet,
            # The SDK encodes the user data of this call, and of no other.
            "UserData": base64.b64decode(data["UserData"]).decode(),
            "TagSpecifications": self._tags(template, "instance", "volume", "network-interface"),
        }
        return _refusal("RunInstances", lambda: self.launcher.aws.ec2.run_instances(**parameters, DryRun=True))

    def _create_fleet(self, template: NodeTemplate, name: str, subnet: Subnet) -> Finding:
        """CreateFleet takes no content of its own: it needs a version, which a launch with such interfaces makes."""
        templates = self.launcher.launch_templates
        version = templates.newest_with(template, self._data(template, name)["NetworkInterfaces"])
        named = version or {"LaunchTemplateName": templates.name(template), "Version": "1"}
        error = _refusal(
            "CreateFleet",
            lambda: self.launcher.aws.ec2.create_fleet(
                Type="instant",
                LaunchTemplateConfigs=[
                    {
                        "LaunchTemplateSpecification": named,
                        "Overrides": [{"InstanceType": name, "SubnetId": subnet.id, "Priority": 0.0}],
                    }
                ],
                TargetCapacitySpecification={"TotalTargetCapacity": 1, "DefaultTargetCapacityType": "on-demand"},
                OnDemandOptions={"AllocationStrategy": "prioritized"},
                TagSpecifications=self._tags(template, "fleet", "instance", "volume"),
                DryRun=True,
            ),
        )
        what = f"{name} in {subnet.zone}"
        if version is None and not isinstance(error, PermissionDeniedError | UncertainError):
            step = "check again after the first launch, which makes it"
            message = f"not tried with {what}: there is no version of the launch template for it yet"
            return note(_of(template, f"ec2:CreateFleet of {name}"), message, step)
        return _finding(template, "ec2:CreateFleet", what, error)

    def _own_template(self, template: NodeTemplate, image: str) -> Finding:
        name = f"{self.launcher.launch_templates.name(template)}-check"
        error = _refusal(
            "CreateLaunchTemplate",
            lambda: self.launcher.aws.ec2.create_launch_template(
                LaunchTemplateName=name,
                LaunchTemplateData={"ImageId": image},
                TagSpecifications=self._tags(template, "launch-template"),
                DryRun=True,
            ),
        )
        return _finding(template, "ec2:CreateLaunchTemplate", "", error)

    def _end(self, template: NodeTemplate) -> Iterator[Finding]:
        """Tries to end a machine, if there is one."""
        own = next(iter(listed(self.launcher.aws, {TAG_CLUSTER: self.cluster})), None)
        if own is not None:
            ids = [own["InstanceId"]]
            error = _refusal(
                "TerminateInstances", lambda: self.launcher.aws.ec2.terminate_instances(InstanceIds=ids, DryRun=True)
            )
            yield _finding(template, "ec2:TerminateInstances", ids[0], error)

    def _data(self, template: NodeTemplate, name: str) -> dict[str, Any]:
        """The launch template data that the launcher would write for such a machine."""
        cluster = self.launcher.clusters.joined(template.cluster)
        groups = self.launcher.network.security_groups(template)
        request = LaunchRequest(
            token="check",
            nodes=("check",),
            offerings=(OfferingKey(name, ANY_ZONE, CapacityType.ON_DEMAND),),
            tags=FrozenMap({TAG_CLUSTER: self.cluster}),
            template=TemplateRef("AWSNodeTemplate", template.name),
        )
        return template_data(
            template,
            cluster=self.launcher.launch_templates.cluster,
            user_data=user_data(template, cluster, request),
            interfaces=interfaces(self.launcher.catalog.types.get(name), template, groups, ipv6=cluster.ipv6),
            open_reservations=template.use_open_reservations,
            ipv6=cluster.ipv6,
        )

    def _tags(self, template: NodeTemplate, *kinds: str) -> list[dict[str, Any]]:
        tags = tag_list({**launch_tags(template, template.cluster.name), TAG_CLUSTER: self.cluster})
        return [{"ResourceType": kind, "Tags": tags} for kind in kinds]


def _refusal(action: str, attempt: Callable[[], Any]) -> ProviderError | None:
    """The error that EC2 would return for the call; None if it would succeed."""
    try:
        with translated(action):
            attempt()
    except ProviderError as error:
        return None if error.code == DRY_RUN else error
    return UnclassifiedError(f"{action} was answered as if it were no dry run")


def _finding(template: NodeTemplate, action: str, what: str, error: ProviderError | None) -> Finding:
    tried = f" ({what})" if what else ""
    subject = _of(template, action)
    match error:
        case None:
            return ok(subject, f"allowed{tried}")
        case PermissionDeniedError():
            return missing(subject, f"{error.message}{tried}", f"allow {action}: {_POLICY}")
        case NotOfferedError() | ShortageError() | QuotaError():
            # Other types, zones and reservations of the pool may be had all the same.
            return note(subject, f"{error.message}{tried}", error.next_step)
    return missing(subject, f"EC2 would refuse it: {error.message}{tried}", error.next_step)


def _interfaces_text(found: Sequence[Any]) -> str:
    efa = sum(one["InterfaceType"] != "interface" for one in found)
    return f"{len(found)} interfaces, {efa} of them EFA" if len(found) > 1 or efa else "one interface"


def _of(template: NodeTemplate, part: str) -> str:
    return f"AWSNodeTemplate {template.name}: {part}"
