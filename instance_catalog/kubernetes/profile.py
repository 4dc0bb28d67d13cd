"""The meaning of a Kubernetes version for DRA: feature gates and behaviour switches, one table.

Behaviour differs between patch releases. A profile covers a range; the nearest lower one is chosen, with a `note`.
Facts: k8s.io/dynamic-resource-allocation and kube-scheduler 0.34 … 0.37, measured against the Go libraries.
"""

from __future__ import annotations

import re

from instance_catalog.dataclass import dataclass, replace


@dataclass(frozen=True, slots=True)
class Gates:
    """Feature gates that change scheduling or publishing, named as in Kubernetes."""

    admin_access: bool = True
    prioritized_list: bool = True
    partitionable_devices: bool = True
    consumable_capacity: bool = True
    device_taints: bool = True
    device_taint_rules: bool = False
    binding_conditions: bool = True
    extended_resource: bool = True
    list_type_attributes: bool = False
    fractional_capacity_range: bool = False
    node_allocatable_resources: bool = False
    generic_workload: bool = False
    gang_scheduling: bool = False
    workload_resource_claims: bool = False
    node_declared_features: bool = True


@dataclass(frozen=True, slots=True)
class AllocatorBehaviour:
    """Switches of the structured allocator; defaults are those of 0.36.3 (variant incubating)."""

    slices_sorted_by_name: bool = True
    combinations: bool = True  # False: permutations inside one request
    incomplete_pool_allocates: bool = False  # ExactCount may use devices of an incomplete pool (0.34)
    duplicate_device_fatal: bool = False
    counter_slices_follow_node_filter: bool = False
    counters_keyed_by_driver: bool = False  # False: by pool name alone
    counters_of_shared_devices: bool = True
    leaks_on_rejection: bool = False
    all_mode_drops_busy_capacity: bool = True  # False: a device without free capacity makes All not fit
    any_taint_effect_blocks: bool = False
    tolerations_in_result: bool = True
    distinct_remembers_all: bool = False
    share_id_alone_skips_counters: bool = False
    limit_checked_per_request: bool = False
    deadline_is_error: bool = True
    completeness_by_visible_slices: bool = False  # slices on other nodes do not complete a pool (0.34)
    distinct_attribute: bool = True  # False: the default allocator does not know the constraint
    distinct_by_identity: bool = False  # values are compared by address, so devices always differ (0.34)
    big_request_aliasing: bool = True  # in-search sums are written into a claim's own big request
    capacity_errors_fatal: bool = False  # negative or unrepresentable capacity requests abort the attempt
    taint_rules_have_own_gate: bool = True  # False: DRADeviceTaints alone enables DeviceTaintRules (1.34)
    rule_without_selector_taints_all: bool = True  # False: a DeviceTaintRule without deviceSelector taints nothing
    counters_per_slice: bool = False  # counter sets stand beside the devices that draw on them (0.34); not modelled
    all_alternatives_confused: bool = (
        False  # All as a later subrequest uses what belongs to an earlier one; not modelled
    )
    list_constraints: bool = False  # with the gate DRAListTypeAttributes, constraints understand lists


@dataclass(frozen=True, slots=True)
class CelBehaviour:
    """Switches of the CEL environment."""

    cel_go: str = "0.26.0"
    dyn_attributes: bool = False  # attribute values have type dyn instead of any
    add_mutates_big_quantity: bool = True
    includes: bool = True  # the function of that name is known (from 1.36 on)
    list_attributes: bool = True  # the gate DRAListTypeAttributes is known (from 1.36 on)
    new_may_use_lists: bool = True  # the API server admits ext.Lists in new expressions (from 1.35 on)


@dataclass(frozen=True, slots=True)
class SchedulerBehaviour:
    """Switches of kube-scheduler's other plugins, read in its source of 1.34.0, 1.35.0, 1.36.3 and 1.37.0."""

    claims_scored: bool = True  # DynamicResources prefers nodes with first alternatives (from 1.35 on)
    balance_is_gain: bool = (
        True  # NodeResourcesBalancedAllocation: what the pod improves; False: how it leaves the node
    )
    image_volumes_scored: bool = True  # ImageLocality adds images that are mounted (from 1.36 on)
    image_volumes_counted: bool = False  # ... and expects more bytes for them (from 1.37 on)
    selector_asked_without_labels: bool = True  # InterPodAffinity: see term_of_pod_matches (until 1.36)
    # DynamicResources counts nodeAllocatableResources of devices (from 1.37 on; the form of 1.36 is not modelled)
    node_allocatable_of_devices: bool = False


