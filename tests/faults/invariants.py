"""What must hold whatever happens around the controller: one function for each invariant, for every suite.

Each looks at objects as the API serves them and yields one sentence for what is wrong, which begins with the number of
the invariant, as in the tables of docs/operations.md and docs/crash.md. They are about what a controller does, so they
are asked when it does it, with what is true then, and not about what it believed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from autoscaler.cluster.api import Object, key_of
from autoscaler.model.reason import Code
from instance_catalog.kubernetes import labels

# What a node may be drained for although pods run on it. Consolidation that moves pods is not built yet.
WANTED: Final = frozenset(
    code.value
    for code in (
        Code.BLOCK_ENDING,
        Code.MACHINE_RECREATED,
        Code.NODE_RECLAIMED,
        Code.POOL_DELETED,
        Code.SLICE_BROKEN,
    )
)
# Nodes that have been asked for and do not take pods yet, and are not on their way out.
_COMING: Final = frozenset({"Intended", "Launching", "Launched", "Registered", "DriversReady"})
# Nodes that no pod is sent to any more.
ENDING: Final = frozenset({"Failed", "Draining", "Terminating", "Gone"})
_DONE: Final = ("Succeeded", "Failed")
# A launch that fails is asked for no more often.
MOST_AN_HOUR: Final = 60
# Calls that change something at AWS or at Google. Those that end machines are judged one by one.
CHANGING: Final = (
    "createInstances",
    "resizeRequests.insert",
    "CreateFleet",
    "CreateLaunchTemplate",
    "CreateLaunchTemplateVersion",
    "CreateOrUpdateTags",
    "CreateTags",
    "DeleteLaunchTemplate",
    "DeleteLaunchTemplateVersions",
    "DeleteMessageBatch",
    "LaunchInstances",
    "RunInstances",
    "SetDesiredCapacity",
)
# Objects of the controller itself: nothing of them may be left when nothing is asked for.
_STAYING: Final = ("DaemonSet", "Node")


def hold(found: Collection[str]) -> None:
    """Raises AssertionError, which says what was found, if anything was."""
    if found:
        raise AssertionError("\n".join(found))


def evicted(pod: Object, provisioned: Object | None, *, uid: str) -> Iterator[str]:
    """1: a pod is evicted only where its node goes for a reason that outranks it, and only the pod that was meant.

    `provisioned` is the ProvisionedNode of its node, None where there is none; `uid` what the eviction named.
    """
    if not uid:
        yield f"invariant 1: pod {key_of(pod)} is evicted without its uid"
    if _occupies(pod) and not is_ordered(provisioned):
        yield f"invariant 1: pod {key_of(pod)} is evicted from {_told(provisioned)}"


def machine_ended(provisioned: Object | None, node: Object | None, pods: Iterable[Object]) -> Iterator[str]:
    """1 and 3: the controller ends a machine. `pods` are those bound to its Node, None if it has not joined."""
    if is_ordered(provisioned):
        return
    staying = [key_of(pod) for pod in pods if _occupies(pod)]
    if staying:
        yield f"invariant 1: {', '.join(staying)} lose the machine of {_told(provisioned)}"
    if Code.NODE_UNHEALTHY.value in _codes(provisioned) and node is not None and is_ready(node):
        yield f"invariant 3: {_told(provisioned)} is ended, and its Node is Ready"


def given_up(provisioned: Object, *, runs: bool) -> Iterator[str]:
    """3: a node counts as lost or gone only when its machine does not run. `runs`: the provider still runs it."""
    status = provisioned.get("status", {})
    history = status.get("history", ())
    why = history[-1].get("reason", "") if history else ""
    runs = runs and "recreatedAs" not in status  # what runs is another machine, whose end is judged by itself
    lost = status.get("phase") == "Gone" or (status.get("phase") == "Terminating" and why == "Interrupted")
    if runs and lost:
        yield f"invariant 3: {_told(provisioned)} is given up ({why}), and its machine {machine_of(provisioned)} runs"


def node_deleted(
    node: Object, provisioned: Object | None, pods: Iterable[Object], *, uid: str, ours: bool, runs: bool
) -> Iterator[str]:
    """1, 3 and 4: a Node is deleted by uid, if it is ours, and not under its machine or its pods.

    `ours`: its machine is one that we launched. `uid`: the precondition. `runs`: its machine still does.
    """
    name = node["metadata"]["name"]
    if not uid:
        yield f"invariant 4: Node {name} is deleted without its uid"
    provider_id = node.get("spec", {}).get("providerID", "")
    if not ours and (provider_id or labels.POOL not in node["metadata"].get("labels", {})):
        yield f"invariant 4: Node {name} is deleted, whose providerID {provider_id!r} is not ours"
    if ours and runs:
        yield f"invariant 3: Node {name} is deleted, and its machine runs"
        staying = [key_of(pod) for pod in pods if _occupies(pod)]
        if staying and not is_ordered(provisioned):
            yield f"invariant 1: {', '.join(staying)} lose Node {name} of {_told(provisioned)}"


def touched_in_observe(what: str, provisioned: Object | None, every: Iterable[Object]) -> Iterator[str]:
    """P2: in mode Observe nothing changes that exists, except what a person deletes. `what` is about to be done to a
    node or its machine; `every` is all ProvisionedNodes: who deletes one host of a slice orders all hosts to go."""
    if provisioned is None or not any("deletionTimestamp" in one["metadata"] for one in _hosts(provisioned, every)):
        yield f"invariant P2: in mode Observe the controller would {what} of {_told(provisioned)}"


def _hosts(provisioned: Object, every: Iterable[Object]) -> list[Object]:
    """The node, or all hosts of the slice that it is a part of."""
    spec = provisioned["spec"]
    if spec.get("hosts", 1) == 1:
        return [provisioned]
    return [one for one in every if one["spec"]["batch"] == spec["batch"]]


def changed_in_observe(calls: Mapping[str, int]) -> Iterator[str]:
    """P2: the provider is asked for no change. `calls` since the pools observe, but those that end machines."""
    for name in CHANGING:
        if calls.get(name, 0):
            yield f"invariant P2: {calls[name]} calls of {name} in mode Observe"


def asked_too_often(failed: Mapping[str, Sequence[datetime]]) -> Iterator[str]:
    """P3: a launch that fails is asked for at most 60 times an hour. `failed`: when, by operation, in order."""
    for name, moments in failed.items():
        for first, last in zip(moments, moments[MOST_AN_HOUR:], strict=False):
            if last - first < timedelta(hours=1):
                yield f"invariant P3: {name} failed more than {MOST_AN_HOUR} times from {first:%H:%M:%S} on"
                break


def over_quota(busiest: Mapping[str, int], limits: Mapping[str, int]) -> Iterator[str]:
    """P3: no minute has as many calls of a group as its quota allows. `busiest`: the most in one minute, by group."""
    for group, calls in sorted(busiest.items()):
        if calls >= limits[group]:
            yield f"invariant P3: {calls} {group} in one minute, of {limits[group]}"


def unbooked(since: Mapping[str, datetime], *, now: datetime, patience: timedelta) -> Iterator[str]:
    """3: no machine of ours costs money unknown to us. `since`: when nobody began to know of it, by its name."""
    for name, moment in sorted(since.items()):
        if now - moment > patience:
            yield f"invariant 3: machine {name} costs money, and nothing knows of it since {moment:%H:%M:%S}"


def mistaken(since: Mapping[str, datetime], *, now: datetime, patience: timedelta) -> Iterator[str]:
    """P9: a machine that was made anew under the same name is not taken for the old one. `since`: when nothing was in
    the way of seeing that the machine of a node is another, by the node's name."""
    for name, moment in sorted(since.items()):
        if now - moment > patience:
            yield f"invariant P9: node {name} stays, and its machine is another one since {moment:%H:%M:%S} at least"


