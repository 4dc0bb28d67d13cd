"""Pods that select one node by its name, and the node is not in sight."""

from __future__ import annotations

import re
from collections.abc import Set
from typing import Final

from autoscaler.kube.problem import UNREPLACED, left_by_template
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes import labels

# What examples write where the name of a node belongs: node-name, my-node, NODE_NAME, <the node>.
_EXAMPLE: Final = re.compile(r"(?i)(?:(?:my|some|a|the|this|example|target)[-_. ])?(?:node|host)(?:[-_. ]?name)?")
_GIVE: Final = "give the Node with -f to plan for it, or select machines by what they have"


def placeholder_of_node(name: str) -> str:
    """The next step for the name of a node that an example left for users to replace; "" for others."""
    left = left_by_template(name)
    if left == UNREPLACED and ("$" in name or "{{" in name):
        return left
    looks = left or _EXAMPLE.fullmatch(name)
    return "it looks like a placeholder: write the name of one of your Nodes (kubectl get nodes)" if looks else ""


def known_nodes(snapshot: Snapshot) -> Set[str]:
    """The values of the label by which pods select a node by its name."""
    return {node.labels.get(labels.HOSTNAME, node.name) for node in snapshot.nodes}


def one_node(pod: Pod, there: Set[str]) -> str:
    """The node that the pod selects by its name and that is not in sight; or nothing."""
    return next((names[0] for names in pod.required_values({labels.HOSTNAME}) if there.isdisjoint(names)), "")


def one_node_told(name: str) -> tuple[Path, str, str]:
    left = placeholder_of_node(name)
    return (
        ("spec", "nodeSelector", labels.HOSTNAME),
        f"selects the node {name}: it is not among the nodes that are given, and no node of a plan has its name",
        f"{left}; then {_GIVE}" if left else _GIVE,
    )
