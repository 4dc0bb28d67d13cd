"""Node selectors, label selectors, taints and tolerations, which many kinds share, and selectors of Services."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import parse_metadata
from autoscaler.kube.problem import Problems
from autoscaler.model.labels import LabelSelector, Selection
from autoscaler.model.origin import CLUSTER, Origin
from instance_catalog.kubernetes.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.kubernetes.taint import Taint, Toleration

NODE_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
DEVICE_TAINT_EFFECTS = ("NoSchedule", "NoExecute", "None")
NODE_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
# Kinds whose selector is a map of labels; all others have a LabelSelector.
_BY_MAP = ("Service", "ReplicationController")


def parse_requirement(fields: Fields, operators: Iterable[str] = NODE_OPERATORS) -> Requirement:
    """One `key operator values` entry of a selector; values that the API server refuses are kept."""
    operator = fields.choice("operator", operators, default="")
    found = Requirement(fields.required("key"), operator, fields.texts("values"))
    match operator:
        case "In" | "NotIn" if not found.values:
            fields.error("values", f"{operator} needs at least one value", "list the values")
        case "Exists" | "DoesNotExist" if found.values:
            fields.error("values", f"{operator} takes no values", "remove them, or write operator: In")
        case "Gt" | "Lt" | "Gte" | "Lte" if len(found.values) != 1:
            fields.error("values", f"{operator} compares with one number", "write one number, in quotes")
    fields.unread()
    return found


def parse_node_selector_term(fields: Fields) -> NodeSelectorTerm:
    """A core/v1 NodeSelectorTerm."""
    term = NodeSelectorTerm(
        tuple(parse_requirement(entry) for entry in fields.children("matchExpressions")),
        tuple(parse_requirement(entry) for entry in fields.children("matchFields")),
    )
    fields.unread()
    return term


def parse_node_selector(fields: Fields | None) -> NodeSelector | None:
    """A core/v1 NodeSelector; None if there is none."""
    if fields is None:
        return None
    terms = tuple(parse_node_selector_term(term) for term in fields.children("nodeSelectorTerms"))
    fields.unread()
    return NodeSelector(terms)


def parse_label_selector(fields: Fields | None) -> LabelSelector | None:
    """A metav1.LabelSelector; None if there is none (which matches nothing, unlike an empty one)."""
    if fields is None:
        return None
    labels = fields.text_map("matchLabels")
    requirements = [Requirement(key, "In", (value,)) for key, value in labels.items()]
    requirements += [parse_requirement(entry, _LABEL_OPERATORS) for entry in fields.children("matchExpressions")]
    fields.unread()
    return LabelSelector(tuple(requirements))


def parse_taint(fields: Fields, *, effects: tuple[str, ...] = NODE_TAINT_EFFECTS) -> Taint:
    """A taint of a node, or of a device with `effects` DEVICE_TAINT_EFFECTS."""
    fields.ignore("timeAdded")
    taint = Taint(fields.required("key"), fields.text("value"), fields.choice("effect", effects, default=""))
    fields.unread()
    return taint


def parse_pod_toleration(fields: Fields) -> tuple[Toleration, tuple[str, ...]]:
    """A toleration of a pod, with its unsupported parts: Gt and Lt (alpha gate TaintTolerationComparisonOperators)."""
    operator = fields.text("operator")
    if operator not in ("Gt", "Lt"):
        return parse_toleration(fields), ()
    fields.warn("operator", f"{operator} is not supported", "what depends on it gets the verdict unknown")
    fields.ignore("tolerationSeconds")
    found = Toleration(fields.text("key"), operator, fields.text("value"), fields.text("effect"))
    fields.unread()
    return found, (f"{operator} in a toleration",)


def parse_toleration(fields: Fields) -> Toleration:
    """A pod's toleration with the API server's default operator Equal; any other is kept: it tolerates nothing."""
    return parse_device_toleration(fields, of_pod=True)


def parse_device_toleration(fields: Fields, *, of_pod: bool = False) -> Toleration:
    """The same in a claim, where the API server accepts Equal without a key (pkg/apis/resource/validation v1.36): it
    tolerates every taint with the same value. `of_pod`: refused, as tolerations of pods are."""
    toleration = Toleration(
        key=fields.text("key"),
        operator=fields.text("operator") or "Equal",
        value=fields.text("value"),
        effect=fields.text("effect"),
        toleration_seconds=fields.optional_integer("tolerationSeconds"),
    )
    if toleration.operator not in ("Equal", "Exists"):
        fields.error(
            "operator", f"{toleration.operator!r} is not one of Equal, Exists", "use one of the allowed values"
        )
    elif toleration.operator == "Exists" and toleration.value:
        fields.error("value", "must be empty when the operator is Exists", "remove the value or use operator Equal")
    elif toleration.operator == "Equal" and not toleration.key and of_pod:
        fields.error("operator", "must be Exists when there is no key", "add a key or write `operator: Exists`")
    elif toleration.operator == "Equal" and not toleration.key:
        value = f"value {toleration.value!r}" if toleration.value else "an empty value"
        message = f"without a key and with operator Equal, the default, it tolerates only taints with {value}"
        fields.warn("operator", message, "write `operator: Exists` to tolerate all of them")
    fields.unread()
    return toleration


def parse_selection(
    raw: object, kind: str, problems: Problems | None = None, *, origin: Origin = CLUSTER
) -> Selection | None:
    """The selector of an object of `kind`. None for a Service without one: it selects nothing."""
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
