"""docs/dra-support.md: every DRA enhancement from beta on, and who understands it; with a test or a source for each.

What Foreslice does is named by the test that shows it; tests/architecture/test_dra_support.py checks that it exists.
What others do is told from what they publish, with the day on which it was read. Nothing published is no "no".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

READ_ON: Final = "2026-11-22"
OTHERS: Final = ("Cluster Autoscaler 1.36", "Karpenter 1.14", "Kueue 0.19", "KAI 0.17")
UNSAID: Final = ("not published", "")
_DRA: Final = "tests/unit/dra"


@dataclass(frozen=True, slots=True)
class Row:
    """One enhancement: its state in Kubernetes 1.36 and 1.37, our answer with the test behind it, and the others'
    answers with their sources, in the order of OTHERS."""

    kep: int
    name: str
    state: str
    ours: str
    test: str
    others: tuple[tuple[str, str], ...]


_CA_DELEGATES: Final = ("yes", "kubernetes/autoscaler#8053: delegated to the scheduler's plugin")
_NOT_SCHEDULING: Final = ("not needed", "it decides about no node")
_QUOTA: Final = ("not needed", "it counts quota, not devices")

ROWS: Final = (
    Row(
        4381,
        "structured parameters: claims, classes, slices, CEL",
        "stable",
        "yes",
        f"{_DRA}/test_allocator.py::test_the_first_devices_in_order_are_taken_and_pin_the_node",
        (
            ("partly: knows an empty group's devices from no provider but Cluster API", "kubernetes/autoscaler#10277"),
            ("partly: off by default; on AWS two drivers", "karpenter-provider-aws docs, settings.enableDRA"),
            (
                "partly: templates with exactly and ExactCount; a selector only while enough devices match it",
                "Kueue docs, deviceClassMappings; tests/e2e/controller/test_kueue.py with 0.19.2",
            ),
            ("yes", "KAI-Scheduler v0.17, plugin dynamicresources"),
        ),
    ),
    Row(
        4381,
        "claims of PodTemplates: ProvisioningRequest and CapacityBuffer",
        "–",
        "yes",
        "tests/unit/simulation/test_provisioning_requests.py::test_a_gang_gets_its_nodes_and_its_pods_run_there",
        (
            ("no", "kubernetes/autoscaler#10065"),
            ("no", "kubernetes-sigs/kueue#14700, comment of 2026-08-25"),
            ("asks for it", "kubernetes-sigs/kueue#14700"),
            _NOT_SCHEDULING,
        ),
    ),
    Row(
        5018,
        "admin access",
        "stable",
        "yes",
        f"{_DRA}/test_allocator.py::test_administrative_access_sees_devices_in_use_and_leaves_no_trace",
        (
            ("yes", "Cluster Autoscaler FAQ, DaemonSet claims"),
            UNSAID,
            ("no", "Kueue docs, deviceClassMappings"),
            UNSAID,
        ),
    ),
    Row(
        4816,
        "prioritized list (firstAvailable)",
        "stable",
        "yes",
        f"{_DRA}/test_allocator.py::test_the_first_alternative_that_works_is_chosen_and_counted",
        (UNSAID, UNSAID, ("no", "Kueue docs, deviceClassMappings"), UNSAID),
    ),
    Row(
        4815,
        "partitionable devices",
        "beta",
        "yes",
        f"{_DRA}/test_allocator.py::test_counters_limit_what_one_gpu_is_cut_into",
        (
            _CA_DELEGATES,
            ("yes, off by default; no MIG on AWS", "kubernetes-sigs/karpenter#3110, karpenter-provider-aws docs"),
            ("counters count as quota (beta)", "kubernetes-sigs/kueue#11903"),
            ("no in 0.17.0, merged after it", "kai-scheduler/KAI-Scheduler#2100, #2102"),
        ),
    ),
    Row(
        5075,
        "consumable capacity",
        "beta",
        "yes",
        f"{_DRA}/test_allocator.py::test_a_shareable_device_is_given_to_two_claims_until_its_capacity_is_gone",
        (
            UNSAID,
            ("yes, off by default; no distinctAttribute", "kubernetes-sigs/karpenter#3110"),
            ("capacity counts as quota (beta)", "kubernetes-sigs/kueue#10108"),
            ("no in 0.17.0, merged after it", "kai-scheduler/KAI-Scheduler#2102"),
        ),
    ),
    Row(
        5004,
        "extended resources from classes",
        "beta, stable in 1.37",
        "yes",
        f"{_DRA}/test_filter.py::test_an_extended_resource_becomes_a_claim_of_its_class",
        (
            UNSAID,
            ("no on AWS", "karpenter-provider-aws docs"),
            ("yes (beta)", "kubernetes-sigs/kueue#11903"),
            ("yes", "kai-scheduler/KAI-Scheduler#1938"),
        ),
    ),
    Row(
        5055,
        "device taints and tolerations",
        "beta, stable in 1.37",
        "yes",
        f"{_DRA}/test_allocator.py::test_taints_need_tolerations_and_rules_add_taints",
        (("partly: no DeviceTaintRule", "source of 1.36.1, read 2026-08-22"), UNSAID, _QUOTA, UNSAID),
    ),
    Row(
        5007,
        "binding conditions",
        "beta",
        "yes",
        f"{_DRA}/test_filter.py::test_binding_conditions_of_an_allocated_claim",
        (UNSAID, UNSAID, _QUOTA, UNSAID),
    ),
    Row(
        4817,
        "status of claims' devices",
        "beta, stable in 1.37",
        "not needed",
        "",
        (_NOT_SCHEDULING, _NOT_SCHEDULING, _NOT_SCHEDULING, _NOT_SCHEDULING),
    ),
    Row(
        4680,
        "health of devices in the pod's status",
        "beta",
        "not needed",
        "",
        (_NOT_SCHEDULING, _NOT_SCHEDULING, _NOT_SCHEDULING, _NOT_SCHEDULING),
    ),
    Row(
        5304,
        "attributes through the downward API",
        "beta in 1.37",
        "not needed",
        "",
        (_NOT_SCHEDULING, _NOT_SCHEDULING, _NOT_SCHEDULING, _NOT_SCHEDULING),
    ),
    Row(
        5729,
        "claims of PodGroups",
        "beta in 1.37, off",
        "yes",
        f"{_DRA}/test_filter.py::test_a_pod_uses_the_claims_of_its_pod_group",
        (("no", "kubernetes/autoscaler#9570"), UNSAID, UNSAID, UNSAID),
    ),
    Row(
        4671,
        "gangs (Workload, PodGroup)",
        "beta in 1.37, off",
        "yes",
        "tests/unit/simulation/test_simulation.py::test_a_gang_that_cannot_be_whole_does_not_start",
        (
            ("no", "kubernetes/autoscaler#9570"),
            ("no", "kubernetes-sigs/karpenter#742"),
            ("its own workloads", "Kueue docs"),
            ("its own PodGroups", "KAI-Scheduler docs"),
        ),
    ),
    Row(
        5328,
        "features that nodes declare",
        "beta, stable in 1.37",
        "yes",
        "tests/unit/scheduling/test_filters.py::test_declared_features",
        (UNSAID, UNSAID, _QUOTA, UNSAID),
    ),
    Row(
        6072,
        "the standard attribute numaNode",
        "stable in 1.37",
        "yes",
        "tests/unit/instance_catalog/prediction/test_nvidia_gpu.py::test_numa_nodes_are_lists_under_their_gate",
        (UNSAID, UNSAID, _QUOTA, UNSAID),
    ),
)

_HEAD: Final = f"""# Which parts of DRA who understands

