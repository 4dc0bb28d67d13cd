"""Scheduling cycles: pods one after the other, each on one of the nodes with the highest score.

The choice among several such nodes is a parameter: kube-scheduler draws (pkg/scheduler/schedule_one.go, v1.36.3), a
replay tests if it matters. Nothing is preempted, and all nodes are checked, in clusters of any size.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final, TypeAlias

from autoscaler.dra.allocation.search import VERDICT_ONLY
from autoscaler.model.pod import Pod
from autoscaler.model.verdict import Fatal, Fits, Verdict
from autoscaler.scheduling.fit import fit_one
from autoscaler.scheduling.scores import likely_nodes
from autoscaler.scheduling.world import World
from instance_catalog.dataclass import dataclass

_FORESIGHT: Final = 32  # pending pods that the adversary considers


@dataclass(frozen=True, slots=True)
class Tie:
    """A pod with its equally good nodes and the verdicts there, the pods behind it in the queue, and the world."""

    pod: Pod
    options: Mapping[str, Fits]
    waiting: Sequence[Pod]
    world: World


# The function that chooses a node of a tie.
Choice: TypeAlias = Callable[[Tie], str]
# The verdicts of the nodes about a pod; those that are known to refuse it may be missing.
Verdicts: TypeAlias = Callable[[Pod, World], Mapping[str, Verdict]]


@dataclass(frozen=True, slots=True)
class Bound:
    """A pod with its node and the allocations of its claims there."""

    pod: Pod
    node: str
    verdict: Fits


@dataclass(frozen=True, slots=True)
class Scheduled:
    """The result for the pods: bound ones in their order, those that fit nowhere at their turn, and the new world."""

    bound: tuple[Bound, ...]
    left: tuple[Pod, ...]
    world: World


def everywhere(pod: Pod, world: World) -> Mapping[str, Verdict]:
    """The verdict of each node, without reasons of claims: nobody reads them."""
    return {name: fit_one(pod, name, world, budget=VERDICT_ONLY) for name in world.nodes}


def schedule(pods: Sequence[Pod], world: World, choose: Choice, verdicts: Verdicts = everywhere) -> Scheduled:
    """Place the pods in the given order; each one after those before it are placed."""
    bound: list[Bound] = []
    left: list[Pod] = []
    for position, pod in enumerate(pods):
        options = equally_good(pod, world, verdicts)
        if not options:
            left.append(pod)
            continue
        tie = Tie(pod, options, pods[position + 1 :], world)
        name = choose(tie) if len(options) > 1 else next(iter(options))
        bound.append(Bound(pod, name, options[name]))
        world = world.placed((pod,), name, options[name])
    return Scheduled(tuple(bound), tuple(left), world)


def equally_good(pod: Pod, world: World, verdicts: Verdicts = everywhere) -> Mapping[str, Fits]:
    """The nodes that kube-scheduler may take for the pod, with their verdicts.

    The node that the pod was nominated to comes first. Empty if a node aborts the attempt.
    """
    nominated = pod.nominated_node
    if nominated is not None and nominated in world.nodes:
        verdict = fit_one(pod, nominated, world)
        if isinstance(verdict, Fits):
            return {nominated: verdict}
    found = verdicts(pod, world)
    if any(isinstance(verdict, Fatal) for verdict in found.values()):
        return {}
    fitting = {name: verdict for name, verdict in found.items() if isinstance(verdict, Fits)}
    return {name: fitting[name] for name in likely_nodes(pod, fitting, world)}


def first(tie: Tie) -> str:
    """The first node by name."""
    return min(tie.options)


def seeded(seed: int) -> Choice:
    """A choice that looks random, the same for the same seed and pod."""

    def choose(tie: Tie) -> str:
        digest = hashlib.sha256(f"{seed} {tie.pod.key}".encode()).digest()
        return sorted(tie.options)[int.from_bytes(digest[:8]) % len(tie.options)]

    return choose


def adversarial(tie: Tie) -> str:
    """The node after which the fewest of the next pending pods fit anywhere; of these the one with the fewest pods.

    It looks one step ahead: a plan that passes it is robust, not proven.
    """

    def harm(name: str) -> tuple[int, int, str]:
        after = tie.world.placed((tie.pod,), name, tie.options[name])
        placeable = sum(1 for other in islice(tie.waiting, _FORESIGHT) if _fits_somewhere(other, after))
        return placeable, len(tie.world.nodes[name].pods), name

    return min(tie.options, key=harm)


def _fits_somewhere(pod: Pod, world: World) -> bool:
    return any(isinstance(fit_one(pod, name, world), Fits) for name in world.nodes)
