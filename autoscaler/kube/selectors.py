"""Node selectors, label selectors, taints and tolerations: the pieces that many kinds share."""

from __future__ import annotations

from autoscaler.kube.fields import Fields
from autoscaler.model.labels import LabelSelector
from instance_catalog.node_selector import NodeSelector, NodeSelectorTerm, Requirement
from instance_catalog.taint import Taint, Toleration

NODE_TAINT_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
DEVICE_TAINT_EFFECTS = ("NoSchedule", "NoExecute", "None")
_LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def parse_requirement(fields: Fields) -> Requirement:
    """One `key operator values` entry; whether the operator is allowed is judged when it is used."""
    found = Requirement(fields.required("key"), fields.required("operator"), fields.texts("values"))
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
    """A core/v1 NodeSelector; None when there is none."""
    if fields is None:
        return None
    terms = tuple(parse_node_selector_term(term) for term in fields.children("nodeSelectorTerms"))
    fields.unread()
    return NodeSelector(terms)


def parse_label_selector(fields: Fields | None) -> LabelSelector | None:
    """A metav1.LabelSelector; None when there is none (which matches nothing, unlike an empty one)."""
    if fields is None:
        return None
    labels = fields.text_map("matchLabels")
    requirements = [Requirement(key, "In", (value,)) for key, value in labels.items()]
    for entry in fields.children("matchExpressions"):
        entry.choice("operator", _LABEL_OPERATORS, default="")
        requirements.append(parse_requirement(entry))
    fields.unread()
    return LabelSelector(tuple(requirements))


def parse_taint(fields: Fields, *, effects: tuple[str, ...] = NODE_TAINT_EFFECTS) -> Taint:
    """A taint of a node, or of a device with `effects` DEVICE_TAINT_EFFECTS."""
    fields.ignore("timeAdded")
    taint = Taint(fields.required("key"), fields.text("value"), fields.choice("effect", effects, default=""))
    fields.unread()
    return taint


def parse_toleration(fields: Fields) -> Toleration:
    """A toleration with the API server's default operator Equal. Unknown operators are kept: they tolerate nothing."""
    toleration = Toleration(
        key=fields.text("key"),
        operator=fields.text("operator") or "Equal",
        value=fields.text("value"),
        effect=fields.text("effect"),
        toleration_seconds=fields.optional_integer("tolerationSeconds"),
    )
    if toleration.operator not in ("Equal", "Exists"):
        fields.warn(
            "operator",
            f"operator {toleration.operator!r} is not supported: it tolerates nothing here",
            "use Equal or Exists",
        )
    elif toleration.operator == "Exists" and toleration.value:
        fields.error("value", "must be empty when the operator is Exists", "remove the value or use operator Equal")
    elif toleration.operator == "Equal" and not toleration.key:
        fields.error("operator", "must be Exists when there is no key", "add a key or write `operator: Exists`")
    fields.unread()
    return toleration
