"""ResourceClaims for placement cases: simple ones, to compare ranks; the allocator has cases of its own."""

from __future__ import annotations

from random import Random

from tests.oracle.upstream import Json

_DRIVER = "gpu.example.com"
_MODELS = ("large", "small")


def add_claims(rng: Random, case: Json) -> None:
    """Give the pod of the case claims, and the nodes devices."""
    case["classes"] = [_device_class("any", "true"), *(_device_class(m, _is(m)) for m in _MODELS)]
    if rng.random() < 0.4:
        case["classes"][0]["spec"]["extendedResourceName"] = "example.com/widget"
    case["slices"] = [_slice(rng, node["metadata"]["name"]) for node in case["nodes"] if rng.random() < 0.9]
    namespace = case["pod"]["metadata"]["namespace"]
    claims = [_claim(rng, f"claim-{index}", namespace) for index in range(rng.choice((0, 1, 1, 2)))]
    for claim in claims:
        if rng.random() < 0.1:
            _allocate(rng, claim, case)
    case["claims"] = [claim for claim in claims if rng.random() < 0.97]
    case["pod"]["spec"]["resourceClaims"] = [
        {"name": claim["metadata"]["name"], "resourceClaimName": claim["metadata"]["name"]} for claim in claims
    ]
    if rng.random() < 0.3:
        case["pod"]["spec"]["containers"][0]["resources"]["limits"] = {"example.com/widget": rng.choice(("1", "2"))}


def _is(model: str) -> str:
    return f"device.attributes['{_DRIVER}'].model == '{model}'"


def _device_class(name: str, expression: str) -> Json:
    return {"metadata": {"name": name}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def _slice(rng: Random, node: str) -> Json:
    devices = [
        {"name": f"gpu-{index}", "attributes": {"model": {"string": rng.choice(_MODELS)}}}
        for index in range(rng.choice((1, 3, 4, 5)))
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return {
        "metadata": {"name": f"{node}-slice"},
        "spec": {"driver": _DRIVER, "nodeName": node, "pool": pool, "devices": devices},
    }


def _claim(rng: Random, name: str, namespace: str) -> Json:
    requests = [_request(rng, f"r{index}") for index in range(rng.choice((1, 1, 2)))]
    metadata = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
    return {"metadata": metadata, "spec": {"devices": {"requests": requests}}}


def _request(rng: Random, name: str) -> Json:
    if rng.random() < 0.3:
        return {"name": name, "exactly": _wanted(rng)}
    alternatives = [{"name": f"s{index}", **_wanted(rng)} for index in range(rng.choice((1, 2, 3, 8)))]
    return {"name": name, "firstAvailable": alternatives}


def _wanted(rng: Random) -> Json:
    count = rng.choice((1, 1, 1, 2, 3))
    return {"deviceClassName": rng.choice(("any", *_MODELS)), "allocationMode": "ExactCount", "count": count}


def _allocate(rng: Random, claim: Json, case: Json) -> None:
    """The claim has devices of a node already, which it has by its first request's first choice."""
    slices = case["slices"]
    if not slices:
        return
    spec = rng.choice(slices)["spec"]
    request = claim["spec"]["devices"]["requests"][0]
    name = f"{request['name']}/s0" if "firstAvailable" in request else request["name"]
    device = {"request": name, "driver": _DRIVER, "pool": spec["pool"]["name"], "device": "gpu-0"}
    here = {"key": "metadata.name", "operator": "In", "values": [spec["nodeName"]]}
    claim["status"] = {
        "allocation": {
            "devices": {"results": [device]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [here]}]},
        }
    }
