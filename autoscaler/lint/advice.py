"""Warnings about settings that are allowed and probably surprise, over a whole set of objects: `plan` and `lint` print
the same."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.dra.claims.extended_resources import EXTENDED_RESOURCE_GATE, extended_resource_classes
from autoscaler.dra.claims.node_allocatable import NODE_ALLOCATABLE_GATE
from autoscaler.errors import ConfigurationError
from autoscaler.model.capacity import CapacityBlock
from autoscaler.model.origin import CLUSTER, Origin
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code, Reason, Subject
from autoscaler.model.resource_claim import ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys, uses_channel
from autoscaler.planning.disruption.windows import Window
from autoscaler.planning.supply.architecture import LACKING, unaware
from autoscaler.planning.supply.drivers import PUBLISHING_TEMPLATES, readable, running_drivers
from autoscaler.planning.supply.simulated_nodes import wants_simulated_node
from instance_catalog.diagnostic import Diagnostic, Path, Severity
from instance_catalog.drivers import opaque
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.frozen_map import EMPTY
from instance_catalog.kubernetes import labels
from instance_catalog.kubernetes.resource_slice import DeviceId

# Why no pod of a plan uses a prepaid block, in words for a sentence about the block.
_BLOCK_BARS: Final = {
    Code.BLOCK_ENDS_TOO_SOON: "it ends too soon for them",
    Code.BLOCK_DURATION_UNKNOWN: "the pods do not say how long they run (activeDeadlineSeconds)",
    Code.BLOCK_NOT_CONSUMER: "the pods are not its consumers",
    Code.BLOCK_FULL: "it is full",
}


def surprise(
    subject: str, path: Path, message: str, next_step: str, origin: Origin = CLUSTER, *, others: int = 0
) -> Diagnostic:
    """A warning about an object, such as "Pod default/main", or about one of its fields; so many `others` have it."""
    return Diagnostic(message, next_step, path, subject, Severity.WARNING, origin.path, origin.line, others)


def reason_of(found: Diagnostic) -> Reason:
    """A surprise as a warning of a plan."""
    problem = f"{found.field}: {found.message}" if found.path else found.message
    subject = Subject(found.subject, others=found.others)
    return Reason.of(Code.ADVICE, subject, problem=problem, next_step=found.next_step)


def advice(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Warnings that need the objects only."""
    yield from _ignored_rules(snapshot)
    yield from _ignored_amounts(snapshot)
    yield from _brief_windows(snapshot)
    yield from _domains_without_link(snapshot)
    yield from _devices_of_two_drivers(snapshot)
    yield from _refused_sharing(snapshot)
    yield from _invalid_configs(snapshot)
    yield from _admin_access(snapshot)
    yield from _resources_not_served(snapshot)


