"""Groups whose pods run one program together and get GPUs of different models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

from autoscaler.lint.advice import surprise
from autoscaler.model.plan import Plan
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.kubernetes.labels import ACCELERATOR
from instance_catalog.types.catalog import Catalog

# Each runs one program in all of its pods with devices; groups of Ray and services of Dynamo may differ on purpose.
_ONE_PROGRAM: Final = ("LeaderWorkerSet", "PyTorchJob", "HyperPodPyTorchJob", "MPIJob", "JAXJob")


def mixed_groups(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> Iterator[Diagnostic]:
    """Pods that select no node and get another GPU than others of their group, once for each group: its author wrote
    the selection into one of its templates only."""
    for (_, group), models in _models(snapshot, plan, catalog).items():
        owner = group.replace("/", " ", 1)
        free = [pod for pods in models.values() for pod in pods if not pod.selected_labels]
        if len(models) < 2 or not free:
            continue
        first = free[0]
        own = next(model for model, pods in models.items() if first in pods)
        others = Counter({model: len(pods) for model, pods in models.items() if model != own})
        (other, count) = others.most_common(1)[0]
        yield surprise(
            f"Pod {first.key}",
            (),
            f"selects no node and gets {own}, while {models[other][0].key}{f' and {count - 1} more' * (count > 1)} of "
            f"{owner} {'get' if count > 1 else 'gets'} {other}: the smaller and slower GPU limits a program that runs "
            "on both",
            f"write the same node selector or affinity into all templates of {owner}, such as {ACCELERATOR}",
            first.origin,
            others=sum(pod in models[own] for pod in free) - 1,
        )


def _models(snapshot: Snapshot, plan: Plan, catalog: Catalog) -> dict[tuple[str, str], dict[str, list[Pod]]]:
    """The pods of such groups on new nodes, by the group and the model of the GPUs that they get."""
    pods = {pod.key: pod for pod in snapshot.pods if pod.owner.partition("/")[0] in _ONE_PROGRAM}
    found: dict[tuple[str, str], dict[str, list[Pod]]] = {}
    for node in plan.launches if pods else ():
        machine = catalog.types.get(node.offering.instance_type)
        card = machine.accelerator if machine is not None else None
        for key in node.pods:
            if card is not None and (pod := pods.get(key)) and pod.asks_for_devices:
                found.setdefault((pod.namespace, pod.owner), {}).setdefault(card.model, []).append(pod)
    return found
