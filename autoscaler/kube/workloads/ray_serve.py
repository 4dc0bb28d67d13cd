"""The parts of a RayService's Serve configuration that no field of its pods shows: models, and devices of deployments.

KubeRay v1.7.0 writes nothing of serveConfigV2 into pods. The text is YAML or JSON; it is searched for a few keys, and
not parsed. Names of resources: ray-project/kuberay v1.7.0 common/pod.go (customAcceleratorToRayResourceMap).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Final

from autoscaler.kube.containers import NamedModel, named_model
from autoscaler.kube.fields import Fields
from autoscaler.kube.workloads.stamping import Expansion
from autoscaler.model.pod import Pod
from instance_catalog.dataclass import replace
from instance_catalog.kubernetes import labels as keys
from instance_catalog.types.clouds import cloud_facts

_COMMENT: Final = re.compile(r"(?:^|\s)#.*")
_ACCELERATOR_TYPE: Final = re.compile(r"""\baccelerator_type["']?[ \t]*:[ \t]*["']?([A-Za-z][\w.-]*)""")
# Every deployment has a name, and so has every application, which requests nothing itself.
_DEPLOYMENT: Final = re.compile(r"""\bname["']?[ \t]*:""")
_REPLICAS: Final = re.compile(r"""\b(?:max_replicas|num_replicas)["']?[ \t]*:[ \t]*([0-9]{1,4})\b""")
_AMOUNT: Final = r"""["']?[ \t]*:[ \t]*([0-9]{1,3}(?:\.[0-9]{1,4})?)\b"""
# Ray's names of devices: the number that a replica requests, and the extended resource for pods. With a resource for
# the same devices under another name, their number is unknown.
_DEVICES: Final = {
    "num_gpus": (re.compile(rf"\bnum_gpus{_AMOUNT}"), "/gpu", "/gpu", "GPU"),
    "TPU": (re.compile(rf"\bTPU{_AMOUNT}"), "google.com/tpu", "google.com/tpu", "TPU chip"),
    "neuron_cores": (
        re.compile(rf"\bneuron_cores{_AMOUNT}"),
        "aws.amazon.com/neuroncore",
        "aws.amazon.com/neuron",
        "Neuron core",
    ),
}
_BFLOAT16: Final = re.compile(r"""(?<![\w-])dtype["']?: *["']?bfloat16\b""")  # of vLLM, not of its KV cache
# Kubernetes' names that users give to Ray, and Ray's names for them.
_OF_KUBERNETES: Final = {"google.com/tpu": "TPU", "aws.amazon.com/neuroncore": "neuron_cores"}


def serve_config(spec: Fields, found: Expansion) -> Expansion:
    """These pods of the cluster with the model that the configuration of Ray Serve names. Adds warnings about it."""
    config = spec.raw("serveConfigV2")
    text = _COMMENT.sub("", config) if isinstance(config, str) else ""
    _old_config(spec)
    _accelerator_types(spec, text, found)
    _names_of_kubernetes(spec, text)
    if found.pods and not any(pod.claims for pod in found.pods):  # the devices of a claim are unknown here
        for name in _DEVICES:
            _more_devices(spec, text, name, found)
    model = named_model(text)
    model = model._replace(bfloat16=model.serves and bool(_BFLOAT16.search(text)))
    return found if model.billions is None else replace(found, pods=tuple(_serving(pod, model) for pod in found.pods))


def _serving(pod: Pod, model: NamedModel) -> Pod:
    """The pod, whose Ray container (the first) serves the model, unless the container itself says which it has. The
    version of vLLM is in its image, so whether it replaces bfloat16 on older GPUs, where no type is set, is unknown."""
    if not pod.containers:
        return pod
    ray, *others = pod.containers
    if ray.model_billions is not None or ray.quantized:
        return pod
    billions, bits, spread = model.billions, model.bits, model.spread
    ray = replace(ray, model_billions=billions, model_bits=bits, model_spread=spread, serves_model=model.serves)
    ray = replace(ray, vllm_bfloat16=model.bfloat16, model_latent=model.latent, memory_share=model.share)
    return replace(pod, containers=(ray, *others))


def _old_config(spec: Fields) -> None:
    """Warn of the deployments of Serve's first API, which KubeRay dropped in v1.1.0 (ray-project/kuberay#1779)."""
    if "serveConfig" in spec:
        spec.ignore("serveConfig")
        spec.warn(
            "serveConfig",
            "KubeRay has not had it since v1.1.0, so no application starts; planned are the pods of the Ray cluster",
            "write its application into serveConfigV2, as text: `applications: [{name: …, import_path: …}]`",
        )


def _accelerator_types(spec: Fields, text: str, found: Expansion) -> None:
    """Warn of a model that is requested only from Ray."""
    models = dict.fromkeys(_ACCELERATOR_TYPE.findall(text))
    workers = [pod for pod in found.pods if pod.labels.get(keys.RAY_NODE_TYPE) == "worker"]
    if models and any(not (pod.node_selector or pod.affinity or pod.claims) for pod in workers):
        spec.warn(
            "serveConfigV2",
            f"asks Ray for accelerator_type {' and '.join(models)}, which no field of the workers' pods asks for: "
            "on nodes with another model Ray starts no replica",
            "name the model in the pod template of the workers: in a resource claim with a CEL selector on "
            f"productName, or in the nodeSelector by {' or '.join(c.model_label for c in cloud_facts().values())}",
        )


def _names_of_kubernetes(spec: Fields, text: str) -> None:
    """Warn of resources that no Ray node has unless rayStartParams declare them."""
    for name, right in _OF_KUBERNETES.items():
        if re.search(rf"{re.escape(name)}{_AMOUNT}", text):
            spec.warn(
                "serveConfigV2",
                f"asks Ray for {name}, and Ray calls that resource {right}: its replicas wait for ever, "
                "unless rayStartParams declare it",
                f"write {right} under ray_actor_options.resources",
            )


def _more_devices(spec: Fields, text: str, name: str, found: Expansion) -> None:
    """Warn of replicas of deployments that need more devices than the planned pods have."""
    _, resource, same, unit = _DEVICES[name]
    asked = {r: a.value for pod in found.pods for c in pod.containers for r, a in c.requests.items()}
    if not any(r.endswith(resource) for r in asked) and any(r.endswith(same) for r in asked):
        return
    requests = (entry for pod in found.pods for c in pod.containers for entry in c.requests.items())
    planned = int(sum(amount.value for r, amount in requests if r.endswith(resource)))
    demands = list(_demands(text, name))
    if sum(replicas * each for replicas, each in demands) <= planned:
        return
    parts = " and ".join(f"{_counted(replicas, 'replica')} with {name} {each:g}" for replicas, each in demands)
    spec.warn(
        "serveConfigV2",
        f"asks Ray for up to {parts}, and the planned pods have {_counted(planned, unit)}: planned are replicas of "
        "workerGroupSpecs, whatever Ray adds later",
        "to plan for more, set replicas of the worker group to as many as you expect; Ray adds workers up to its "
        "maxReplicas where enableInTreeAutoscaling is on",
    )


def _demands(text: str, name: str) -> Iterator[tuple[int, Decimal]]:
    """By deployment that requests the device: its greatest number of replicas, and the devices of one replica."""
    for part in _DEPLOYMENT.split(text):
        each = max(map(Decimal, _DEVICES[name][0].findall(part)), default=Decimal(0))
        if each:
            yield max(map(int, _REPLICAS.findall(part)), default=1), each


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" + "s" * (number != 1)