@dataclass(frozen=True, slots=True)
class SliceLimits:
    """The limits of the API server for a ResourceSlice (pkg/apis/resource/validation)."""

    devices: int = 128
    elaborate_devices: int = 64  # of a slice with a device that has taints, counters or a list
    taints: int = 16  # of a device
    counters_apart: bool = True  # a slice holds counter sets or devices, never both


@dataclass(frozen=True, slots=True)
class KubernetesProfile:
    """One row of the table. `version` is (major, minor, patch) of the first release with this behaviour."""

    version: tuple[int, int, int]
    gates: Gates = Gates()
    allocator: AllocatorBehaviour = AllocatorBehaviour()
    cel: CelBehaviour = CelBehaviour()
    scheduler: SchedulerBehaviour = SchedulerBehaviour()
    slices: SliceLimits = SliceLimits()
    kubelet_features: tuple[str, ...] = ()  # see declared_features
    served: tuple[str, ...] = ("v1", "v1beta2", "v1beta1")  # versions of resource.k8s.io
    note: str = ""
    proven: tuple[str, ...] = ()  # names of the gates that were tried out on the cluster; the others are assumed

    def __hash__(self) -> int:
        # Part of the key of much that is remembered, where all fields would take longer than what is remembered.
        return hash((self.version, self.proven))

    @property
    def name(self) -> str:
        """The version as Kubernetes writes it, such as v1.36.3."""
        return "v" + ".".join(str(part) for part in self.version)

    @property
    def minor(self) -> tuple[int, int]:
        """(1, 36)."""
        return self.version[:2]

    @property
    def devices_take_node_amounts(self) -> bool:
        """True if allocations of devices use the node's own amounts, such as cpu (KEP-5517)."""
        return self.gates.node_allocatable_resources and self.scheduler.node_allocatable_of_devices

    @property
    def declared_features(self) -> tuple[str, ...]:
        """The features that a kubelet of this version declares in status.declaredFeatures unless its feature gates are
        set."""
        return self.kubelet_features if self.gates.node_declared_features else ()

    def with_gates(self, **gates: bool) -> KubernetesProfile:
        """The same profile with some gates set otherwise."""
        return replace(self, gates=replace(self.gates, **gates))


_A36 = AllocatorBehaviour()
_A37 = replace(
    _A36,
    counter_slices_follow_node_filter=True,
    counters_keyed_by_driver=True,
    all_mode_drops_busy_capacity=False,
    distinct_remembers_all=True,
    share_id_alone_skips_counters=True,
    big_request_aliasing=False,
    capacity_errors_fatal=True,
    list_constraints=True,
)
_A35 = replace(
    _A36,
    slices_sorted_by_name=False,
    combinations=False,
    counters_of_shared_devices=False,
    leaks_on_rejection=True,
    distinct_attribute=False,
    all_alternatives_confused=True,
)
_A34 = replace(
    _A35,
    completeness_by_visible_slices=True,
    distinct_attribute=True,
    distinct_by_identity=True,
    counters_per_slice=True,
    incomplete_pool_allocates=True,
    duplicate_device_fatal=True,
    all_mode_drops_busy_capacity=False,
    any_taint_effect_blocks=True,
    tolerations_in_result=False,
    deadline_is_error=False,
    taint_rules_have_own_gate=False,
)
_G34 = Gates(
    partitionable_devices=False,
    consumable_capacity=False,
    device_taints=False,
    binding_conditions=False,
    extended_resource=False,
    node_declared_features=False,
)
_S35 = SchedulerBehaviour(balance_is_gain=False, image_volumes_scored=False)
_S34 = replace(_S35, claims_scored=False)
_S37 = SchedulerBehaviour(
    image_volumes_counted=True, selector_asked_without_labels=False, node_allocatable_of_devices=True
)
_C35 = CelBehaviour(includes=False, list_attributes=False)
_C34 = replace(_C35, new_may_use_lists=False)
_C37 = CelBehaviour(cel_go="0.29.2", dyn_attributes=True, add_mutates_big_quantity=False)
_L34 = SliceLimits(elaborate_devices=128, taints=4, counters_apart=False)
# Features in component-helpers nodedeclaredfeatures/features (v0.36.3, v0.37.2) whose gate kubelets have on by default
# (pkg/features/kube_features.go, v1.36.3, v1.37.2). Off by default: UserNamespacesHostNetworkSupport, and in 1.37
# InPlacePodVerticalScalingMemoryBackedVolumes, DRANodeAllocatableResources, VolumeBindMountOptions and
# DRAOptionalNodeOperations. Before 1.36 the gate NodeDeclaredFeatures itself is off.
_F36 = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
)