def plan_advice(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """Warnings that need a plan."""
    yield from _unused_blocks(snapshot, plan)
    yield from blocks_beyond_limits(snapshot)
    yield from _parts_that_get_a_whole(snapshot, plan)
    yield from _architecture(snapshot, plan)


def _ignored_rules(snapshot: Snapshot) -> Iterator[Diagnostic]:
    gates, profile = snapshot.profile.gates, snapshot.profile
    own = profile.allocator.taint_rules_have_own_gate
    if gates.device_taints and (gates.device_taint_rules or not own):
        return
    gate = "DRADeviceTaintRules" if gates.device_taints else "DRADeviceTaints"
    for rule in snapshot.taint_rules:
        yield surprise(
            f"DeviceTaintRule {rule.name}",
            (),
            f"ignored: feature gate {gate} is off in {profile.name}",
            "if your cluster has it on, say so in spec.featureGates of a PlanContext (foreslice.dev/v1alpha1)",
            rule.origin,
        )


def _ignored_amounts(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Devices that take of their node's own amounts, where nobody counts that: the first slice of each driver."""
    profile, seen = snapshot.profile, set[str]()
    known = profile.scheduler.node_allocatable_of_devices
    why = f"feature gate {NODE_ALLOCATABLE_GATE} is off in {profile.name}"
    step = "if your cluster has it on, say so in spec.featureGates of a PlanContext (foreslice.dev/v1alpha1)"
    for slice_ in snapshot.slices if not profile.devices_take_node_amounts else ():
        if slice_.driver not in seen and any(device.node_allocatable for device in slice_.devices):
            seen.add(slice_.driver)
            yield surprise(
                f"ResourceSlice {slice_.name}",
                (),
                "nodeAllocatableResources of its devices are ignored: "
                + (why if known else f"{profile.name} does not have them, they came with 1.37"),
                step if known else "plan for Kubernetes 1.37",
            )


def _devices_of_two_drivers(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """A pool whose nodes run two drivers that publish the same devices, each without knowing of the other."""
    for pool in snapshot.pools:
        listed = (readable((text,)) for text in pool.drivers)
        alone = pool.node_template.kind in PUBLISHING_TEMPLATES
        drivers = listed if pool.drivers else () if alone else (running_drivers(snapshot),)
        names = {profile.driver: profile.name for found in drivers if found for profile in found.profiles}
        shipped = {name: driver_facts()[profile] for name, profile in names.items() if profile in driver_facts()}
        for name, facts in sorted(shipped.items()):
            for twin in sorted(facts.same_devices_as & names.keys()):
                yield surprise(
                    f"CapacityPool {pool.name}",
                    ("spec", "drivers", "profiles"),
                    f"{facts.profile} and {names[twin]} publish the same devices of a node ({name} and {twin}), so "
                    "each may give a device to a pod that has it from the other one already",
                    "keep one of them off these nodes, and name the other one here",
                    pool.origin,
                )


def _admin_access(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """The first claim for administrative access in a namespace that does not allow it, as far as is known."""
    pending = {key: pod for pod in snapshot.pods if not pod.bound for key in claim_keys(pod)}
    for key, pod in pending.items():
        claim = snapshot.claims.get(key)
        allowed = snapshot.namespaces.get(pod.namespace, EMPTY).get(labels.ADMIN_ACCESS) == "true"
        if claim is not None and not allowed and any(request.admin_access for request in claim.exact_requests):
            yield surprise(
                f"Pod {pod.key}",
                (),
                f"its claim {claim.name} asks for adminAccess, which takes no device from others; the API server "
                f'refuses it unless namespace {pod.namespace} has the label {labels.ADMIN_ACCESS}: "true"',
                "label the namespace; to let a plan see it, give its manifest too",
                pod.origin,
            )
            return


def _brief_windows(snapshot: Snapshot) -> Iterator[Diagnostic]:
    for pool in snapshot.pools:
        for index, baseline in enumerate(pool.baselines):
            try:
                minutes = Window.parse(baseline.schedule or "* * * * *", baseline.time_zone).fields[0]
            except ConfigurationError:
                continue  # an objection of the plan
            if len(minutes) == 1:
                words = (baseline.schedule or "").split()
                yield surprise(
                    f"CapacityPool {pool.name}",
                    ("spec", "baseline", index, "schedule"),
                    f'"{baseline.schedule}" is open for one minute of an hour: a window is every minute that matches',
                    f'for the whole hour write "* {" ".join(words[1:])}", for more hours "* 8-18 * * 1-5"',
                    pool.origin,
                )


def _domains_without_link(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Pods of one ComputeDomain (an IMEX channel) of which nothing asks for one NVLink domain: any GPU would do. A
    simulated node has no NVLink."""
    seen: set[str] = set()
    for pod in snapshot.pods:
        if pod.bound or not uses_channel(pod, snapshot) or _asks_for_link(pod, snapshot):
            continue
        if wants_simulated_node(pod, snapshot):
            continue
        key = pod.owner or pod.key
        if key in seen:
            continue
        seen.add(key)
        yield surprise(
            f"Pod {pod.key}",
            ("spec", "affinity"),
            "uses an IMEX channel (ComputeDomain) and requires no NVLink: kube-scheduler takes any node with NVIDIA's "
            "driver, which gives no channel to a container where the GPUs have no NVLink to other machines; without "
            "CapacityPools a plan offers only machines that have it",
            "require node label nvidia.com/gpu.clique (Exists) in its nodeAffinity, and for several pods podAffinity "
            "with that topologyKey over the pods of the job",
            pod.origin,
        )


def _asks_for_link(pod: Pod, snapshot: Snapshot) -> bool:
    clique = labels.NVIDIA_GPU_CLIQUE
    terms = pod.affinity.terms if pod.affinity else ()
    keys = {
        *pod.node_selector,
        *(term.topology_key for term in pod.pod_affinity),
        *(requirement.key for term in terms for requirement in term.match_expressions),
    }
    gang = snapshot.gangs.get(pod.gang.key) if pod.gang else None
    return clique in keys or (gang is not None and gang.topology_key == clique)


def _resources_not_served(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Pods in scope whose extended resource a DeviceClass would serve if a feature gate were on (KEP-5004).

    Pods without any claim are ignored for that reason, which says the same.
    """
    if snapshot.profile.gates.extended_resource:
        return
    serving = extended_resource_classes(snapshot.classes)
    for pod in snapshot.pods:
        for resource in sorted(_requested(pod) & serving.keys()) if pod.claims and not pod.bound else ():
            yield surprise(
                f"Pod {pod.key}",
                ("spec", "containers", 0, "resources"),
                f"asks for {resource}, which DeviceClass {serving[resource].name} serves only with feature gate "
                f"{EXTENDED_RESOURCE_GATE}, and that is off in {snapshot.profile.name} (on by default from 1.36)",
                "use a claim for it, or, if your cluster has the gate on, say so in spec.featureGates of a PlanContext",
                pod.origin,
            )
            return


def _requested(pod: Pod) -> set[str]:
    return {name for container in (*pod.containers, *pod.init_containers) for name in container.requests}


def _unused_blocks(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """Prepaid machines that get no pod, while others are bought or pods have no place."""
    used = {node.offering.block for node in plan.launches if node.pods}
    used |= {offering.block for node in snapshot.provisioned for offering in node.offerings[:1]}
    used |= {str(r.detail["block"]) for left in plan.left_out for r in left.reasons if r.code is Code.WAITS_FOR_BLOCK}
    if not plan.placements and not plan.left_out:
        return
    for block in snapshot.blocks:
        if block.name not in used:
            why = _why_not(block, plan)
            yield surprise(
                f"CapacityBlock {block.name}",
                (),
                f"is prepaid, and no pod of this plan uses it{why}",
                "see `-o wide` for its offering, or change pool, zone or claims",
                block.origin,
            )


def blocks_beyond_limits(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Blocks with more machines than their pools may have nodes: the rest is paid for and never launched."""
    for block in snapshot.blocks:
        pools = [pool for pool in snapshot.pools if block.pool in ("", pool.name)]
        limits = [pool.limits.nodes for pool in pools if pool.limits.nodes is not None]
        if pools and len(limits) == len(pools) and sum(limits) < block.count:
            names = " and ".join(f"pool {pool.name}" for pool in pools)
            yield surprise(
                f"CapacityBlock {block.name}",
                ("spec", "count"),
                f"has {block.count} machines, and {names} launches no more than {sum(limits)} (spec.limits.nodes): "
                "the others are paid for and never launched",
                "raise the limit",
                block.origin,
            )


def _why_not(block: CapacityBlock, plan: Plan) -> str:
    kinds = [
        _BLOCK_BARS.get(reason.code, "its machines do not fit them")
        for demand in plan.demands
        for entry in demand.considered
        if entry.offering.block == block.name
        for reason in entry.reasons[:1]
    ]
    return f" ({kinds[0]})" if kinds else " (it does not belong to a pool that serves them, or is not open now)"


def _parts_that_get_a_whole(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """Claims for an amount of capacity, each of which gets a device of its own although the driver can share it."""
    for facts in driver_facts().values():
        if not facts.sharing_profile or _shares(plan, facts.driver):
            continue
        alone = {key for keys in _owners(plan, facts.driver).values() if len(keys) == 1 for key in keys}
        parts = [claim for key in sorted(alone) if (claim := snapshot.claims.get(key)) and _wants_a_part(claim)]
        if len(parts) > 1 and plan.launches:
            yield surprise(
                f"ResourceClaim {parts[0].key}",
                ("spec", "devices", "requests", 0, "exactly", "capacity"),
                f"it and {len(parts) - 1} more ask for a part of a GPU, and each gets a whole one",
                f"a pool with spec.drivers.profiles: ['{facts.sharing_profile}'] lets them share",
                parts[0].origin,
            )


def _shares(plan: Plan, driver: str) -> bool:
    """True if devices of the driver on new nodes serve several claims."""
    published = (slice_ for node in plan.launches for slice_ in node.slices if slice_.driver == driver)
    return any(device.allow_multiple_allocations for slice_ in published for device in slice_.devices)


def _owners(plan: Plan, driver: str) -> dict[tuple[str, DeviceId], set[str]]:
    """The claims (by key) that get each of the driver's devices, by node and device."""
    owners: dict[tuple[str, DeviceId], set[str]] = {}
    for placement in plan.placements:
        for key, allocation in placement.allocations.items():
            for device in allocation.devices:
                if device.driver == driver:
                    id_ = DeviceId(device.driver, device.pool, device.device)
                    owners.setdefault((placement.node, id_), set()).add(key)
    return owners


def _refused_sharing(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Sharing settings that the driver refuses when it prepares the claim: the pod is bound and never starts. The step
    turns on all that the claims need, since a pool names each driver once."""
    given = [profile for pool in snapshot.pools for profile in pool.drivers]
    for facts in driver_facts().values():
        refused: dict[str, tuple[str, list[ResourceClaim]]] = {}
        for strategy, gate in facts.sharing_gates.items():
            named = [
                claim
                for claim in snapshot.claims.values()
                if any(c.driver == facts.driver and opaque.strategy(c.parameters) == strategy for c in claim.config)
            ]
            if named and f"{gate}=true" not in " ".join(given):
                refused[gate] = strategy, named
        own = (profile for profile in given if profile.replace("@", ":").partition(":")[0] == facts.profile)
        profile = ":".join((next(own, facts.profile), *(f"{gate}=true" for gate in refused)))
        gates = " and ".join(f"featureGates.{gate}=true" for gate in refused)
        for gate, (strategy, named) in refused.items():
            yield surprise(
                f"ResourceClaim {named[0].key}",
                ("spec", "devices", "config"),
                f"asks for sharing strategy {strategy}: driver {facts.driver} refuses that with its feature "
                f"gate {gate} off, the default, and the pod would not start",
                f"install the driver with {gates}, and say so in a CapacityPool: spec.drivers.profiles: ['{profile}']",
                named[0].origin,
                others=len(named) - 1,
            )


def _invalid_configs(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """Configurations that the driver finds invalid when it prepares the claim, in every release: each with all of its
    errors, once for the claims that have the same."""
    found: dict[str, list[tuple[ResourceClaim, int]]] = {}
    for claim in snapshot.claims.values():
        for index, config in enumerate(claim.config):
            problem = opaque.refused(config.parameters) if config.driver == opaque.DRIVER else ""
            if problem:
                found.setdefault(problem, []).append((claim, index))
    for problem, ((claim, index), *others) in found.items():
        yield surprise(
            f"ResourceClaim {claim.key}",
            ("spec", "devices", "config", index, "opaque", "parameters"),
            f"driver {opaque.DRIVER} refuses this configuration, and the pod would not start",
            f"correct this: {problem}",
            claim.origin,
            others=len(others),
        )


def _wants_a_part(claim: ResourceClaim) -> bool:
    return any(request.capacity and request.count == 1 for request in claim.exact_requests)


def _architecture(snapshot: Snapshot, plan: Plan) -> Iterator[Diagnostic]:
    """Pods that name no architecture, on nodes that are not what most images are built for."""
    found = unaware(snapshot, plan)
    if found is not None:
        yield surprise(
            f"Pod {found.pod.key}",
            ("spec", "nodeSelector"),
            f"gets a node of architecture {found.architecture}: {LACKING}",
            "if the image lacks it, add nodeSelector kubernetes.io/arch: amd64",
            found.pod.origin,
        )
