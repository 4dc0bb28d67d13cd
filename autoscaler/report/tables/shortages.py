"""Resources of which machines have too little or nothing, in the words of kube-scheduler's events."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from autoscaler.lint.pods.unserved import foreign_resource
from autoscaler.model.reason import Reason
from autoscaler.report.reasons import amount_text
from instance_catalog.drivers.device_plugins import other_device, shared_gpu_resources
from instance_catalog.prediction.device_plugins import is_plugin_resource


def shortage_text(reason: Reason, *, on_all_types: bool) -> str:
    """A resource of which there is too little; `on_all_types`: no type that is asked for has enough."""
    detail = reason.detail
    resource = str(detail["resource"])
    wanted, free = (amount_text(resource, detail[key]) for key in ("wanted", "free"))
    if names := none_of_it(reason):
        first = f"{wanted} requested, " if len(names) == 1 else ""
        return f"Insufficient {' and '.join(names)} ({first}{_without(names, on_all_types=on_all_types)})"
    step = f"`foreslice catalog set TYPE allocatable.{shlex.quote(resource)}=… --into DIR --reason WHY`"
    disk = f"; to state the size of your root volumes: {step}"
    pages = f"; to state how many your nodes reserve: {step}" if resource.startswith("hugepages-") else ""
    more = disk if resource == "ephemeral-storage" else pages
    return f"Insufficient {resource} ({wanted} requested, at most {free} allocatable{more})"


def none_of_it(reason: Reason) -> tuple[str, ...]:
    """The extended resources of which the machine has none at all."""
    name, nor = str(reason.detail.get("resource", "")), reason.detail.get("nor", ())
    return (name, *map(str, nor if isinstance(nor, tuple) else ())) if "/" in name and not reason.detail["free"] else ()


def _without(resources: Sequence[str], *, on_all_types: bool) -> str:
    """The reason why no node offers the resources, and the step for machines with your own device plugin."""
    none = "no type on offer has any" if on_all_types else "these have none"
    known = [name for name in resources if is_plugin_resource(name)]
    others = (*known, *shared_gpu_resources(), *filter(other_device, resources))
    own = [
        f"allocatable.{shlex.quote(name)}=…" for name in resources if name not in others and not foreign_resource(name)
    ]
    runs = f" with {'its' if len(resources) == 1 else 'their'} device plugin" if known else ""
    step = f"; if your nodes have it, add it: `foreslice catalog set TYPE {' '.join(own)} --into DIR --reason WHY`"
    return f"{none}{runs}{step if own else ''}"
