"""Pods that select nodes by their names, and none of the nodes is in sight."""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from typing import Final

from autoscaler.kube.problem import UNREPLACED, left_by_template
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from instance_catalog.diagnostic import Path
from instance_catalog.kubernetes import labels

# What examples write where the name of a node belongs: node-name, my-node, NODE_NAME, <the node>.
_EXAMPLE: Final = re.compile(r"(?i)(?:(?:my|some|a|the|this|example|target)[-_. ])?(?:node|host)(?:[-_. ]?name)?")
_MOST: Final = 3  # names in a message


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


def nodes_named(pod: Pod, there: Set[str]) -> tuple[str, ...]:
    """The nodes that the pod selects by their names, if none of them is in sight."""
    return next((names for names in pod.required_values({labels.HOSTNAME}) if there.isdisjoint(names)), ())


def nodes_told(names: Sequence[str]) -> tuple[Path, str, str]:
    more = f" and {len(names) - _MOST} more" if len(names) > _MOST else ""
    left = next(filter(None, map(placeholder_of_node, names)), "")
    what = f"the node {names[0]}: it is" if len(names) == 1 else f"the nodes {', '.join(names[:_MOST])}{more}: they are"
    its, node, it = ("its name", "Node", "it") if len(names) == 1 else ("one of the names", "Nodes", "them")
    give = f"give the {node} with -f to plan for {it}, or select machines by what they have"
    return (
        ("spec", "nodeSelector", labels.HOSTNAME),
        f"selects {what} not among the nodes that are given, and no node of a plan has {its}",
        f"{left}; then {give}" if left else give,
    )
