"""Devices that a system beside kube-scheduler hands out to pods that request none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from autoscaler.model.pod import Pod
from autoscaler.model.reason import Fact
from instance_catalog.drivers.device_plugins import handing_out

# In annotations, which only their own systems read; a label may be of a team or a dashboard.
_WORDS: Final = re.compile(r"(?:^|[^a-z])v?[gn]pus?(?:[^a-z]|$)")


def handed_out(pod: Pod) -> Mapping[str, Fact]:
    """What in the pod says that it gets a device, "handed", and the kind of it that no cloud of the catalog has,
    "kind"; or nothing."""
    known = handing_out()
    keys = [key for key in pod.annotations if key.startswith(known.keys) or _WORDS.search(key)]
    labels = [key for key in pod.labels if key.startswith(known.keys)]
    found = [f"schedulerName {pod.scheduler_name}"] if pod.scheduler_name in known.schedulers else []
    found += [f"runtimeClassName {pod.runtime_class}"] if pod.runtime_class in known.runtime_classes else []
    found += [f"annotation {keys[0]}"] if keys else [f"label {labels[0]}"] if labels else []
    if not found:
        return {}
    said = " ".join((pod.runtime_class, *(pod.annotations[key] for key in keys))).lower()
    kind = next((kind for word, kind in known.absent.items() if word in said), "")
    return {"handed": tuple(found), **({"kind": kind} if kind else {})}
