"""Affinity and topology spread of pods, with upstream's defaults applied and matchLabelKeys merged into selectors."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.kube.fields import Fields
from autoscaler.kube.selectors import parse_label_selector, parse_node_selector, parse_node_selector_term
from autoscaler.model.labels import LabelSelector
from autoscaler.model.pod import PodAffinityTerm, PreferredPodTerm, PreferredTerm, TopologySpread, WhenUnsatisfiable
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.node_selector import NodeSelector, Requirement

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_POLICIES = ("Honor", "Ignore")
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Affinity:
    """spec.affinity. `unknown` are fields that are not supported."""

    nodes: NodeSelector | None = None
    preferred_nodes: tuple[PreferredTerm, ...] = ()
    pods: tuple[PodAffinityTerm, ...] = ()
    anti_pods: tuple[PodAffinityTerm, ...] = ()
    preferred_pods: tuple[PreferredPodTerm, ...] = ()
    preferred_anti_pods: tuple[PreferredPodTerm, ...] = ()
    unknown: tuple[str, ...] = ()


def parse_affinity(fields: Fields, *, namespace: str, labels: Mapping[str, str]) -> Affinity:
    """The affinity of a pod in `namespace` with `labels`."""
    nodes, pods, anti = (fields.child(f"{kind}Affinity") for kind in ("node", "pod", "podAnti"))
    return Affinity(
        nodes=parse_node_selector(nodes.optional_child(_REQUIRED)),
        preferred_nodes=tuple(_parse_preferred(entry) for entry in nodes.children(_PREFERRED)),
        pods=tuple(_parse_term(term, namespace, labels) for term in pods.children(_REQUIRED)),
        anti_pods=tuple(_parse_term(term, namespace, labels) for term in anti.children(_REQUIRED)),
        preferred_pods=tuple(_parse_preferred_pods(term, namespace, labels) for term in pods.children(_PREFERRED)),
        preferred_anti_pods=tuple(_parse_preferred_pods(term, namespace, labels) for term in anti.children(_PREFERRED)),
        unknown=(*nodes.unread(), *pods.unread(), *anti.unread(), *fields.unread()),
    )


def parse_topology_spread(fields: Fields, labels: Mapping[str, str]) -> TopologySpread:
    """One entry of spec.topologySpreadConstraints of a pod with `labels`."""
    # Any other value is already reported as an error; a filter is the stricter reading.
    named = fields.choice("whenUnsatisfiable", tuple(when.value for when in WhenUnsatisfiable), "")
    when = WhenUnsatisfiable(named) if named else WhenUnsatisfiable.DO_NOT_SCHEDULE
    selector = parse_label_selector(fields.optional_child("labelSelector"))
    constraint = TopologySpread(
        max_skew=_positive(fields, "maxSkew"),
        topology_key=fields.required("topologyKey"),
        when_unsatisfiable=when,
        selector=_merge(selector, "In", fields.texts("matchLabelKeys"), labels),
        min_domains=_positive(fields, "minDomains") if "minDomains" in fields else None,
        node_affinity_policy=fields.choice("nodeAffinityPolicy", _POLICIES, "Honor"),
        node_taints_policy=fields.choice("nodeTaintsPolicy", _POLICIES, "Ignore"),
    )
    if constraint.min_domains is not None and when is WhenUnsatisfiable.SCHEDULE_ANYWAY:
        fields.error("minDomains", "is allowed only with whenUnsatisfiable: DoNotSchedule", "remove it")
    fields.unread()
    return constraint


def _positive(fields: Fields, name: str) -> int:
    found = fields.optional_integer(name)
    if found is None or found < 1:
        fields.error(name, "is required" if found is None else f"is {found}", "write a number of at least 1")
        return 1
    return found


def _parse_preferred(fields: Fields) -> PreferredTerm:
    term = PreferredTerm(fields.integer("weight"), parse_node_selector_term(fields.child("preference")))
    fields.unread()
    return term


def _parse_preferred_pods(fields: Fields, namespace: str, labels: Mapping[str, str]) -> PreferredPodTerm:
    inner = _parse_term(fields.child("podAffinityTerm"), namespace, labels)
    term = PreferredPodTerm(fields.integer("weight"), inner)
    fields.unread()
    return term


def _parse_term(fields: Fields, namespace: str, labels: Mapping[str, str]) -> PodAffinityTerm:
    """One term. Without namespaces and namespaceSelector the pod's own namespace counts (core/v1 PodAffinityTerm)."""
    selector = parse_label_selector(fields.optional_child("labelSelector"))
    selector = _merge(selector, "In", fields.texts("matchLabelKeys"), labels)
    selector = _merge(selector, "NotIn", fields.texts("mismatchLabelKeys"), labels)
    namespaces = fields.texts("namespaces")
    namespace_selector = parse_label_selector(fields.optional_child("namespaceSelector"))
    term = PodAffinityTerm(
        selector=selector,
        topology_key=fields.required("topologyKey"),
        namespaces=namespaces if namespaces or namespace_selector is not None else (namespace,),
        namespace_selector=namespace_selector,
    )
    fields.unread()
    return term


def _merge(
    selector: LabelSelector | None, operator: str, keys: tuple[str, ...], labels: Mapping[str, str]
) -> LabelSelector | None:
    """The selector with the pod's labels of these keys. Keys that the pod lacks are skipped; if the API server has
    merged already, nothing changes."""
    if selector is None:
        return None
    more = [Requirement(key, operator, (labels[key],)) for key in keys if key in labels]
    return LabelSelector((*selector.requirements, *(one for one in more if one not in selector.requirements)))
