"""NodeSet of Slinky (slinky.slurm.net): pods that are nodes of a Slurm cluster.

Ported rules: SlinkyProject/slurm-operator f2ed3fc, internal/builder/workerbuilder/worker_app.go: the container slurmd,
over which those of the template are merged by name.
"""

from __future__ import annotations

from typing import Any, Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.storage import volume_claim_from
from autoscaler.kube.workloads.controllers import expander
from autoscaler.kube.workloads.stamping import Expansion, SpecAsTemplate, Workload, count, stamp, too_many_volumes
from instance_catalog.dataclass import replace

_IGNORED: Final = (
    *("controllerRef", "ssh", "logfile", "extraConf", "partition", "updateStrategy", "revisionHistoryLimit"),
    *("persistentVolumeClaimRetentionPolicy", "minReadySeconds", "ordinalPadding", "workloadDisruptionProtection"),
    *("pruneSlurmNodeRecords", "oversubscribeNode", "pinToNode"),
)
_DAEMON: Final = "slurmd"


@expander
def expand_node_set(fields: Fields, workload: Workload) -> Expansion:
    """The pods of a NodeSet, <set>-<ordinal>, with a claim for each volumeClaimTemplate."""
    spec, metadata = fields.child("spec"), workload.metadata
    spec.ignore(*_IGNORED)
    number = count(spec, "replicas", 1)
    if spec.text("scalingMode") == "DaemonSet":
        spec.warn("scalingMode", "it has a pod on each node that suits it, and nodes are not launched for these")
        number = 0
    elif number == 0:
        spec.warn("replicas", "0: it has no pods now", "set replicas to as many as you expect to plan for them")
    template = spec.child("template")
    own = template.child("metadata")
    names = [f"{metadata.name}-{index}" for index in range(number)]
    labels, annotations = own.text_map("labels"), own.text_map("annotations")
    found = stamp(SpecAsTemplate(_pod_spec(spec, template), labels, annotations, template, "spec"), workload, names)
    own.unread()
    template.ignore("spec")
    template.unread()
    claimed = [(one.child("metadata").required("name"), one) for one in spec.children("volumeClaimTemplates")]
    if too_many_volumes(spec, "volumeClaimTemplates", number, len(claimed)):
        return Expansion()
    claims = tuple(
        volume_claim_from(one, namespace=metadata.namespace, name=f"{volume}-{pod}", origin=workload.pod_origin)
        for pod in names
        for volume, one in claimed
    )
    pods = tuple(
        replace(pod, volumes=(*pod.volumes, *(f"{volume}-{pod.name}" for volume, _ in claimed))) for pod in found.pods
    )
    spec.unread()
    return replace(found, pods=pods, volume_claims=(*found.volume_claims, *claims))


def _pod_spec(spec: Fields, template: Fields) -> dict[str, Any]:
    """The spec of the template, with slurmd before its other containers."""
    given = template.child("spec")
    daemon = spec.child(_DAEMON)
    main: dict[str, Any] = {**{name: daemon.raw(name) for name in daemon.names()}, "name": _DAEMON}
    others: list[Any] = []
    containers = given.raw("containers")
    for one in containers if isinstance(containers, list) else ():
        if isinstance(one, dict) and one.get("name") == _DAEMON:
            main |= one
        else:
            others.append(one)
    return {**{name: given.raw(name) for name in given.names()}, "containers": [main, *others]}
