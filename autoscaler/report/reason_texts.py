"""Templates of reasons.py: devices, volumes, why a node accepts a pod, why a launched one stays or is removed, and
capacity that is requested without pods (ProvisioningRequests and CapacityBuffers)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from autoscaler.model.reason import Code
from instance_catalog.kubernetes.labels import CHECKPOINT_INTERVAL

# For a machine that would have IMEX channels, of which no container would get one.
NO_LINK: Final = "no {needs}, without which NVIDIA's driver gives a container no IMEX channel"
NAME_DROPPED: Final = (
    "claim {dropped} was created from template {template}, and the pod's status does not name it: "
    "kube-controller-manager before Kubernetes 1.37 can drop such names again and again "
    "(kubernetes/kubernetes#138407); delete the pod so that its controller makes a new one, or upgrade Kubernetes"
)
BOUND_BEFORE: Final = (
    "PersistentVolumeClaim {claim} is not bound: the PV controller binds it before the pod is scheduled, to "
    "{bound_to}; give the bound claim and its PersistentVolume (`kubectl get pvc,pv,sc -o yaml`), or use a "
    "StorageClass with volumeBindingMode: WaitForFirstConsumer"
)
# Of a driver whose devices are not predicted.
EITHER_WAY: Final = (
    "existing nodes can serve it: give their Nodes and ResourceSlices (`kubectl get nodes,resourceslices -o yaml`); "
    "for new nodes, describe the driver (docs/slices.md, A driver of your own)"
)
DEVICE_TEXTS: Final[Mapping[Code, tuple[str, ...]]] = MappingProxyType(
    {
        Code.NO_DEVICE_OF_CLASS: (
            NO_LINK,
            "no ResourceSlice of {unpublished} is among the objects, so it has no device of class {device_class}: give "
            "its slices with -f (`kubectl get resourceslices -o yaml`), or see why its driver publishes none",
            "no device of class {device_class}",
        ),
        Code.SELECTOR_FALSE: ("no device passes {expressions}", "no device passes the selectors"),
        Code.TOO_FEW_DEVICES: ("{found} of {wanted} devices pass {expressions}", "{found} of {wanted} devices"),
        Code.DEVICES_IN_USE: ("{found} of {wanted} devices are free", "all matching devices are in use"),
        Code.CONSTRAINT_UNSATISFIED: (
            "{found} of {wanted} devices have the attribute of a constraint",
            "the constraint on {attribute} cannot be met",
        ),
        Code.COUNTERS_EXHAUSTED: ("the shared counters {counter_sets} are exhausted", "shared counters are exhausted"),
        Code.CAPACITY_INSUFFICIENT: (
            "no device has a capacity with the name {missing}",
            "no device has enough capacity left: {capacities} requested",
            "too little capacity left",
        ),
        Code.DEVICE_TAINTED: ("device taints are not tolerated: {taints}", "a device taint is not tolerated"),
        Code.NO_COMBINATION: (
            "no node has devices of all of DeviceClass {classes}, though some have devices of each",
            "each request could be met alone, but not all together",
        ),
        Code.INVALID_POOL: ("the pool is invalid: {problem}", "the pool is invalid"),
        Code.INCOMPLETE_POOL: ("the pool is incomplete",),
    }
)
CLASS_TEXTS: Final[Mapping[Code, tuple[str, ...]]] = MappingProxyType(
    {
        Code.CLASS_NOT_FOUND: (
            "there is no DeviceClass {missing_class} in the files: create it, or give it (`kubectl get deviceclasses "
            f"-o yaml`); unless its driver is predicted, only {EITHER_WAY}",
            "there is no DeviceClass {device_class}",
            "the DeviceClass does not exist",
        ),
        Code.NOT_PREDICTED: (
            "DeviceClass {device_class} selects devices of driver {driver}, and what that publishes is not predicted: "
            "only existing nodes can serve it, and the pod does not fit on any of those with its slices ({nodes}) now",
            "DeviceClass {device_class} selects devices of driver {driver}, and what that publishes is not predicted: "
            f"only {EITHER_WAY}",
        ),
    }
)
# Of an extended resource that nobody knows.
_OWN_DEVICE: Final = (
    "which no DeviceClass serves, and has no resource claim: if a DRA driver serves such devices, use a claim, or add "
    "the DeviceClass whose spec.extendedResourceName it is"
)
_OF_EXISTING: Final = (
    "otherwise only existing nodes have them: give these with -f (`kubectl get nodes -o yaml`) to see whether it fits "
    "(--strict counts it as not placed)"
)
# What decides about a pod and is not in the files.
NOT_GIVEN: Final = (
    "StorageClass {storage_class} of PersistentVolumeClaim {claim} is not in the files, so it is not known whether "
    "it waits for a pod: give it with -f (`kubectl get sc -o yaml`)",
    BOUND_BEFORE,
    "depends on {unread}, which is not in the files and may ask for devices: {step}",
)
VOLUME_TEXTS: Final[Mapping[Code, tuple[str, ...]]] = MappingProxyType(
    {
        Code.VOLUME_ZONE_CONFLICT: (
            "the volume is in {zones}, the node in {node_zone}",
            "reaches only nodes with {wanted}",
            "the volume is in another zone",
        ),
        Code.VOLUME_UNBOUND: (
            "PersistentVolumeClaim {claim} is {missing_claim}: create it",  # a warning and the change say how
            "PersistentVolumeClaim {claim} is bound, and its volume is not there: give PersistentVolume "
            "{missing_volume}",
            "PersistentVolumeClaim {claim} is not bound, and its StorageClass {immediate}",
            "PersistentVolumeClaim {claim} is not bound, and no PersistentVolume {unsuited} suits it by class, access "
            "modes, capacity and selector: give one that does",
            "PersistentVolumeClaim {claim} is {going_away}",
            "PersistentVolumeClaim {claim} is not bound: StorageClass {static_class} makes no volumes, and no "
            "PersistentVolume that suits the claim reaches the node: create one, or give it with -f",
            "PersistentVolumeClaim {claim} is not bound",
        ),
        Code.VOLUME_IN_USE: (
            "PersistentVolumeClaim {claim} is for one pod (ReadWriteOncePod) and another has it: give each pod a claim "
            "of its own (volumeClaimTemplates of a StatefulSet), or use ReadWriteMany with a StorageClass of a file "
            "system",
        ),
        Code.VOLUME_LIMIT: ("{driver} attaches {limit} volumes to the node, {wanted} are wanted",),
        Code.NO_STORAGE: ("{driver} has no room for volume claim {claim} on the node",),
    }
)
NODE_TEXTS: Final[Mapping[Code, tuple[str, ...]]] = MappingProxyType(
    {
        Code.NEEDS_RESERVATION: (
            "it is sold only as {sold_as}, and {capacity_type} capacity needs a CapacityBlock",
            "{capacity_type} capacity needs an open CapacityBlock ({block} ended at {ended})",
            "{capacity_type} capacity needs an open CapacityBlock ({block} drains since {drains}: its machines end at "
            "{ends})",
            "{capacity_type} capacity needs an open CapacityBlock ({block} begins at {begins})",
            "{capacity_type} capacity needs a CapacityBlock with a machine left ({full} has none)",
            "{capacity_type} capacity needs a CapacityBlock",
            "needs a CapacityBlock",
        ),
        Code.OVERFLOW_NEVER: (
            "pool {pool} has spec.overflow: Never and CapacityBlock {blocks} (ended at {ended}), so it launches no "
            "other capacity: set spec.overflow to Allow, or delete the CapacityBlock",
            "pool {pool} has spec.overflow: Never and CapacityBlock {blocks}, so it launches no other capacity: set "
            "spec.overflow to Allow",
        ),
        Code.FITS: ("fits",),
        Code.CHEAPEST: ("cheapest that fits; it has {share}", "cheapest that fits"),
        Code.PREFERRED: (
            "satisfies a preferred alternative of firstAvailable; it has {share}",
            "satisfies a preferred alternative of firstAvailable",
        ),
        Code.WHOLE_SLICE: ("one of {hosts} hosts of a {topology} slice, which is bought as a whole",),
        Code.SAME_DOMAIN: ("in one {key}, by pod affinity",),
        Code.PREPAID: ("prepaid by capacity block {block}",),
        Code.ALREADY_BOUND: ("pods are bound to it",),
        Code.EXISTING_NODE: ("fits an existing node",),
        Code.COMING_NODE: (
            "fits a node that the provider has not started yet: it has held the request since {since}, starts the node "
            "when it has capacity, and charges nothing until then",
            "fits a node that is starting",
        ),
        Code.WAITS_FOR_BLOCK: (
            "waits for CapacityBlock {block}, which begins at {begins}; without it: {instance_type}, {capacity_type}, "
            "{usd_per_hour} $/h",
            "waits for CapacityBlock {block}, which begins at {begins}; without it: {instance_type}, {capacity_type}",
        ),
        Code.BLOCK_HELD: ("kept until capacity block {block} ends",),
        Code.BLOCK_ENDING: ("capacity block {block} ends at {deadline}", "capacity block {block} ends"),
        Code.NODE_EMPTY: ("empty for {seconds} s",),
        Code.NODE_STOPPED: ("its machine is stopped since {since}",),
        Code.NODE_UNHEALTHY: ("not ready for {seconds} s",),
        Code.NODE_FAILED: ("failed ({why})", "failed"),
        Code.NODE_DRIFTED: ("is empty and no longer matches the pool's {what}",),
        Code.NODE_RECLAIMED: ("the provider reclaims the machine at {at}",),
        Code.MACHINE_RECREATED: (
            "another machine ({machine}) was made under the name of its own ({was}): what ran there is gone",
            "another machine ({machine}) was made under the name of its own: what ran there is gone",
        ),
        Code.DO_NOT_DISRUPT: ("kept because of its annotation {mark}",),
        Code.POOL_DELETED: ("its pool is being deleted",),
        Code.SLICE_BROKEN: ("its slice of {hosts} hosts has {left} left: it ends as a whole, as it was launched",),
        Code.SLICE_IN_USE: ("its slice of {hosts} hosts is in use, and ends only as a whole",),
        Code.GIVES_WAY: ("node {node} gives way to a pod that waits at a limit",),
        Code.BASELINE: ("part of the pool's baseline",),
        Code.NODE_DISPENSABLE: (
            "its pods fit on other nodes, which saves {saved} $/h",
            "its pods move to {to}, which costs less for all the pods that it was launched for",
        ),
        Code.NODE_CLOSING: (
            "takes no more pods: those that it runs move to {to}",
            "takes no more pods and ends after those that it runs",
        ),
        Code.NODE_REPLACED: (
            "with {together} nodes together, its pods cost {saved} $/h less on {by}",
            "its pods cost {saved} $/h less on {by}",
        ),
        Code.NODE_REPLACES: ("launched for the pods of {replaced}, which cost less here",),
        Code.NOT_CHEAPER: (
            "moving its pods saves {saved} $/h, less than the {least} $/h that its pool's disruption.saving asks for",
            "moving its pods saves {saved} $/h and costs {cost} $, and these pods or those beside which they would run "
            "may end in {minutes} min",
            "its pods have no other place that costs less",
        ),
        Code.POD_ENDING: ("pod {pod} is being deleted: nothing is moved until it has gone",),
        Code.NO_OTHER_PLACE: ("pod {pod} has no other place that costs less",),
        Code.PODS_STAY: (
            "pod {pod} is not moved to save money: its annotation {mark}",
            "pod {pod} is not moved to save money: it tolerates taint {tolerates}, and kube-scheduler may bind it to "
            "the same node again. Let it tolerate only the taints that it has to",
            "pod {pod} is not moved to save money: it belongs to gang {gang}, which would start again as a whole",
            "pod {pod} is not moved to save money: {admitted_by} admits it by itself, and may give its quota to "
            "another workload before the next pod is admitted",
            "pod {pod} is not moved to save money: PodDisruptionBudget {budget} allows no disruption now",
            "pod {pod} is not moved to save money: {budgets} PodDisruptionBudgets select it, and the API server "
            "refuses to evict such pods",
            "pod {pod} is not moved to save money: a {controller} may lose its work. Annotate its pods with "
            f"{CHECKPOINT_INTERVAL}: how much that is at most, such as 30m, if it survives an eviction",
            "pod {pod} is not moved to save money: {unsupported} is not understood",
            "pod {pod} is not moved to save money: it shares {shared} with another pod of the node, and "
            "PodDisruptionBudget {protected_by} allows only one eviction at a time",
            "pod {pod} is not moved to save money: its namespace has {crowded} PodDisruptionBudgets, too many to "
            "compare each pod with",
            "pod {pod} is not moved to save money: no controller creates it again",
        ),
    }
)


_OF_OTHERS: Final = (
    "gets its capacity through ProvisioningRequest {request} of class {class_name}, which another autoscaler serves"
)

SCOPE_TEXTS: Final[Mapping[Code, tuple[str, ...]]] = {
    Code.OTHER_SCHEDULER: (
        "once it asks for {then}, a CapacityPool has to name its scheduler in spec.scope.schedulerNames: [{scheduler}]",
        "schedulerName {scheduler} is in no pool's scope: add spec.scope.schedulerNames: [{scheduler}] to a "
        "CapacityPool",
    ),
    Code.OUT_OF_SCOPE: (
        "asks for {resources}, which DeviceClass {device_class} serves only with feature gate {gate}, off in {version} "
        "(on by default from 1.36): use a resource claim, or, if your cluster has the gate on, say so in "
        "spec.featureGates of a PlanContext",
        "asks for {resources}, which only {held} have: nothing is launched for it (--strict counts it as not placed)",
        "asks for {resources}, which no node has since {ended}: ask for {now}",
        "asks for {resources}, and no machine of {clouds} in the catalog has its kind of device ({device}), so nothing "
        "is launched for it: leave it to existing nodes, and give these with -f, and their ResourceSlices if a DRA "
        "driver publishes the devices, to see whether it fits, {addable} (--strict counts it as not placed)",
        "asks for {resources}, and no machine of {clouds} has its kind of device ({device}), so nothing is launched "
        "for it: leave it to existing nodes, and give these with -f, and their ResourceSlices if a DRA driver "
        "publishes the devices, to see whether it fits (--strict counts it as not placed)",
        "asks for {resources}, which no machine of {clouds} in the catalog hands out{but}: leave it to existing nodes, "
        "or add a type that has them with `foreslice catalog add` (docs/examples/catalog has one of another cloud; "
        "--strict counts it as not placed)",
        "asks for {resources}, which no machine of {clouds} in the catalog hands out: neither spec.scope.pods: All nor "
        "a resource claim helps; leave it to existing nodes, or add the type that has them with `foreslice "
        "catalog add` (--strict counts it as not placed)",
        "asks for {resources}, which the device plugin hands out only where GPUs are divided before it starts: "
        "no machine in the catalog has them; claim devices of DeviceClass {device_class} with {devices} instead, as in "
        "docs/examples/mig-parts.yaml",
        "asks for {resources} and for no {alone}: a plan buys no machine with accelerators for a network card alone, "
        "whatever the scope of a pool (--strict counts it as not placed)",
        "asks for {resources}, which {by} hand out and no DeviceClass serves, and has no resource claim: set "
        "spec.scope.pods to All, or to Selected with a podSelector, in a CapacityPool whose nodes run them, or use a "
        "claim",
        "asks for {resources}, by which {shares} hands out parts of a GPU, and no node of a plan runs it "
        "(--strict counts it as not placed)",
        f"asks for {{resources}} ({{card}}), {_OWN_DEVICE}; {_OF_EXISTING}",
        f"asks for {{resources}}, {_OWN_DEVICE}; if they are parts of an NVIDIA GPU, claim MIG parts instead, as in "
        f"docs/examples/mig-parts.yaml, or request {{whole}} for all of one; {_OF_EXISTING}",
        f"asks for {{resources}}, {_OWN_DEVICE}; {_OF_EXISTING}",
        "asks for a TPU slice of {formed}, which GKE's slice controller forms from existing node pools: no plan "
        "launches one",
        "asks KAI Scheduler for a part of a GPU by annotation {part}, which is not a resource: nothing is bought for "
        "it",
        "requests no device that kube-scheduler counts, and asks another system for one by {handed}: no machine of the "
        "catalog has its kind of device ({kind}), so nothing is bought for it; leave it to existing nodes",
        "requests no device that kube-scheduler counts, and asks another system for one by {handed}: no node of a plan "
        "hands it out, so nothing is bought for it; leave it to existing nodes that do, or request whole devices, such "
        "as nvidia.com/gpu, to plan for it",
        "needs no accelerator: {node} runs it, and nothing is bought for it",
        "claims and requests no device, so nothing is bought for it: it needs a node that it selects",
    ),
    Code.OTHER_LAUNCHER: (
        "pool {pool} has spec.launcher ClusterAutoscaler: Cluster Autoscaler decides about its nodes",
    ),
    Code.NOT_SELECTED: ("the scope of pool {pool} selects other pods: see its spec.scope.podSelector",),
    Code.TIED_SPLIT: (
        "pods that pod affinity ties to one node do not fit one node together; {first} of them come first, and with a "
        "wider topologyKey the others could run elsewhere",
        "pods that pod affinity ties to one node do not fit one node together: request less, or use a wider "
        "topologyKey",
    ),
    Code.JOINS_NODE: (
        "pod affinity requires the node of other pods, {nodes}, where it does not fit: free room there, or delete "
        "those pods as well, so that all of them are planned together",
        "pod affinity requires the node of other pods, where it does not fit",
    ),
}

REQUEST_TEXTS: Final[Mapping[Code, tuple[str, ...]]] = {
    Code.PROVISIONING_REQUEST: (
        "names ProvisioningRequest {request} and the class {says}, and the request is of class {class_name}: correct "
        "the annotation provisioning-class-name",
        _OF_OTHERS + " and which has ended ({ended}): {message}; make a request with another name",
        _OF_OTHERS + " ({condition}): {message}",
        _OF_OTHERS + " and has not answered yet",
        "names ProvisioningRequest {missing} of class {of_class}, which is not known: create it and its PodTemplate, "
        "or remove the annotation {annotation}",
        "names ProvisioningRequest {missing}, which is not known: create it, or remove the annotation {annotation}",
        "gets its capacity through ProvisioningRequest {request}",
    ),
    Code.BOOKED: ("is kept for the consumers of a ProvisioningRequest",),
    Code.BUFFERS_SERVED: (
        "{kind} serves CapacityBuffers of every strategy, so Foreslice serves none: turn its feature gate "
        "CapacityBuffer off to have them served here",
    ),
}
