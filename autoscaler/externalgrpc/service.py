"""The service CloudProvider: answers the calls of Cluster Autoscaler's loops from memory.

Facts about the caller (kubernetes/autoscaler 55c37cd5, cloudprovider/externalgrpc): every call has five seconds, and
none has a key, so a repeated IncreaseSize is a new order. Refresh begins each loop of ten seconds; it is the only call
that reads the API server. Node groups, templates and nodes are cached until the next Refresh, the GPU label for ever.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import Any, Final

import structlog

from autoscaler.cluster.api import ApiError, KubernetesApi
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.externalgrpc.exemplars import NAME, Exemplars
from autoscaler.externalgrpc.instances import instance_of, names_of
from autoscaler.externalgrpc.kubernetes_types import POD
from autoscaler.externalgrpc.node_groups import (
    Launchable,
    NodeGroup,
    awaits_claims,
    described,
    groups_of,
    hours_of,
    is_counted,
    key_of_node,
    listed,
    price_of,
    share_of,
)
from autoscaler.externalgrpc.orders import Orders
from autoscaler.externalgrpc.refusal import CallRefusedError, Status
from autoscaler.externalgrpc.templates import exemplar_of, template_bytes
from autoscaler.externalgrpc.wire import Json, decode
from autoscaler.model.provisioned_node import ProvisionedNode
from autoscaler.planning.supply.candidates import Candidate
from instance_catalog.kubernetes import labels

_LOG: Final = structlog.get_logger("foreslice.externalgrpc")
# Cluster Autoscaler holds a node with its GPU label for unready until it has a GPU in its allocatable, which nodes
# whose GPUs are given out by DRA never have. So no node has this label.
GPU_LABEL: Final = f"cluster-autoscaler.{labels.GROUP}/no-node-has-this-label"


class CloudProvider:
    """The calls by their names. Any thread may call them, one at a time.

    `slices`: templates have ResourceSlices. `most`: the number of groups that are listed. `exemplars`: None if the
    caller gets none.
    """

    def __init__(
        self,
        api: KubernetesApi,
        draw: Callable[[], str],
        *,
        slices: bool,
        most: int,
        exemplars: Exemplars | None = None,
    ) -> None:
        self._orders = Orders(api, draw)
        self._draw = draw
        self._exemplars = exemplars
        self._withheld = ""  # the pod for which the log says so
        self._slices = slices
        self._most = most
        self._launchable: Launchable | None = None
        self._lock = threading.RLock()
        self._groups: Mapping[str, NodeGroup] = {}
        self._by_name: Mapping[str, ProvisionedNode] = {}
        self.calls: Mapping[str, Callable[[Json], Json]] = {
            "NodeGroups": self._node_groups,
            "NodeGroupForNode": self._node_group_for_node,
            "PricingNodePrice": self._pricing_node_price,
            "PricingPodPrice": self._pricing_pod_price,
            "GPULabel": lambda _: {"label": GPU_LABEL},
            "GetAvailableGPUTypes": self._gpu_types,
            "Cleanup": lambda _: {},
            "Refresh": self._refresh,
            "NodeGroupTargetSize": lambda asked: {"targetSize": self._group(asked).size},
            "NodeGroupIncreaseSize": self._increase_size,
            "NodeGroupDeleteNodes": self._delete_nodes,
            "NodeGroupDecreaseTargetSize": self._decrease_target_size,
            "NodeGroupNodes": self._nodes,
            "NodeGroupTemplateNodeInfo": self._template,
            # No options mean the caller's own. Echoed ones would lack its MaxNodeStartupTime, which the message cannot
            # say: a node that boots would count as unready at once, and be ordered again in every loop.
            "NodeGroupGetOptions": lambda _: {},
        }

    def update(self, launchable: Launchable) -> None:
        """Sets the launchable groups, as of the last reconcile."""
        with self._lock:
            self._launchable = launchable
            self._template_of = cache(lambda candidate: template_bytes(candidate, launchable.snapshot))
            if self._orders.read:
                self._regroup(launchable)

    def call(self, method: str, asked: Json) -> Json:
        """Answer a call. Raises CallRefusedError."""
        with self._lock:
            try:
                if not self._orders.read and method != "Refresh":
                    self._refresh({})  # this process has just started, in the middle of a loop of the caller
                return self.calls[method](asked)
            except (ApiError, LeadershipLostError) as error:
                raise CallRefusedError(Status.UNAVAILABLE, error.message, next_step=error.next_step) from error

    @property
    def launchable(self) -> Launchable:
        """Raises CallRefusedError before the first reconcile."""
        if self._launchable is None:
            raise CallRefusedError(Status.UNAVAILABLE, "the cluster has not been read yet", next_step="try again")
        return self._launchable

    def group(self, name: str) -> NodeGroup | None:
        """A group as it was listed last."""
        return self._groups.get(name)

    def _regroup(self, launchable: Launchable) -> None:
        uncharged = self._orders.uncharged(launchable.batches, launchable.pools)
        self._groups = groups_of(launchable, self._orders.nodes(), uncharged=uncharged)
        nodes = (node for group in self._groups.values() for node in group.nodes)
        self._by_name = {name: node for node in nodes for name in names_of(node)}

    def _refresh(self, _: Json) -> Json:
        launchable = self.launchable  # without one there are no groups, and no reason to list anything
        self._orders.refresh()
        self._regroup(launchable)
        if self._exemplars is not None:
            wanting = [name for name, group in self._groups.items() if awaits_claims(launchable, group)]
            self._exemplars.refreshed(wanting)
            if launchable.fearless not in ("", self._withheld):
                _LOG.warning(
                    "exemplar_withheld", pod=launchable.fearless, why="it has a claim and tolerates every taint"
                )
            self._withheld = launchable.fearless
        return {}

    def _node_groups(self, _: Json) -> Json:
        return {"nodeGroups": [_described(group) for group in listed(self.launchable, self._groups, most=self._most)]}

    def _group(self, asked: Json) -> NodeGroup:
        name = asked.get("id", "")
        group = self._groups.get(name)
        if group is None:
            raise CallRefusedError(
                Status.NOT_FOUND,
                f"there is no node group {name!r}",
                next_step="Refresh lists those that there are: its pool may be gone, or not have launcher "
                "ClusterAutoscaler",
            )
        return group

    def _node_group_for_node(self, asked: Json) -> Json:
        node = self._node(asked.get("node", {}))
        shown = self._exemplars and self._exemplars.group_of(asked.get("node", {}).get("name", ""))
        if shown and shown in self._groups:
            return {"nodeGroup": _described(self._groups[shown])}
        # A node that leaves is in no group: a ready one would stand for the node that was ordered in its place, and
        # one more would be ordered; its taint would become one of the group's template.
        if node is None or not is_counted(node):
            return {"nodeGroup": {"id": ""}}
        return {"nodeGroup": _described(self._groups[key_of_node(node).id])}

    def _node(self, asked: Json) -> ProvisionedNode | None:
        """The node of that id or name, placeholders included; None for nodes that Cluster Autoscaler must not touch."""
        found = (self._by_name.get(asked.get(key, "")) for key in ("providerID", "name"))
        return next((node for node in found if node is not None), None)

    def _nodes(self, asked: Json) -> Json:
        backoffs = self.launchable.snapshot.backoffs
        return {"instances": [instance_of(node, backoffs) for node in self._group(asked).nodes]}

    def _template(self, asked: Json) -> Json:
        group = self._group(asked)
        candidate = group.candidate
        if candidate is None:
            # Never empty bytes: Cluster Autoscaler would work with a template that is nil.
            raise CallRefusedError(Status.UNIMPLEMENTED, "the pool no longer offers such nodes")
        self._show(group, candidate)
        node, slices = self._template_of(candidate)
        return {"nodeBytes": node, "resourceSliceBytes": slices if self._slices else ()}

    def _show(self, group: NodeGroup, candidate: Candidate) -> None:
        """Creates an exemplar if needed: a caller that requests a template has never seen a node of the group, or has
        forgotten it."""
        launchable = self.launchable
        if self._exemplars is None or not awaits_claims(launchable, group) or not self._exemplars.wants(group.id):
            return
        name = f"{NAME}{self._draw()}"
        exemplar = exemplar_of(group.id, candidate, launchable.snapshot, name=name, now=launchable.now)
        if exemplar is not None:
            self._exemplars.show(exemplar)

    def _increase_size(self, asked: Json) -> Json:
        group, delta = self._group(asked), asked.get("delta", 0)
        if delta <= 0:
            raise CallRefusedError(Status.INVALID_ARGUMENT, f"a size cannot be increased by {delta}")
        if group.candidate is None or group.size + delta > group.most:
            raise CallRefusedError(
                Status.OUT_OF_RANGE,
                f"node group {group.id} may have {group.most} nodes, not {group.size + delta}",
                next_step="limits of the pool, spending guards, back-offs and the pool's mode bound it: see "
                "`foreslice status`",
            )
        if self._exemplars is not None:
            self._exemplars.end(group=group.id)  # beside the ordered node it would count as that node
        batch = self._orders.increase(group.candidate, self.launchable, delta)
        self._regroup(self.launchable)
        _LOG.info("nodes_ordered", group=group.id, nodes=delta, batch=batch.name)
        return {}

    def _delete_nodes(self, asked: Json) -> Json:
        group = self._group(asked)
        named = [given for given in asked.get("nodes", []) if not self._is_exemplar(given)]
        found = [(given, self._member(group, given)) for given in named]
        elsewhere = [given for given, node in found if node is None]
        if elsewhere:
            name = elsewhere[0].get("name") or elsewhere[0].get("providerID", "")
            raise CallRefusedError(
                Status.INVALID_ARGUMENT, f"node {name!r} is not in node group {group.id}: no node is deleted"
            )
        self._withdraw(group, [node for _, node in found if node is not None and is_counted(node)])
        return {}

    def _is_exemplar(self, asked: Json) -> bool:
        """True if the node is an exemplar, which then ends: it has no machine."""
        return self._exemplars is not None and self._exemplars.end(name=asked.get("name", ""))

    def _member(self, group: NodeGroup, asked: Json) -> ProvisionedNode | None:
        node = self._node(asked)
        return node if node is not None and key_of_node(node).id == group.id else None

    def _decrease_target_size(self, asked: Json) -> Json:
        group, delta = self._group(asked), asked.get("delta", 0)
        if delta >= 0:
            raise CallRefusedError(Status.INVALID_ARGUMENT, f"a size cannot be decreased by {delta}: it is negative")
        waiting = [node for node in group.nodes if is_counted(node) and not node.provider_id]
        if len(waiting) < -delta:
            raise CallRefusedError(
                Status.INVALID_ARGUMENT,
                f"node group {group.id} has only {len(waiting)} nodes without a machine, not {-delta}",
            )
        self._withdraw(group, _last_ordered(waiting)[:-delta])
        return {}

    def _withdraw(self, group: NodeGroup, nodes: Sequence[ProvisionedNode]) -> None:
        if not self._orders.may_withdraw(nodes):
            raise CallRefusedError(
                Status.UNAVAILABLE,
                f"nodes of node group {group.id} are ordered and not written down yet",
                next_step="delete them in a later loop",
            )
        try:
            self._orders.withdraw(nodes)
        finally:
            self._regroup(self.launchable)
        _LOG.info("nodes_withdrawn", group=group.id, nodes=[node.name for node in nodes])

    def _gpu_types(self, _: Json) -> Json:
        types = [group.candidate.instance_type.accelerator for group in self._groups.values() if group.candidate]
        return {"gpuTypes": {found.key: b"" for found in types if found is not None}}

    def _pricing_node_price(self, asked: Json) -> Json:
        node = self._node(asked.get("node", {}))
        group = self._groups[key_of_node(node).id] if node else self._by_labels(asked.get("node", {}))
        price = None if group is None else price_of(group)
        if price is None:
            raise CallRefusedError(Status.UNIMPLEMENTED, "no price is known for this node")
        return {"price": float(price) * hours_of(asked)}

    def _by_labels(self, asked: Json) -> NodeGroup | None:
        """The group of a template that Cluster Autoscaler has renamed: the cheapest whose nodes have such labels."""
        given = asked.get("labels", {})
        wanted = [given.get(key, "") for key in _TELLING]
        found = [g for g in self._groups.values() if g.candidate and _telling(g) == wanted]
        return min(found, key=lambda group: price_of(group) or Decimal(0), default=None)

    def _pricing_pod_price(self, asked: Json) -> Json:
        metadata: Mapping[str, Any] = decode(POD, asked.get("pod_bytes", b"")).get("metadata", {})
        key = f"{metadata.get('namespace', 'default')}/{metadata.get('name', '')}"
        group = self._groups.get(self.launchable.cheapest.get(key, ""))
        price = None if group is None or group.candidate is None else price_of(group)
        if price is None or group is None or group.candidate is None:
            raise CallRefusedError(Status.UNIMPLEMENTED, "no price is known for this pod")
        return {"price": float(price) * hours_of(asked) * share_of(key, group.candidate, self.launchable.snapshot)}


_TELLING: Final = (labels.POOL, labels.INSTANCE_TYPE, labels.CAPACITY_TYPE, labels.ZONE, labels.CAPACITY_BLOCK)


def _telling(group: NodeGroup) -> list[str]:
    candidate = group.candidate
    assert candidate is not None
    offering = candidate.offering
    machine = candidate.instance_type.machine_type
    return [candidate.pool.name, machine, offering.capacity_type, offering.zone, offering.block]


def _described(group: NodeGroup) -> Json:
    """A NodeGroup. The smallest size is zero: only the loop launches nodes that a pool keeps without pods."""
    debug = f"{group.id}: {'; '.join(described(group))}"
    return {"id": group.id, "minSize": 0, "maxSize": group.most, "debug": debug}


def _last_ordered(nodes: Sequence[ProvisionedNode]) -> list[ProvisionedNode]:
    """Whole batches after each other, so that one is withdrawn before it is requested, if possible."""
    sizes: dict[str, int] = {}
    for node in nodes:
        sizes[node.batch] = sizes.get(node.batch, 0) + 1
    return sorted(nodes, key=lambda node: (sizes[node.batch], node.batch, node.name))
