"""The devices that an object of an unknown form asks for, wherever that stands in it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.lint.pods.other_cards import card_of_machine
from instance_catalog.diagnostic import Path, path_text

_MOST_ASKED: Final = 3
_DEEPEST: Final = 40  # pod templates stand some ten levels deep; JSON may nest as deep as Python's stack
_AZURE: Final = "standard_"


def asking(value: object) -> str:
    """An addition to a message: the devices that an object of an unknown form asks for, wherever that stands in it."""
    found = [f"{name}: {amount} ({path_text(path)})" for path, name, amount in devices_in(value)]
    more = f" and {len(found) - _MOST_ASKED} more" if len(found) > _MOST_ASKED else ""
    if found:
        return f"; it asks for {', '.join(found[:_MOST_ASKED])}{more}"
    claims = [path_text(path) for path in _named("resourceClaims", value)]
    return f"; its pods have resource claims ({', '.join(claims[:_MOST_ASKED])})" if claims else ""


def devices_in(value: object, path: Path = ()) -> Iterator[tuple[Path, str, object]]:
    """Extended resources in the limits of any part of a value."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if key == "limits" and isinstance(part, dict):
            yield from ((path, name, amount) for name, amount in part.items() if "/" in name)
        elif len(path) < _DEEPEST:
            yield from devices_in(part, (*path, key))


def machines(value: object) -> str:
    """An addition to a message: the machines that KAITO gets for an object (api/v1beta1/workspace_types.go of
    kaito-project/kaito 056b828: `count` of them, by default one)."""
    for path in _named("instanceType", value):
        holder = value
        for part in path[:-1]:
            holder = holder[part] if isinstance(holder, (dict, list)) else {}  # type: ignore[index]
        name, number = (holder.get("instanceType"), holder.get("count")) if isinstance(holder, dict) else ("", 1)
        if isinstance(name, str) and name:
            card = card_of_machine(name)
            gpu = f", with {card.removeprefix('gpu ').upper()} GPUs" if card != name else ""
            azure = " of Azure" if name.lower().startswith(_AZURE) else ""
            return f"; KAITO gets it {number if type(number) is int else 1} × {name}{azure}{gpu}"
    return ""


def of_runtime(value: object) -> str:
    """An addition to a message: what says which devices the pods of an InferenceService of OME ask for
    (pkg/apis/ome/v1beta1 of sgl-project/ome 17b77ed)."""
    runtime = Fields(Fields(value).child("spec").raw("runtime")).raw("name")
    if not isinstance(runtime, str) or not runtime:
        return ""
    return f"; what its pods ask for is in engineConfig and decoderConfig of ClusterServingRuntime {runtime}"


def of_profile(value: object) -> str:
    """An addition to a message: what says which devices the pods of a Model of KubeAI ask for (charts/kubeai,
    values.yaml, of substratusai/kubeai 2f32ef4)."""
    profile = Fields(value).child("spec").raw("resourceProfile")
    if not isinstance(profile, str) or not profile:
        return ""
    name, _, number = profile.partition(":")
    return f"; each pod asks for {number or 1} × what resourceProfiles.{name} of KubeAI's Helm values says"


def _named(name: str, value: object, path: Path = ()) -> Iterator[Path]:
    """The paths of the fields of this name that are not empty."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in parts:
        if key == name and part:
            yield (*path, key)
        elif len(path) < _DEEPEST:
            yield from _named(name, part, (*path, key))
