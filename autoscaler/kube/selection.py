"""Services and controllers as what they select; only scores ask."""

from __future__ import annotations

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.kube.selectors import parse_label_selector
from autoscaler.model.labels import LabelSelector
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.selection import Selection
from instance_catalog.kubernetes.node_selector import Requirement

# Their selectors are maps of labels; everybody else's are LabelSelectors.
_BY_MAP = ("Service", "ReplicationController")


def parse_selection(
    raw: object, kind: str, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> Selection | None:
    """What an object of `kind` selects. None for a Service without a selector: it selects nothing."""
    fields = Fields(raw, problems)
    metadata = parse_metadata(fields)
    spec = fields.child("spec")
    if "selector" not in spec:
        return None
    if kind in _BY_MAP:
        pairs = spec.text_map("selector").items()
        selector = LabelSelector(tuple(Requirement(key, "In", (value,)) for key, value in pairs))
    else:
        selector = parse_label_selector(spec.child("selector")) or LabelSelector()
    return Selection(kind, metadata.namespace, metadata.name, selector, origin=origin)