def strangers_taken(provisioned: Iterable[Object], strangers: Collection[str]) -> Iterator[str]:
    """P5: machines that no launch of ours started are not adopted, so nothing counts them. `strangers`: their ids."""
    for node in provisioned:
        if machine_of(node).rpartition("/")[2] in strangers:
            yield f"invariant P5: {_told(node)} has machine {machine_of(node)}, which somebody else started"


def strangers_changed(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[str]:
    """P5: nor are they ended or tagged. Both: what a machine is like as far as only people change it, by id."""
    for machine in sorted(before.keys() & after.keys()):
        if before[machine] != after[machine]:
            yield f"invariant P5: machine {machine} of somebody else was {before[machine]}, and is {after[machine]}"


def ended_by(error: BaseException) -> str:
    """2: whatever an object or an answer is like, the process lives."""
    return f"invariant 2: the process ends by {type(error).__name__}: {error}"


def cut_short(error: BaseException, *, rounds: int) -> str:
    """2: a round that fails is followed by one that does not."""
    return f"invariant 2: {rounds} rounds in a row were cut short, the last by {type(error).__name__}: {error}"


def kept_waiting(pods: Iterable[Object], *, bad: Collection[str]) -> Iterator[str]:
    """2: what cannot be handled keeps nobody else waiting. `pods` when all should have run; `bad` are keys."""
    for pod in pods:
        phase = pod.get("status", {}).get("phase")
        if phase not in _DONE and key_of(pod) not in bad:
            yield f"invariant 2: pod {key_of(pod)} is {phase} in the end"


def lost(ran: Mapping[str, str], pods: Iterable[Object]) -> Iterator[str]:
    """1, seen from outside: pods that ran and that nobody took away still run. `ran`: their uids by namespace/name."""
    found = {key_of(pod): pod for pod in pods}
    for key, uid in sorted(ran.items()):
        pod = found.get(key)
        if pod is None or pod["metadata"]["uid"] != uid or "deletionTimestamp" in pod["metadata"]:
            yield f"invariant 1: pod {key} ran, and was taken away"


def bought_twice(batch: Object, provisioned: Iterable[Object], pods: Iterable[Object]) -> Iterator[str]:
    """8: with the nodes of a batch that is about to be written no more are on their way than pods wait.

    A pod may take the node that another one was bought, which then gets its own: so nodes are counted, not names. A
    machine that somebody stopped takes no pods, so another node is bought in its place. Of a slice, which is bought as
    a whole, the hosts with pods count. Those of a CapacityBlock do not: they come whether or not pods wait.
    """
    if _of_block(batch):
        return
    waiting = {key_of(pod) for pod in pods if not pod["spec"].get("nodeName")}
    spec = batch["spec"]
    wanted = zip(spec["nodes"], spec.get("pods", ()), strict=False)
    coming = {node for node, keys in wanted if keys} if spec.get("whole") else set(spec["nodes"])
    waiting.update(key for keys in batch["spec"].get("pods", ()) for key in keys)
    if not waiting:  # what is held is bought without pods
        return
    for node in provisioned:
        asking, status = node.get("spec", {}).get("pods", ()), node.get("status", {})
        comes = status.get("phase") in _COMING and "stoppedSince" not in status
        if asking and comes and "deletionTimestamp" not in node["metadata"] and not _of_block(node):
            coming.add(node["metadata"]["name"])
            waiting.update(asking)
    if len(coming) > len(waiting):
        yield f"invariant 8: {', '.join(sorted(coming))} are bought for {', '.join(sorted(waiting))}"


def doubled(provisioned: Iterable[Object]) -> Iterator[str]:
    """8: one machine is one node."""
    machines: dict[str, list[str]] = {}
    for node in provisioned:
        machines.setdefault(machine_of(node), []).append(node["metadata"]["name"])
    for machine, names in machines.items():
        if machine and len(names) > 1:
            yield f"invariant 8: {', '.join(names)} have one machine, {machine}"


def _of_block(asked: Object) -> bool:
    """Whether a batch or a node is what a CapacityBlock holds."""
    return any(offering.get("block") for offering in asked["spec"].get("offerings", ()))


def more_than_asked(alive: Mapping[str, int], asked: Mapping[str, int]) -> Iterator[str]:
    """8: no batch has more machines than nodes. Both by name of the batch."""
    for batch, count in alive.items():
        if count > asked.get(batch, 0):
            yield f"invariant 8: batch {batch} has more machines than nodes: {count} for {asked.get(batch, 0)}"


def left_over(kind: str, names: Iterable[str]) -> Iterator[str]:
    """9: when nothing is asked for any more, nothing is left."""
    found = sorted(names)
    if found:
        yield f"invariant 9: {kind} left: {', '.join(found)}"


def is_ordered(provisioned: Object | None) -> bool:
    """Whether a node goes although pods run on it: a person deleted it, or one of the reasons that outrank pods."""
    if provisioned is None:
        return False
    return "deletionTimestamp" in provisioned["metadata"] or bool(_codes(provisioned) & WANTED)


def goes(provisioned: Object) -> bool:
    """Whether a node is on its way out, or a person ordered that."""
    return "deletionTimestamp" in provisioned["metadata"] or provisioned.get("status", {}).get("phase") in ENDING


def is_ready(node: Object) -> bool:
    """Whether the kubelet says so."""
    conditions = node.get("status", {}).get("conditions", ())
    return any(found["type"] == "Ready" and found["status"] == "True" for found in conditions)


def machine_of(provisioned: Object) -> str:
    """The provider id of its machine; "" before it has one."""
    return str(provisioned.get("status", {}).get("providerID", ""))


def node_name_of(provisioned: Object) -> str:
    """The name of its Node."""
    return str(provisioned.get("status", {}).get("nodeName") or provisioned["spec"]["nodeName"])


def _codes(provisioned: Object | None) -> frozenset[str]:
    reasons: Iterable[Mapping[str, Any]] = (provisioned or {}).get("status", {}).get("reasons", ())
    return frozenset(str(reason["code"]) for reason in reasons)


def _told(provisioned: Object | None) -> str:
    if provisioned is None:
        return "a node that is not ours"
    phase = provisioned.get("status", {}).get("phase")
    why = ", ".join(sorted(_codes(provisioned))) or "no reason"
    return f"{provisioned['metadata']['name']} ({phase}: {why})"


def _occupies(pod: Object) -> bool:
    """Whether a pod has a node to lose: bound, not at its end, not on its way out, not there on every node."""
    owners = pod["metadata"].get("ownerReferences", ())
    ends = pod.get("status", {}).get("phase") in _DONE or "deletionTimestamp" in pod["metadata"]
    return bool(pod["spec"].get("nodeName")) and not ends and not any(owner["kind"] in _STAYING for owner in owners)


Runs = Callable[[str], bool]
"""Whether the machine with this provider id runs, whatever the provider answers."""
