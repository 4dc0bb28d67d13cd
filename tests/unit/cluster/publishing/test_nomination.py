"""The scheduler may be faster than a nomination: the real API server then refuses it, and that stops nothing else."""

from __future__ import annotations

from autoscaler.clock import EPOCH, VirtualClock
from autoscaler.cluster.api import InvalidError, Object, Subresource
from autoscaler.cluster.publishing.publisher import Publisher
from autoscaler.cluster.resources import EVENTS, PODS, Resource
from autoscaler.model.plan import LeftOut, LeftOutVerdict, Plan
from autoscaler.model.pod import Pod
from autoscaler.model.provisioned_node import OfferingRef, Phase, Prediction, ProvisionedNode
from autoscaler.model.reason import Code, Reason
from autoscaler.model.snapshot import Snapshot
from autoscaler.simulation.api_server import ApiServer
from instance_catalog.types.instance_type import CapacityType

OFFERING = OfferingRef("p5.48xlarge", "us-east-1a", CapacityType.ON_DEMAND)
PREDICTION = Prediction("p5.48xlarge", (), "", "")
NODE = ProvisionedNode(
    "n1", "gpu", "n1", "b", (OFFERING,), PREDICTION, Phase.READY, provider_id="i-1", pods=("default/a",)
)


class Bound(ApiServer):
    """Every pod has been bound since it was seen (pkg/apis/core/validation, Kubernetes v1.36)."""

    def patch(
        self, resource: Resource, name: str, patch: Object, *, namespace: str = "", subresource: Subresource = ""
    ) -> Object:
        if resource == PODS and "nominatedNodeName" in patch["status"]:
            raise InvalidError("status.nominatedNodeName: Forbidden: may not be set on pods that are already bound")
        return super().patch(resource, name, patch, namespace=namespace, subresource=subresource)


def test_a_pod_that_was_bound_meanwhile_needs_no_nomination() -> None:
    api = Bound(VirtualClock())
    left = LeftOut("default/b", LeftOutVerdict.DOES_NOT_FIT, (Reason.of(Code.NO_CANDIDATE),))
    pods = (Pod("default", "a", uid="u-a"), Pod("default", "b", uid="u-b"))
    Publisher(api).publish(Plan(left_out=(left,)), Snapshot(pods=pods, provisioned=(NODE,)), EPOCH)
    assert [event["involvedObject"]["name"] for event in api.list(EVENTS).items] == ["b"]
