"""What the schedules are about: a pool, pods and gangs, the calls that may fail, and how.

The sources of the codes are those of providers/aws/errors.py.
"""

from __future__ import annotations

from typing import Final

from tests.fakes.ec2 import (
    CUT_AFTER,
    CUT_BEFORE,
    INTERNAL_ERROR,
    INTERNAL_ERROR_AFTER,
    THROTTLED,
    TIMEOUT_AFTER,
    TIMEOUT_BEFORE,
    UNAVAILABLE,
    refused,
)

POOL = """
apiVersion: foreslice.dev/v1alpha1
kind: CapacityPool
metadata: {name: gpu}
spec:
  mode: Act
  requirements: [{key: topology.kubernetes.io/zone, operator: In, values: [us-east-1a, us-east-1b]}]
  capacityTypes: [spot, on-demand]
  nodeTemplateRef: {kind: KIND, name: gpu}
  drivers: {profiles: [nvidia]}
  limits: {nodes: 8}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpu}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com}}]}}}
"""
PODS_OF = """
apiVersion: v1
kind: Pod
metadata:
  name: work-{number}
  labels: {{{gang}}}
  annotations: {{simulation.foreslice.dev/copies: "{copies}", simulation.foreslice.dev/runs-for: {minutes}m}}
spec:
  resourceClaims: [{{name: gpu, resourceClaimTemplateName: gpu}}]
  containers: [{{name: main, image: pause, resources: {{claims: [{{name: gpu}}], requests: {{cpu: "1"}}}}}}]
"""
GANG_OF = """
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {{name: gang-{number}, namespace: default}}
spec: {{minMember: {copies}}}
---
"""
CALLS = ("CreateFleet", "RunInstances", "DescribeInstances", "TerminateInstances", "DescribeCapacityReservations")
RARE_CALLS = ("CreateLaunchTemplate", "DescribeLaunchTemplateVersions", "DescribeSubnets", "GetParameter")
GROUP_CALLS = (
    "LaunchInstances",
    "SetDesiredCapacity",
    "CreateOrUpdateTags",
    "CreateTags",
    "TerminateInstanceInAutoScalingGroup",
    "DescribeAutoScalingGroups",
    "DescribeScalingActivities",
)
QUEUE_CALLS = ("ReceiveMessage", "DeleteMessageBatch")
FAULTS = {
    "times out after the effect": TIMEOUT_AFTER,
    "times out before the effect": TIMEOUT_BEFORE,
    "is cut after the effect": CUT_AFTER,
    "is cut before the effect": CUT_BEFORE,
    "fails inside after the effect": INTERNAL_ERROR_AFTER,
    "fails inside": INTERNAL_ERROR,
    "finds EC2 overloaded": UNAVAILABLE,
    "is throttled": THROTTLED,
    "gets a code nobody knows": refused("Teapot"),
    "is told that its token was used": refused("IdempotentParameterMismatch"),
}
PLACES = [(kind, f"us-east-1{zone}") for kind in ("g6.xlarge", "g6e.xlarge") for zone in "ab"]
# What is wrong with a template, or with what it names.
TEMPLATE_CODES: Final = (
    "InvalidAMIID.NotFound",
    "InvalidParameterValue",
    "InvalidSubnetID.NotFound",
    "InvalidLaunchTemplateId.VersionNotFound",
    "InvalidLaunchTemplateName.NotFoundException",
)
