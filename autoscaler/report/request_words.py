"""What pods and capacity that is asked for without pods hear: ProvisioningRequests and CapacityBuffers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaler.model.reason import Code

_OF_OTHERS: Final = (
    "gets its capacity through ProvisioningRequest {request} of class {class_name}, which another autoscaler serves"
)

REQUEST_TEXTS: Final[Mapping[Code, tuple[str, ...]]] = {
    Code.PROVISIONING_REQUEST: (
        "names ProvisioningRequest {request} and the class {says}, and the request is of class {class_name}: correct "
        "the annotation provisioning-class-name",
        _OF_OTHERS + " and which has ended ({ended}): {message}; make a request with another name",
        _OF_OTHERS + " ({condition}): {message}",
        _OF_OTHERS + " and has not answered yet",
        "names ProvisioningRequest {missing} of class {of_class}, which is not known: create it and its PodTemplate, "
        "or remove the annotation {annotation}",
        "names ProvisioningRequest {missing}, which is not known: create it, or remove the annotation {annotation}",
        "gets its capacity through ProvisioningRequest {request}",
    ),
    Code.BOOKED: ("is kept for the consumers of a ProvisioningRequest",),
    Code.BUFFERS_SERVED: (
        "{kind} serves CapacityBuffers of every strategy, so Foreslice serves none: turn its feature gate "
        "CapacityBuffer off to have them served here",
    ),
}
