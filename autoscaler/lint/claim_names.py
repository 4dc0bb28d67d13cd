"""Names in a claim that the API server refuses: of requests, of classes, and those that refer to others.

Source: k8s.io/kubernetes pkg/apis/resource/validation, v1.36.3.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from autoscaler.kube.selectors import DEVICE_TAINT_EFFECTS
from autoscaler.lint.rules import INVALID_OBJECT, Finding
from autoscaler.lint.subjects import ClaimSubject
from autoscaler.model.resource_claim import DeviceRequest, FirstAvailable
from instance_catalog.diagnostic import Path
from instance_catalog.spelling import did_you_mean

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(rf"(?=.{{1,253}}\Z){_LABEL.pattern}(\.{_LABEL.pattern})*")


def check_claim_names(subject: ClaimSubject) -> Iterator[Finding]:
    """Names that are malformed, duplicate or unknown. kube/ reports constraints on unknown requests."""
    known: list[str] = []
    for index, request in enumerate(subject.claim.requests):
        path = (*subject.path, "requests", index)
        known.append(request.name)
        yield from _request_name(subject.object, (*path, "name"), request.name)
        if isinstance(request, FirstAvailable):
            names = [alternative.name for alternative in request.subrequests]
            known += [f"{request.name}/{name}" for name in names]
            for position, name in enumerate(names):
                yield from _request_name(subject.object, (*path, "firstAvailable", position, "name"), name)
            yield from _repeated(subject.object, (*path, "firstAvailable"), names, field=("name",))
    for place, _, exact in subject.requests():
        yield from _exact(subject.object, place, exact)
    for index, constraint in enumerate(subject.claim.constraints):
        yield from _repeated(subject.object, (*subject.path, "constraints", index, "requests"), constraint.requests)
    for index, config in enumerate(subject.claim.config):
        path = (*subject.path, "config", index)
        yield from _repeated(subject.object, (*path, "requests"), config.requests)
        for position, name in enumerate(config.requests):
            if name not in known:
                step = did_you_mean(name, known, f"this claim has {', '.join(sorted(known)) or 'no requests'}")
                yield _invalid(subject.object, (*path, "requests", position), f"there is no request {name!r}", step)
        if not _SUBDOMAIN.fullmatch(config.driver):
            step = "write `opaque:` with the driver that reads the parameters, such as gpu.nvidia.com"
            message = f"{config.driver!r} is not the name of a driver" if config.driver else "is required"
            yield _invalid(subject.object, (*path, "opaque", "driver"), message, step)


def _exact(name: str, path: Path, request: DeviceRequest) -> Iterator[Finding]:
    if request.device_class and not _SUBDOMAIN.fullmatch(request.device_class):
        message = f"{request.device_class!r} is not the name of a class"
        yield _invalid(name, (*path, "deviceClassName"), message, "write lower case letters, digits, '-' and '.'")
    for index, toleration in enumerate(request.tolerations):
        if toleration.effect and toleration.effect not in DEVICE_TAINT_EFFECTS:
            place = (*path, "tolerations", index, "effect")
            allowed = ", ".join(DEVICE_TAINT_EFFECTS)
            yield _invalid(name, place, f"{toleration.effect!r} is not an effect of device taints", f"use {allowed}")


def _request_name(name: str, path: Path, written: str) -> Iterator[Finding]:
    if written and not _LABEL.fullmatch(written):
        step = "write at most 63 lower case letters, digits and '-'"
        yield _invalid(name, path, f"{written!r} is not a name of a request", step)


def _repeated(name: str, path: Path, names: Sequence[str], *, field: Path = ()) -> Iterator[Finding]:
    for index, written in enumerate(names):
        if written in names[:index]:
            yield _invalid(name, (*path, index, *field), f"{written!r} is there twice", "name each one once")


def _invalid(name: str, path: Path, message: str, step: str) -> Finding:
    return Finding.of(INVALID_OBJECT, name, path, message, step)
