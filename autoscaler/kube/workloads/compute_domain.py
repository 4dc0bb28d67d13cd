"""ComputeDomains (resource.nvidia.com/v1beta1): the ResourceClaimTemplate that their controller creates for workloads.

Source: kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1, cmd/compute-domain-controller. The domain's id is its uid; if
there is none yet, it is derived from the name.
"""

from __future__ import annotations

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.pod import uid_of
from autoscaler.kube.problem import Problems
from autoscaler.kube.resource_claim import parse_resource_claim_template
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.resource_claim import ResourceClaimTemplate
from instance_catalog.drivers.opaque import CHANNEL_CLASS, CHANNEL_DRIVER


def parse_compute_domain(
    raw: object, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> ResourceClaimTemplate | None:
    """The channel template, None if the ComputeDomain does not name one (an error)."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    fields.ignore("apiVersion", "kind", "status")
    spec = fields.child("spec")
    spec.ignore("numNodes")  # deprecated: it only affects when the status is Ready
    channel = spec.child("channel")
    template = channel.child("resourceClaimTemplate")
    name, mode = template.required("name"), channel.choice("allocationMode", ("Single", "All"), "Single")
    for part in (template, channel, spec, fields):
        part.unread()
    if not name:
        return None
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "ComputeDomainChannelConfig",
        "domainID": metadata.uid or uid_of("ComputeDomain", metadata.namespace, metadata.name),
        "allocationMode": mode,
    }
    manifest = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": metadata.namespace},
        "spec": {
            "spec": {
                "devices": {
                    "requests": [{"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}],
                    "config": [
                        {"requests": ["channel"], "opaque": {"driver": CHANNEL_DRIVER, "parameters": parameters}}
                    ],
                }
            }
        },
    }
    return parse_resource_claim_template(manifest, origin=origin)
