"""The boundary around one item of a reconcile: a failure for one pod, pool, batch or node does not stop the others.

An item that fails becomes a Trouble, which is reported as an event, a log line and a count. That holds for refusals of
the API server and of providers, and for unexpected exceptions: those are bugs, are logged with their traceback, and
concern the one item. Two things pass the boundary: lost leadership, after which nothing may be written, and whatever is
no Exception.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Final

import structlog
from pydantic import ValidationError

from autoscaler.checks.rights import Right
from autoscaler.cluster.access import missing_rights
from autoscaler.cluster.api import ApiError, ForbiddenError, KubernetesApi, UnavailableError
from autoscaler.cluster.lease import LeadershipLostError
from autoscaler.cluster.resources import NAMESPACES
from autoscaler.errors import ForesliceError
from autoscaler.model.provisioned_node import LaunchBatch, ProvisionedNode
from instance_catalog.dataclass import dataclass
from instance_catalog.kubernetes.labels import GROUP
from providers.errors import ProviderError

_LOG: Final = structlog.get_logger("foreslice.isolation")
UNEXPECTED: Final = "Unexpected"
_REPORT: Final = "report it with the log line `unexpected_error`; it is tried again, and the rest continues"
# Unanswered requests in a row after which the API server is asked whether it answers at all. Each of them may have
# taken a minute.
_SILENCE: Final = 3
# Without these rights nothing can be written: the controller was installed to observe.
_RIGHTS: Final = (
    Right(GROUP, "launchbatches", "create"),
    Right(GROUP, "launchbatches/status", "update"),
    Right(GROUP, "provisionednodes", "create"),
    Right(GROUP, "provisionednodes/status", "update"),
)


@dataclass(frozen=True, slots=True)
class Trouble:
    """An item that could not be carried out now and will be tried again, with the error.

    Not a Diagnostic, because callers need the error's type, and raise it again. `pods` are the keys of the pods that
    wait for it.
    """

    kind: str  # LaunchBatch, ProvisionedNode, CapacityPool, Pod, …; Provider for its sweep
    name: str
    error: Exception
    namespace: str = ""
    pods: tuple[str, ...] = ()

    @property
    def unexpected(self) -> bool:
        """True if it is a bug: an exception that represents no refusal."""
        return not isinstance(self.error, (ForesliceError, ProviderError, ValidationError))

    @property
    def reason(self) -> str:
        """The kind of error, as the reason of an event."""
        error = self.error
        if isinstance(error, ProviderError):
            return error.kind
        if isinstance(error, ValidationError):
            return "Invalid"
        return error.reason if isinstance(error, ForesliceError) else UNEXPECTED

    @property
    def text(self) -> str:
        """The problem, and the step that a person can take."""
        error = self.error
        if isinstance(error, ProviderError):
            return f"{error.message}\n  {error.next_step}"
        if isinstance(error, ValidationError):
            # Without the values, which may name pods of others.
            wrong = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors(include_input=False))
            return f"it does not fit its schema: {'; '.join(wrong)}\n  shorten or correct what the message names"
        if self.unexpected:
            # Its text may name anything; the log has it.
            return f"it cannot be handled: {type(error).__name__}\n  {_REPORT}"
        return str(error)


class Isolation:
    """The boundary in one part of a reconcile. May be used from several threads.

    If several requests in a row were not answered, `api` is asked for an object that always exists. If it does not
    answer that either, nothing more is attempted: each attempt could take minutes. If it does, the requests were the
    reason, as with a webhook that fails, and the others are attempted.
    """

    def __init__(self, api: KubernetesApi | None = None, *, logs: bool = True) -> None:
        """Without `api` its silence is assumed. `logs`: whether bugs are logged here; a boundary inside another one
        leaves that to the outer."""
        self._api = api
        self._lock = threading.Lock()
        self._unanswered = 0
        self._silent = False
        self._logs = logs

    def attempt(
        self, kind: str, name: str, action: Callable[[], object], *, namespace: str = "", pods: tuple[str, ...] = ()
    ) -> Trouble | None:
        """Runs the action. Returns its failure as a Trouble, or None. Raises LeadershipLostError."""
        if self._is_silent():
            step = "nothing: it is tried again in the next reconcile"
            silent = UnavailableError("the API server left the requests before this one unanswered", next_step=step)
            return Trouble(kind, name, silent, namespace, pods)
        try:
            action()
        except LeadershipLostError:
            raise
        except Exception as error:  # noqa: BLE001  # the boundary: whatever one item raises must not stop the others
            with self._lock:
                self._unanswered = self._unanswered + 1 if isinstance(error, UnavailableError) else 0
            trouble = Trouble(kind, name, error, namespace, pods)
            if trouble.unexpected and self._logs:
                _LOG.error("unexpected_error", kind=kind, name=name, namespace=namespace, exc_info=error)
            return trouble
        if self._unanswered:
            with self._lock:
                self._unanswered = 0
        return None

    def _is_silent(self) -> bool:
        if not self._unanswered and not self._silent:
            return False  # as nearly always: a lock for each of thousands of items would cost more than they do
        with self._lock:
            if self._unanswered >= _SILENCE and not self._silent:
                self._silent = self._api is None or not _answers(self._api)
                self._unanswered = 0
            return self._silent


def _answers(api: KubernetesApi) -> bool:
    try:
        api.get(NAMESPACES, "kube-system")
    except UnavailableError:
        return False
    except ApiError:
        return True
    return True


class Intents:
    """The boundary of the journal: as Isolation, for objects that an observing controller may not write.

    `refusal` is the error that prevents all writes, as of this reconcile. A 403 alone is no proof: quotas, policies and
    webhooks return it for single objects, so the API server is asked for the rights.
    """

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self.refusal: ForbiddenError | None = None

    def attempt(
        self, isolation: Isolation, item: LaunchBatch | ProvisionedNode, action: Callable[[], object]
    ) -> Trouble | None:
        """Do something with one object, unless nothing may be written anyway."""
        batch = item if isinstance(item, LaunchBatch) else None
        kind = "ProvisionedNode" if batch is None else "LaunchBatch"
        if self.refusal is not None:
            return Trouble(kind, item.name, self.refusal)
        pods = batch.pods if batch is not None else ()
        trouble = isolation.attempt(kind, item.name, action, pods=pods)
        if trouble is not None and isinstance(trouble.error, ForbiddenError) and not self._may_write():
            self.refusal = trouble.error
        return trouble

    def reported(self, troubles: Iterable[Trouble | None]) -> tuple[Trouble, ...]:
        """The troubles to report. That nothing at all may be written is a condition of the pools instead."""
        found = [trouble for trouble in troubles if trouble is not None]
        return tuple(trouble for trouble in found if trouble.error is not self.refusal)

    def _may_write(self) -> bool:
        try:
            return not missing_rights(self._api, _RIGHTS)
        except ApiError:
            return True  # unknown, so nothing is concluded for the others


def raise_first(troubles: Iterable[Trouble | None]) -> None:
    for trouble in troubles:
        if trouble is not None:
            raise trouble.error
