"""PodGroups with claims for all of their pods, drawn around a case about claims (gate DRAWorkloadResourceClaims)."""

from __future__ import annotations

from copy import deepcopy
from itertools import count, islice
from random import Random

from tests.oracle.upstream import Json

_API = "scheduling.k8s.io"
_LIMIT = 256  # consumers of a claim
_GROUPS = ("trainers", "others")


class Groups:
    """The pods of a case made members of groups; some of the claims become, or only seem to become, their groups'."""

    def __init__(self, rng: Random, case: Json) -> None:
        self._rng = rng
        self._case: Json = deepcopy({key: case[key] for key in ("pods", "pod", "claims")})
        self._spec: dict[str, list[Json]] = {name: [] for name in _GROUPS}

    def drawn(self) -> Json:
        """The fields of the case that it changes."""
        rng, case = self._rng, self._case
        case["groupClaimsInForce"] = in_force = rng.random() < 0.8
        for pod in (*case["pods"], case["pod"]):
            # Upstream's plugin crashes over a generated claim of somebody else, unless the pod has a group.
            if in_force or rng.random() < 0.8:
                pod["spec"]["schedulingGroup"] = {"podGroupName": rng.choice((*_GROUPS[:1] * 4, _GROUPS[1]))}
        entries = case["pod"]["spec"].get("resourceClaims", [])
        entries[:] = [self._generated(entry) if rng.random() < 0.5 else entry for entry in entries]
        for entry in entries:
            self._share(entry)
        for claim in case["claims"]:
            self._hand_over(claim)
        case["podGroups"] = [
            self._group(name) for name in _GROUPS if rng.random() < 0.95 or self._spec[name] or self._reserves(name)
        ]
        return case

    def _generated(self, entry: Json) -> Json:
        """The entry as if its claim had been made from a template."""
        if "resourceClaimName" not in entry:
            return entry
        self._case["pod"].setdefault("status", {}).setdefault("resourceClaimStatuses", []).append(dict(entry))
        return {"name": entry["name"], "resourceClaimTemplateName": "template"}

    def _share(self, entry: Json) -> None:
        """The entry of the pod is one of its group's, or nearly: another name, or another source."""
        rng = self._rng
        if rng.random() < 0.7:
            shared = dict(entry)
            draw = rng.random()
            if draw < 0.1:
                shared["name"] = "another"
            elif draw < 0.2:
                shared.pop("resourceClaimName", None)
                shared["resourceClaimTemplateName"] = "another"
            self._spec[rng.choice((*_GROUPS[:1] * 4, _GROUPS[1]))].append(shared)

    def _hand_over(self, claim: Json) -> None:
        rng = self._rng
        if rng.random() < 0.8:
            group = rng.choice((*_GROUPS[:1] * 4, _GROUPS[1]))
            version = rng.choice((f"{_API}/v1alpha2", f"{_API}/v1alpha2", f"{_API}/v1beta1", "scheduling.x-k8s.io/v1"))
            kind = "PodGroup" if rng.random() < 0.9 else "Workload"
            owner = {"apiVersion": version, "kind": kind, "name": group, "uid": f"uid-{group}", "controller": True}
            if rng.random() < 0.1:
                owner["controller"] = False
            claim["metadata"]["ownerReferences"] = [owner]
        status = claim.get("status", {})
        if "allocation" in status and rng.random() < 0.5:
            group = rng.choice((*_GROUPS[:1] * 3, _GROUPS[1]))
            uid = f"uid-{group}" if rng.random() < 0.8 else f"earlier-{group}"
            consumers: list[Json] = status.get("reservedFor", []) if rng.random() < 0.5 else []
            taken = {"apiGroup": _API, "resource": "podgroups", "name": group, "uid": uid}
            more = _LIMIT if rng.random() < 0.3 else len(consumers) + 1
            jobs = ({"apiGroup": "example.com", "resource": "jobs", "name": f"g{i}", "uid": f"g{i}"} for i in count())
            status["reservedFor"] = [*consumers, *islice(jobs, max(0, more - 1 - len(consumers))), taken][-_LIMIT:]

    def _reserves(self, group: str) -> bool:
        """Whether a claim is reserved for it: consumers that nobody knows are looked up, which is not compared."""
        return any(
            consumer.get("apiGroup") == _API and consumer["name"] == group
            for claim in self._case["claims"]
            for consumer in claim.get("status", {}).get("reservedFor", ())
        )

    def _group(self, name: str) -> Json:
        spec: Json = {"schedulingPolicy": {"basic": {}}}
        entries = {entry["name"]: entry for entry in self._spec[name]}
        if entries:
            spec["resourceClaims"] = list(entries.values())
        metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
        return {"apiVersion": f"{_API}/v1alpha2", "kind": "PodGroup", "metadata": metadata, "spec": spec}
