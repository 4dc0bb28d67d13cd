"""Volumes for placement cases: bound ones, ones that are free, ones to be made, and nodes that attach a few."""

from __future__ import annotations

from random import Random

from tests.oracle.upstream import Json

_ZONE, _BETA_ZONE, _REGION = (
    "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_DRIVERS = ("ebs.example.com", "pd.example.com")
_CLASSES: tuple[Json, ...] = (
    {"metadata": {"name": "now"}, "provisioner": _DRIVERS[0], "volumeBindingMode": "Immediate"},
    {"metadata": {"name": "later"}, "provisioner": _DRIVERS[0], "volumeBindingMode": "WaitForFirstConsumer"},
    {
        "metadata": {"name": "local"},
        "provisioner": "kubernetes.io/no-provisioner",
        "volumeBindingMode": "WaitForFirstConsumer",
    },
    {
        "metadata": {"name": "zonal"},
        "provisioner": _DRIVERS[1],
        "volumeBindingMode": "WaitForFirstConsumer",
        "allowedTopologies": [{"matchLabelExpressions": [{"key": _ZONE, "values": ["z1"]}]}],
    },
)


def add_volumes(rng: Random, case: Json) -> None:
    """Give pods of the case volumes, and the case everything that belongs to them."""
    claims = [_claim(rng, f"claim-{index}") for index in range(rng.randrange(1, 6))]
    case["storageClasses"] = [entry for entry in _CLASSES if rng.random() < 0.95]
    case["volumes"] = [_volume(rng, claim["spec"]["volumeName"]) for claim in claims if "volumeName" in claim["spec"]][
        : None if rng.random() < 0.95 else 1
    ]
    case["volumes"] += [_free_volume(rng, f"free-{index}") for index in range(rng.randrange(4))]
    case["volumeClaims"] = claims
    case["csiNodes"] = [_csi_node(rng, node["metadata"]["name"]) for node in case["nodes"] if rng.random() < 0.7]
    _add_room(rng, case)
    names = [claim["metadata"]["name"] for claim in claims]
    if rng.random() < 0.03:
        names.append("missing")
    for pod in (*case["pods"], case["pod"]):
        pod["metadata"]["namespace"] = "default"
        if rng.random() < (0.9 if pod is case["pod"] else 0.4):
            chosen = rng.sample(names, min(len(names), rng.choice((1, 1, 2, 3))))
            pod["spec"].setdefault("volumes", []).extend(
                {"name": f"v{index}", "persistentVolumeClaim": {"claimName": name}} for index, name in enumerate(chosen)
            )


def _add_room(rng: Random, case: Json) -> None:
    """What drivers can still make, and what they have attached."""
    case["csiDrivers"] = [
        {"metadata": {"name": driver}, "spec": {"storageCapacity": rng.random() < 0.6}}
        for driver in _DRIVERS
        if rng.random() < 0.3
    ]
    case["storageCapacities"] = [_capacity(rng, f"room-{index}") for index in range(rng.randrange(5))]
    names = [volume["metadata"]["name"] for volume in case["volumes"]]
    case["volumeAttachments"] = [
        {
            "metadata": {"name": f"attached-{index}"},
            "spec": {
                "attacher": rng.choice(_DRIVERS),
                "nodeName": rng.choice(case["nodes"])["metadata"]["name"],
                "source": {"persistentVolumeName": rng.choice([*names, "gone"])} if rng.random() < 0.9 else {},
            },
        }
        for index in range(rng.choice((0, 0, 1, 2, 4)))
    ]


def _capacity(rng: Random, name: str) -> Json:
    found: Json = {
        "metadata": {"name": name, "namespace": "kube-system"},
        "storageClassName": rng.choice(("later", "later", "zonal")),
    }
    for field, likely in (("capacity", 0.8), ("maximumVolumeSize", 0.4)):
        if rng.random() < likely:
            found[field] = rng.choice(("0", "1Gi", "2Gi", "1500Mi", "5Gi"))
    if rng.random() < 0.9:
        found["nodeTopology"] = rng.choice(
            (
                {},
                {"matchLabels": {_ZONE: "z1"}},
                {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z2"]}]},
                {"matchExpressions": [{"key": "rack", "operator": "DoesNotExist"}]},
            )
        )
    return found


def _claim(rng: Random, name: str) -> Json:
    metadata: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}"}
    mode = rng.choice(("ReadWriteOnce", "ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"))
    spec: Json = {"accessModes": [mode], "resources": {"requests": {"storage": rng.choice(("1Gi", "2Gi", "3Gi"))}}}
    claim: Json = {"metadata": metadata, "spec": spec}
    spec["storageClassName"] = rng.choice(("later", "local", "zonal", "zonal", "now", ""))
    draw = rng.random()
    if draw < 0.45:
        spec["volumeName"] = f"volume-of-{name}"
        metadata["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    elif draw < 0.55:
        metadata["annotations"] = {"volume.kubernetes.io/selected-node": rng.choice(("node-0", "node-1"))}
    if rng.random() < 0.05:
        metadata.setdefault("annotations", {})[_BETA_CLASS] = rng.choice(("local", "later", "zonal"))
    if rng.random() < 0.1:
        spec["volumeMode"] = "Block"
    if rng.random() < 0.1:
        spec["selector"] = {"matchLabels": {"disk": "fast"}}
    if rng.random() < 0.03:
        claim["status"] = {"phase": "Lost"}
    if rng.random() < 0.03:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return claim


def _volume(rng: Random, name: str) -> Json:
    labels = {}
    if rng.random() < 0.4:
        labels[rng.choice((_ZONE, _BETA_ZONE))] = rng.choice(("z1", "z2", "z1__z2"))
    if rng.random() < 0.1:
        labels[_REGION] = rng.choice(("r", "other"))
    spec: Json = {"capacity": {"storage": rng.choice(("1Gi", "2Gi", "5Gi"))}, "accessModes": ["ReadWriteOnce"]}
    if rng.random() < 0.8:
        handle = name if rng.random() < 0.9 else "shared"
        spec["csi"] = {"driver": rng.choice(_DRIVERS), "volumeHandle": handle}
    else:
        spec["hostPath"] = {"path": "/data"}
    if rng.random() < 0.5:
        place = {"key": rng.choice((_ZONE, "zone")), "operator": "In", "values": [rng.choice(("z1", "z2"))]}
        term: Json = {"matchExpressions": [place]}
        if rng.random() < 0.05:
            term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-0"]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec, "status": {"phase": "Bound"}}


def _free_volume(rng: Random, name: str) -> Json:
    volume = _volume(rng, name)
    volume["status"]["phase"] = rng.choice(("Available", "Available", "Available", "Released"))
    volume["spec"]["storageClassName"] = rng.choice(("local", "local", "later", "zonal"))
    volume["spec"]["accessModes"] = ["ReadWriteOnce", *(("ReadWriteMany",) if rng.random() < 0.4 else ())]
    if rng.random() < 0.1:
        volume["spec"]["volumeMode"] = "Block"
    if rng.random() < 0.05:
        volume["metadata"]["annotations"] = {_BETA_CLASS: rng.choice(("local", "later"))}
    if rng.random() < 0.3:
        volume["metadata"]["labels"]["disk"] = "fast"
    if rng.random() < 0.2:
        name = rng.choice(("claim-0", "claim-1"))
        volume["spec"]["claimRef"] = {"namespace": "default", "name": name}
        if rng.random() < 0.5:  # of the claim that is there, or of an earlier one
            volume["spec"]["claimRef"]["uid"] = rng.choice((f"uid-{name}", "uid-before"))
    if rng.random() < 0.05:
        volume["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return volume


def _csi_node(rng: Random, name: str) -> Json:
    drivers: list[Json] = [{"name": driver, "nodeID": name} for driver in _DRIVERS if rng.random() < 0.8]
    for driver in drivers:
        if rng.random() < 0.8:
            driver["allocatable"] = {"count": rng.choice((0, 1, 1, 2, 3, 8))}
    return {"metadata": {"name": name}, "spec": {"drivers": drivers}}
