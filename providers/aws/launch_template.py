"""Launch templates: one for each node template of the cluster, a version for each distinct content, found by its hash.

A version's description holds two hashes: of the content, and of where its image comes from. The first makes versions
findable after a restart; the second keeps what an SSM parameter said first, because the image of an earlier version
with the same source is taken again. So the memory of pinned images is in EC2, beside what was launched with them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from providers.aws.errors import translated
from providers.aws.images import resolve
from providers.aws.session import Aws
from providers.aws.template import Image, NodeTemplate, Volume
from providers.contract import TAG_CLUSTER
from providers.errors import GoneError, ProviderError

NODE_TEMPLATE_TAG: Final = "foreslice.dev/node-template"
_ABSENT: Final = "InvalidLaunchTemplateName.NotFoundException"
_EXISTS: Final = "InvalidLaunchTemplateName.AlreadyExistsException"


@dataclass(frozen=True, slots=True)
class Version:
    """A version of a launch template by name and number, and the image it starts."""

    template: str
    number: int
    content: str
    source: str
    image: str

    @property
    def specification(self) -> dict[str, str]:
        """As launches name it."""
        return {"LaunchTemplateName": self.template, "Version": str(self.number)}


@dataclass(frozen=True, slots=True)
class Drift:
    """The image in use, and the one its parameter names now."""

    template: str
    parameter: str
    used: str
    current: str


class LaunchTemplates:
    """Finds and makes the launch templates of one cluster."""

    def __init__(self, aws: Aws, cluster: str) -> None:
        self._aws = aws
        self._cluster = cluster
        self._known: dict[str, dict[str, Version]] = {}  # by template name, then by content

    def version(self, template: NodeTemplate, data: Mapping[str, Any]) -> Version:
        """The version with this content (all but its image), made when there is none. Raises what EC2 refuses."""
        name = self._name(template)
        image = Image(id=resolve(self._aws, template.image)) if template.image.follow else template.image
        source = _digest(image.id or image.parameter)
        content = _digest(data, source)
        if content not in self._known.get(name, {}):
            self._known[name] = self._read(name)
        found = self._known[name].get(content)
        if found is None:
            pinned = next((v.image for v in self._known[name].values() if v.source == source), "")
            ami = pinned or resolve(self._aws, image)
            found = self._make(template, Version(name, 0, content, source, ami), data)
            self._known[name][content] = found
        return found

    def forget(self, template: NodeTemplate) -> None:
        """Look at EC2 again: somebody deleted it."""
        self._known.pop(self._name(template), None)

    def drift(self, template: NodeTemplate) -> Drift | None:
        """The difference between the image in use and what the parameter names now; None without one."""
        if not template.image.parameter or template.image.follow:
            return None
        source = _digest(template.image.parameter)
        used = next((v.image for v in self._read(self._name(template)).values() if v.source == source), "")
        current = resolve(self._aws, template.image)
        return Drift(template.name, template.image.parameter, used, current) if used not in ("", current) else None

    def _name(self, template: NodeTemplate) -> str:
        return f"foreslice-{self._cluster}-{template.name}"

    def _read(self, name: str) -> dict[str, Version]:
        """All versions of ours; of equal ones the oldest, so that everybody chooses the same."""
        try:
            with translated(f"DescribeLaunchTemplateVersions {name}"):
                pages = list(
                    self._aws.ec2.get_paginator("describe_launch_template_versions").paginate(LaunchTemplateName=name)
                )
        except GoneError as error:
            if error.code != _ABSENT:
                raise
            return {}
        versions = sorted((v for page in pages for v in page["LaunchTemplateVersions"]), key=_number)
        found: dict[str, Version] = {}
        for version in versions:
            content, _, source = version.get("VersionDescription", "").partition(" ")
            image = version["LaunchTemplateData"].get("ImageId", "")
            found.setdefault(content, Version(name, _number(version), content, source, image))
        return found

    def _make(self, template: NodeTemplate, wanted: Version, data: Mapping[str, Any]) -> Version:
        about = {
            "LaunchTemplateName": wanted.template,
            "VersionDescription": f"{wanted.content} {wanted.source}",
            "LaunchTemplateData": {**data, "ImageId": wanted.image},
        }
        if not self._known[wanted.template]:
            tags = {TAG_CLUSTER: self._cluster, NODE_TEMPLATE_TAG: template.name}
            specification = [{"ResourceType": "launch-template", "Tags": tag_list(tags)}]
            try:
                with translated(f"CreateLaunchTemplate {wanted.template}"):
                    self._aws.ec2.create_launch_template(**about, TagSpecifications=specification)
                return Version(wanted.template, 1, wanted.content, wanted.source, wanted.image)
            except ProviderError as error:
                if error.code != _EXISTS:
                    raise
        with translated(f"CreateLaunchTemplateVersion {wanted.template}"):
            made = self._aws.ec2.create_launch_template_version(**about)["LaunchTemplateVersion"]
        return Version(wanted.template, _number(made), wanted.content, wanted.source, wanted.image)


def template_data(
    template: NodeTemplate, *, user_data: str, interfaces: list[dict[str, Any]], open_reservations: bool
) -> dict[str, Any]:
    """The content of a version, without its image. Instance metadata only by IMDSv2; volumes go with the machine."""
    profile = template.instance_profile
    data: dict[str, Any] = {
        "IamInstanceProfile": {"Arn": profile} if profile.startswith("arn:") else {"Name": profile},
        "UserData": user_data,
        "NetworkInterfaces": interfaces,
        "InstanceInitiatedShutdownBehavior": "terminate",
        "MetadataOptions": {
            "HttpEndpoint": "enabled",
            "HttpTokens": "required",
            "HttpPutResponseHopLimit": template.hop_limit,
        },
        "Monitoring": {"Enabled": template.monitoring},
    }
    if template.volumes:
        data["BlockDeviceMappings"] = [{"DeviceName": v.device, "Ebs": _ebs(v)} for v in template.volumes]
    if template.placement_group:
        data["Placement"] = {"GroupName": template.placement_group}
    if not open_reservations:
        data["CapacityReservationSpecification"] = {"CapacityReservationPreference": "none"}
    return data


def tag_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """Tags as EC2 takes them."""
    return [{"Key": key, "Value": value} for key, value in sorted(tags.items())]


def launch_tags(template: NodeTemplate, cluster_name: str) -> dict[str, str]:
    """Tags of everything a template launches, beside the ownership tags; the cloud controller needs the second."""
    own = {"Name": f"{cluster_name}/{template.name}", NODE_TEMPLATE_TAG: template.name}
    return {**own, f"kubernetes.io/cluster/{cluster_name}": "owned", **template.tags}


def _ebs(volume: Volume) -> dict[str, Any]:
    return {
        "DeleteOnTermination": True,
        "Encrypted": volume.encrypted,
        "VolumeType": volume.kind,
        **({"VolumeSize": volume.gibibytes} if volume.gibibytes is not None else {}),
        **({"Iops": volume.iops} if volume.iops is not None else {}),
        **({"Throughput": volume.throughput} if volume.throughput is not None else {}),
        **({"SnapshotId": volume.snapshot} if volume.snapshot else {}),
        **({"KmsKeyId": volume.key} if volume.key else {}),
    }


def _number(version: Mapping[str, Any]) -> int:
    return int(version["VersionNumber"])


def _digest(*parts: object) -> str:
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]