PROFILES: tuple[KubernetesProfile, ...] = (
    KubernetesProfile((1, 34, 0), _G34, _A34, _C34, _S34, slices=_L34),
    KubernetesProfile((1, 34, 13), _G34, replace(_A34, limit_checked_per_request=True), _C34, _S34, slices=_L34),
    KubernetesProfile((1, 35, 0), _G34, _A35, _C35, _S35),
    KubernetesProfile((1, 35, 10), _G34, replace(_A35, limit_checked_per_request=True), _C35, _S35),
    KubernetesProfile(
        (1, 36, 0),
        Gates(),
        replace(_A36, leaks_on_rejection=True, counters_of_shared_devices=False),
        kubelet_features=_F36,
    ),
    KubernetesProfile((1, 36, 2), Gates(), replace(_A36, leaks_on_rejection=True), kubelet_features=_F36),
    KubernetesProfile((1, 36, 3), Gates(), _A36, kubelet_features=_F36),
    KubernetesProfile((1, 36, 4), Gates(), replace(_A36, counters_keyed_by_driver=True), kubelet_features=_F36),
    KubernetesProfile(
        (1, 36, 5),
        Gates(),
        replace(_A36, counters_keyed_by_driver=True, limit_checked_per_request=True),
        kubelet_features=_F36,
    ),
    KubernetesProfile(
        (1, 37, 0),
        Gates(device_taint_rules=True, fractional_capacity_range=True),
        _A37,
        _C37,
        _S37,
        kubelet_features=_F36,
    ),
    KubernetesProfile(
        (1, 37, 1),
        Gates(device_taint_rules=True, fractional_capacity_range=True),
        replace(_A37, limit_checked_per_request=True, rule_without_selector_taints_all=False),
        _C37,
        _S37,
        kubelet_features=_F36,
    ),
)
REFERENCE = next(p for p in PROFILES if p.version == (1, 36, 3))
_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:\.(\d+))?(?:[-+].*)?\Z")


class UnknownVersionError(ValueError):
    """A version text that cannot be read, or one older than every profile."""


def profile_for(version: str) -> KubernetesProfile:
    """The profile of a version such as "1.36", "v1.36.3" or "1.36.4-eks-1a2b3c4".

    Without a patch number, the reference patch of that minor (1.36.3) or its first profile is used. Otherwise the
    nearest lower profile; `note` is set if it is not exact. Raises UnknownVersionError.
    """
    found = _VERSION.match(version.strip())
    if not found:
        raise UnknownVersionError(f"{version!r} is not a Kubernetes version; write it like 1.36 or v1.36.3")
    minor = (int(found[1]), int(found[2]))
    if found[3] is None:
        if minor == REFERENCE.minor:
            return REFERENCE
        wanted = (*minor, 0)
    else:
        wanted = (*minor, int(found[3]))
    lower = [p for p in PROFILES if p.version <= wanted]
    if not lower:
        oldest = PROFILES[0].name
        raise UnknownVersionError(f"Kubernetes {version} is older than {oldest}, the first with resource.k8s.io/v1")
    profile = lower[-1]
    if profile.minor == minor:
        return profile
    return replace(
        profile, note=f"Kubernetes {version} is not known; deciding as {profile.name}, the nearest lower one"
    )
