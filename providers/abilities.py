"""Optional abilities of providers, and the objects that they may need from Kubernetes. The others are in
contract.py."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Protocol, runtime_checkable

from providers.contract import LaunchAnswer, LaunchRequest, TemplateRef


@runtime_checkable
class Announcer(Protocol):
    """Optional: something that hears of changes before they are described, in a thread that may wait for them."""

    def announced(self, wait: timedelta) -> bool:
        """True if something was announced, waiting at most `wait` for it. `describe` still returns it."""


@runtime_checkable
class NoticeReader(Protocol):
    """Optional: a provider whose notices must be removed from their source once they are recorded."""

    def acknowledge(self) -> None:
        """Removes the notices behind the answers of `describe` so far, which the caller has recorded. Until then they
        stay, also for a successor of this process. Never called while all pools observe."""


@runtime_checkable
class BootTimes(Protocol):
    """Optional: a provider whose node templates may set the time from a machine's launch to its Node."""

    def boot_timeouts(self) -> Mapping[TemplateRef, timedelta]:
        """The time-outs of the templates that set one. Calls only Kubernetes; a template that cannot be used is left
        out."""


@runtime_checkable
class Withdrawer(Protocol):
    """Optional: a provider whose launches may wait (WaitingError), all of them for all of their machines or none.

    A launch that waits may start its machines at any moment, until it is withdrawn. providers/conformance_waits.py
    checks this.
    """

    def waits(self, request: LaunchRequest) -> bool:
        """True if the provider holds this request. Only reads; raises as `launch` does."""

    def withdraw(self, request: LaunchRequest) -> LaunchAnswer:
        """Cancels the request, so that it starts nothing more. Answers with the machines that it had started, as
        `launch` would; they belong to the caller. Withdrawing twice, or withdrawing an unknown request, answers with
        none. Raises AmbiguousError until the result is certain: repeat it. The token is not used up."""


@runtime_checkable
class NameKeeper(Protocol):
    """Optional: a provider whose groups keep the name of a machine that is gone, and create another machine with it."""

    def release(self, provider_ids: Sequence[str]) -> None:
        """Prevents new machines with these names, if launches of this cluster chose them. A name that has a machine is
        left alone until that machine is ended."""

    def kept(self, provider_ids: Sequence[str]) -> tuple[str, ...]:
        """Those that `release` would change something about. Reads only."""


class KubernetesObjects(Protocol):
    """Access to cluster-scoped objects as JSON dicts, for providers that need Kubernetes. `app` passes an
    implementation.

    `resource` is (apiVersion, plural), such as ("v1", "nodes") or ("resource.k8s.io/v1", "resourceslices").
    """

    def get(self, resource: tuple[str, str], name: str) -> Mapping[str, Any] | None:
        """The object, or None."""

    def list(self, resource: tuple[str, str], *, labels: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """All objects that carry these labels, ordered by name."""

    def create(self, resource: tuple[str, str], manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Create it; as it was created, or None when an object of this name exists already."""

    def delete(self, resource: tuple[str, str], name: str) -> bool:
        """Deletes it; False if it does not exist."""
