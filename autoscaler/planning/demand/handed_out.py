"""Devices that a system beside kube-scheduler hands out to pods that request none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Fact
from instance_catalog.drivers.device_plugins import handing_out
from instance_catalog.kubernetes.labels import KAI_GPU_FRACTION, KAI_GPU_MEMORY

# In annotations, which only their own systems read; a label may be of a team or a dashboard.
_WORDS: Final = re.compile(r"(?:^|[^a-z])v?[gn]pus?(?:[^a-z]|$)")
# How GPUs that a pod has are given up, watched or switched on (kaiwo.silogen.ai/gpu-preemption.policy) asks for none.
_OTHERWISE: Final = re.compile(
    r"preempt|polic(?:y|ies)|grace|(?:en|dis)abled?(?![a-z])|monitor|metric|exporter|alert|dashboard|quota|driver|operator"
)


@lru_cache(maxsize=10_000)
def names_device(key: str) -> bool:
    """True of the key of an annotation by which such a system is asked for a device."""
    return key.startswith(handing_out().keys) or bool(_WORDS.search(key) and not _OTHERWISE.search(key.lower()))


def asking_annotation(key: str) -> bool:
    """True as well of one by which KAI Scheduler gives a part of a GPU."""
    return key in (KAI_GPU_FRACTION, KAI_GPU_MEMORY) or names_device(key)


def asking_label(key: str) -> bool:
    """The same of a label: other words in it may be those of a team or a dashboard."""
    return key.startswith(handing_out().keys)


def absent_word(text: str) -> str:
    """The word in the text that means a kind of device which no cloud of the catalog has; or nothing."""
    text = text.lower()
    return next((word for word in handing_out().absent if word in text), "")


def handed_out(pod: Pod) -> Mapping[str, Fact]:
    """What in the pod says that it gets a device, "handed", and the kind of it that no cloud of the catalog has,
    "kind"; or nothing."""
    known = handing_out()
    asked = {key: value for key, value in pod.annotations.items() if names_device(key)}
    labels = list(filter(asking_label, pod.labels))
    found = [f"schedulerName {pod.scheduler_name}"] if pod.scheduler_name in known.schedulers else []
    found += [f"runtimeClassName {pod.runtime_class}"] if pod.runtime_class in known.runtime_classes else []
    found += [f"annotation {next(iter(asked))}"] if asked else [f"label {labels[0]}"] if labels else []
    if not found:
        return {}
    kind = known.absent.get(absent_word(" ".join((pod.runtime_class, *asked.values()))), "")
    return {"handed": tuple(found), **({"kind": kind} if kind else {})}
