"""More that a provider may be able to do, and what it may need from Kubernetes. The others are in contract.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from providers.contract import LaunchAnswer, LaunchRequest, TemplateRef


@runtime_checkable
class Announcer(Protocol):
    """Optional: something that hears of changes before they are described, in a thread that may wait for them."""

    def announced(self, wait: timedelta) -> bool:
        """Whether something has been announced, waiting so long for it. It takes nothing away from `describe`."""


@runtime_checkable
class NoticeReader(Protocol):
    """Optional: a provider that reads notices where they have to be removed once they are known."""

    def acknowledge(self) -> None:
        """What `describe` has answered so far is written down: the notices behind it may be removed. Until then they
        stay, for whoever comes after us. Never called while all pools observe."""


@runtime_checkable
class BootTimes(Protocol):
    """Optional: a provider whose node templates may say how long machines take from their launch to their Node."""

    def boot_timeouts(self) -> Mapping[TemplateRef, timedelta]:
        """Those of the templates that say. Asks nobody but Kubernetes; a template that cannot be used is left out."""


@runtime_checkable
class Withdrawer(Protocol):
    """Optional: a provider whose launches may wait (WaitingError), all of them for all of their machines or none.

    A launch that waits may start its machines at any moment, until it is withdrawn. providers/conformance_waits.py
    checks this.
    """

    def waits(self, request: LaunchRequest) -> bool:
        """Whether the provider holds this request. Only reads; raises as `launch` does."""

    def withdraw(self, request: LaunchRequest) -> LaunchAnswer:
        """Let the request start nothing more. Answers with the machines that it started all the same, as `launch`
        would; they are the caller's. Withdrawing twice, or what was never asked for, answers with none. Raises
        AmbiguousError until that is certain: repeat it. The token is not used up."""


@runtime_checkable
class NameKeeper(Protocol):
    """Optional: a provider whose groups keep the name of a machine that is gone, and make another one under it."""

    def release(self, provider_ids: Sequence[str]) -> None:
        """Let nothing be made any more under these names, as far as launches of this cluster have chosen them. A name
        that has a machine is left to whoever ends that."""

    def kept(self, provider_ids: Sequence[str]) -> tuple[str, ...]:
        """Those that `release` would change something about. Reads only."""


class KubernetesObjects(Protocol):
    """What a provider may need from Kubernetes: cluster-scoped objects as JSON dicts. `app` hands in an implementation.

    `resource` is (apiVersion, plural), such as ("v1", "nodes") or ("resource.k8s.io/v1", "resourceslices").
    """

    def get(self, resource: tuple[str, str], name: str) -> Mapping[str, Any] | None:
        """The object, or None."""

    def list(self, resource: tuple[str, str], *, labels: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """All objects that carry these labels, ordered by name."""

    def create(self, resource: tuple[str, str], manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Create it; as it was created, or None when an object of this name exists already."""

    def delete(self, resource: tuple[str, str], name: str) -> bool:
        """Delete it; False when there is none."""
