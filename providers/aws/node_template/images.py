"""Images: an AMI by id, or by an SSM parameter that is read once. The first value stays until the template changes.

launch_template.py keeps the first value; this module only reads.
"""

from __future__ import annotations

import re
from typing import Final

from instance_catalog.dataclass import dataclass
from providers.aws.calls import PARAMETERS
from providers.aws.errors import translated
from providers.aws.node_template.template import Image
from providers.aws.session import Aws
from providers.errors import TemplateError

_AMI: Final = re.compile(r"ami-[0-9a-f]+", re.ASCII)


@dataclass(frozen=True, slots=True)
class ImageFacts:
    id: str
    name: str
    architecture: str  # amd64, arm64; "" if EC2 does not return it
    root_device: str


def resolve(aws: Aws, image: Image) -> str:
    """The current id of the AMI.

    Raises TemplateError if the parameter may not be read, does not exist or holds no AMI id. The message does not show
    its value: more people may write templates than may read the account's parameters.
    """
    if image.id:
        return image.id
    if not image.parameter.startswith(PARAMETERS):
        step = f"use one of AWS under {PARAMETERS[0]}, or keep your own under {PARAMETERS[1]}"
        raise TemplateError(f"SSM parameter {image.parameter} is none that Foreslice reads", next_step=step)
    with translated(f"GetParameter {image.parameter}"):
        value = str(aws.ssm.get_parameter(Name=image.parameter)["Parameter"]["Value"])
    if not _AMI.fullmatch(value):
        step = "name a parameter that holds an AMI id, such as EKS's image_id parameters"
        raise TemplateError(f"SSM parameter {image.parameter} holds no AMI id", next_step=step)
    return value


def facts(aws: Aws, ami: str) -> ImageFacts:
    """EC2's description of an AMI. Raises TemplateError if it does not exist, or is not shared with this account."""
    with translated(f"DescribeImages {ami}"):
        found = aws.ec2.describe_images(ImageIds=[ami])["Images"]
    if not found:
        step = "choose an AMI of this region, or have it shared with this account"
        raise TemplateError(f"there is no image {ami}", code="InvalidAMIID.NotFound", next_step=step)
    named = found[0].get("Architecture", "")
    architecture = {"x86_64": "amd64"}.get(named, named)
    return ImageFacts(ami, found[0].get("Name", ""), architecture, found[0].get("RootDeviceName", ""))
