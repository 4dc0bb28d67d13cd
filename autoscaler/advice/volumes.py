"""Changes of volumes: the claims and StorageClasses that files lack, and classes whose volumes do not wait for pods;
and the pods that files lack."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import partial

from autoscaler.advice.change import Change, ChangeKind, on_pods
from autoscaler.advice.situation import Situation
from autoscaler.model.pod import Pod, PodAffinityTerm
from autoscaler.model.reason import Code, Fact
from autoscaler.model.snapshot import Snapshot
from autoscaler.model.storage import PersistentVolumeClaim, VolumeBindingMode
from autoscaler.planning.demand.mounted import clouds_of_storage_names
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.planning.demand.unmet_affinity import unmet_terms, wanted_pods
from autoscaler.scheduling.volumes import NO_PROVISIONER
from instance_catalog.dataclass import replace
from instance_catalog.frozen_map import FrozenMap

_OF_MANY_NODES = frozenset({"ReadWriteMany", "ReadOnlyMany"})


def volume_claims(asked: Situation) -> Iterator[Change]:
    """The PersistentVolumeClaims and StorageClasses that files lack, as if their volumes kept the pod from no node, and
    the classes whose volumes must wait for the pod; and the pods that it has to be near."""
    details = [reason.detail for reason in asked.reasons]
    unread = asked.codes & {Code.VOLUME_UNBOUND, Code.POD_AFFINITY}
    if unread or any("storage_class" in one or "bound_to" in one for one in details):
        yield from missing_volumes(asked)


def missing_volumes(asked: Situation) -> Iterator[Change]:
    """The same in one change, whatever keeps the pod from a node."""
    claims = tuple(dict.fromkeys(key for pod in asked.pods for key in _claims_missing(pod, asked.snapshot)))
    missing = {key: name for pod in asked.pods for key, name in _classes_missing(pod, asked.snapshot).items()}
    immediate = tuple(sorted({name for pod in asked.pods for name in _immediate_classes(pod, asked.snapshot)}))
    found, tried = [], _tried(asked)
    if claims:
        edit = on_pods(asked.keys, lambda pod: _without_volumes(pod, _claims_missing(pod, asked.snapshot)))
        found.append(Change.of(ChangeKind.ADD_VOLUME_CLAIMS, asked.subject, edit, claims=claims, tried=tried))
    if missing:
        edit = on_pods(asked.keys, lambda pod: _without_volumes(pod, _classes_missing(pod, asked.snapshot)))
        modes = {mode for key in missing for mode in asked.snapshot.volume_claims[key].access_modes}
        classes, shared = tuple(sorted(set(missing.values()))), bool(modes & _OF_MANY_NODES)
        facts: dict[str, Fact] = {"classes": classes, "shared": shared, "tried": tried}
        found.append(Change.of(ChangeKind.ADD_STORAGE_CLASSES, "", edit, **facts))
    if immediate:
        edit = partial(_waiting, classes=immediate)
        found.append(Change.of(ChangeKind.WAIT_FOR_POD, "", edit, classes=immediate))
    found += _without_absent_pods(asked)
    if found:
        yield Change.together(*found)


def _without_absent_pods(asked: Situation) -> Iterator[Change]:
    """Without the required terms of pod affinity that no pod in the files meets."""
    unmet = unmet_terms((asked.pod,), asked.snapshot) if asked.snapshot.from_files else ()
    if unmet:
        edit = on_pods(asked.keys, lambda pod: _without_terms(pod, unmet_terms((pod,), asked.snapshot)))
        keys = tuple(dict.fromkeys(term.topology_key for term in unmet))
        wanted = tuple(dict.fromkeys(map(wanted_pods, unmet)))
        yield Change.of(ChangeKind.GIVE_PODS, asked.subject, edit, wanted=wanted, keys=keys)


def _without_terms(pod: Pod, terms: Collection[PodAffinityTerm]) -> Pod:
    return replace(pod, pod_affinity=tuple(term for term in pod.pod_affinity if term not in terms))


def _tried(asked: Situation) -> str:
    """The place of the volumes of a trial, and what the real ones decide."""
    pools = any(pool.name != IMPLICIT.name for pool in asked.snapshot.pools)  # that one may be created by a change
    clouds = asked.where.clouds or (() if pools else tuple(asked.clouds))
    if len(clouds) != 1:
        open_ = "zone" if pools else "cloud, zone"
        return f"a volume that every zone serves: the real one decides {open_} and so the price"
    name = "" if asked.where.clouds else clouds_of_storage_names(asked.pods, asked.snapshot).get(clouds[0], "")
    by = f", because the name {name} means its storage" if name else ""
    return f"a volume that every zone of {clouds[0]} serves{by}: the real one decides zone and so the price"


def _claims_missing(pod: Pod, snapshot: Snapshot) -> tuple[str, ...]:
    keys = (f"{pod.namespace}/{name}" for name in pod.volumes)
    return tuple(key for key in keys if key not in snapshot.volume_claims)


def _waiting_claims(pod: Pod, snapshot: Snapshot) -> Iterator[PersistentVolumeClaim]:
    """The claims of the pod that have no volume."""
    claims = (snapshot.volume_claims.get(f"{pod.namespace}/{name}") for name in pod.volumes)
    return (claim for claim in claims if claim is not None and claim.volume is None)


def _classes_missing(pod: Pod, snapshot: Snapshot) -> dict[str, str]:
    """The StorageClasses that are not in sight, by the claims of the pod that wait for a volume of them."""
    waiting = {claim.key: claim.storage_class or "" for claim in _waiting_claims(pod, snapshot)}
    known = snapshot.storage_classes
    return {
        k: name
        for k, name in waiting.items()
        if name in known and known[name].binding_mode == VolumeBindingMode.UNKNOWN
    }


def _immediate_classes(pod: Pod, snapshot: Snapshot) -> Iterator[str]:
    """The classes of the pod's claims whose driver makes a volume before the pod is scheduled, somewhere."""
    for claim in _waiting_claims(pod, snapshot):
        found = snapshot.storage_classes.get(claim.storage_class or "")
        made = found is not None and found.provisioner not in ("", NO_PROVISIONER)
        if (
            found is not None
            and made
            and found.binding_mode not in (VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER, VolumeBindingMode.UNKNOWN)
        ):
            yield found.name


def _waiting(snapshot: Snapshot, classes: Collection[str]) -> Snapshot:
    """The snapshot in which the volumes of these classes wait for pods."""
    changed = {
        name: replace(snapshot.storage_classes[name], binding_mode=VolumeBindingMode.WAIT_FOR_FIRST_CONSUMER)
        for name in classes
    }
    return replace(snapshot, storage_classes=FrozenMap({**snapshot.storage_classes, **changed}))


def _without_volumes(pod: Pod, claims: Collection[str]) -> Pod:
    return replace(pod, volumes=tuple(name for name in pod.volumes if f"{pod.namespace}/{name}" not in claims))