Generated by `make generate` from tests/dra_reference.py; do not edit.

Every enhancement of Dynamic Resource Allocation that is beta or stable in Kubernetes 1.36 or 1.37, and those of groups
of pods that concern claims. A test shows what Foreslice does. What the others do is taken from what they have
published, as read on {READ_ON}; *not published* means that nothing was found that says so, and not that it does not
work. Corrections are welcome. [fidelity.md](fidelity.md) says how the rules are compared with Kubernetes' own code,
release by release.
"""


def generated_files() -> dict[Path, str]:
    """The page."""
    return {Path("docs/dra-support.md"): "\n".join((_HEAD, *_table(), "", *_sources())) + "\n"}


def _table() -> Iterator[str]:
    yield f"| KEP | what | Kubernetes | Foreslice | {' | '.join(OTHERS)} |"
    yield f"|---|---|---|---|{'---|' * len(OTHERS)}"
    for row in ROWS:
        answers = " | ".join(answer for answer, _ in row.others)
        yield f"| {row.kep} | {row.name} | {row.state} | {_linked(row)} | {answers} |"


def _linked(row: Row) -> str:
    return f"[{row.ours}](../{row.test.partition('::')[0]})" if row.test else row.ours


def _sources() -> Iterator[str]:
    yield "## Sources"
    yield ""
    yield "| KEP | what | source |"
    yield "|---|---|---|"
    for row in ROWS:
        if row.test:
            yield f"| {row.kep} | Foreslice: {row.name} | `{row.test}` |"
        for name, (answer, source) in zip(OTHERS, row.others, strict=True):
            if source and answer != _NOT_SCHEDULING[0]:
                yield f"| {row.kep} | {name}: {row.name} | {source} |"
