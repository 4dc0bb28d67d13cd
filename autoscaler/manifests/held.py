"""Manifests of workloads in the data of a ConfigMap, which a program may create later."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from autoscaler.kube.fields import Fields
from autoscaler.kube.metadata import header
from autoscaler.kube.problem import Problems
from autoscaler.manifests.document import Document
from autoscaler.manifests.documents import read_documents
from autoscaler.manifests.kinds import MAKES_PODS, kind_of
from autoscaler.manifests.sources import Source
from instance_catalog.dataclass import dataclass

_NEXT: Final = re.compile(r"^---.*$", re.MULTILINE)
# An extended resource in the limits or requests of a container, or claims of a pod. Its parts are bounded: the text may
# be a megabyte of anything.
_DEVICES: Final = re.compile(
    r"\b(?:limits|requests)\W{1,3}[^/]{0,200}?(?<![\w.-])[\w-]{1,63}\.[\w.-]{1,253}/[\w.-]{1,63}(?:[\"']\s?:|\s?:\s)"
    r"|\bresourceClaims\b"
)
# Of a text that is YAML only after a program has filled it in.
_VERSION: Final = re.compile(r"^apiVersion:\s*[\"']?([\w./-]+)", re.MULTILINE)
_KIND: Final = re.compile(r"^kind:\s*[\"']?(\w+)", re.MULTILINE)
_PODS: Final = frozenset({("", "Pod"), ("apps", "DaemonSet")})


@dataclass(frozen=True, slots=True)
class _Held:
    name: str  # "Job train", "Job" of a template
    rendered: bool


def warn_of_manifests(config_map: Fields, problems: Problems) -> bool:
    """Name each key whose text is the manifest of pods that ask for devices: what looks at the ConfigMap may create
    it, and a plan does not. True if there are any."""
    found = False
    data = config_map.child("data")
    for key in data.names():
        text = data.raw(key)
        held = list(_held(text)) if isinstance(text, str) else []
        if not held:
            continue
        found = True
        names = ", ".join(dict.fromkeys(one.name for one in held))
        message = f"not planned: the text is the manifest of {names}, and whether a program creates it is unknown"
        file = shlex.quote(key)
        filled = "" if all(one.rendered for one in held) else ", with its variables filled in,"
        step = f"to plan for its pods, save the text{filled} as file {file} and run `foreslice plan -f {file}`"
        problems.warn(("data", key), message, step)
    return found


def _held(text: str) -> Iterator[_Held]:
    if "apiVersion" not in text:
        return
    for part in _NEXT.split(text):
        if not _DEVICES.search(part):
            continue
        read = list(read_documents(Source("", part)))
        documents = [one for one in read if isinstance(one, Document)]
        for one in documents:
            if _makes_pods(*header(one.value)):
                yield _Held(one.name, rendered=True)
        if not documents:
            version, kind = _VERSION.search(part), _KIND.search(part)
            if version and kind and _makes_pods(version[1], kind[1]):
                yield _Held(f"a {kind[1]}", rendered=False)


def _makes_pods(version: str, name: str) -> bool:
    group = version.rpartition("/")[0]
    kind = kind_of(group, name)
    return (kind is not None and kind.expands) or (group, name) in _PODS | MAKES_PODS
