"""The account of the spending guards, kept in one object of the cluster."""

from __future__ import annotations

from autoscaler.cluster.api import AlreadyExistsError, ConflictError, KubernetesApi, Object
from autoscaler.cluster.resources import SPENDINGS
from autoscaler.kube.custom.spending import CLUSTER, parse_spending, write_spending
from autoscaler.model.spending import Spending


class Account:
    """The account as last read or written, whichever is newer."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api
        self._current: Spending | None = None

    @property
    def current(self) -> Spending | None:
        """None before anything was launched."""
        return self._current

    def resume(self, seen: Spending | None) -> None:
        """Take over what was seen, unless it lags behind what was written."""
        if seen is not None and (self._current is None or _version(seen) >= _version(self._current)):
            self._current = seen

    def save(self, account: Spending) -> None:
        """Write it if it changed. A write of another client wins; the next reconcile reads it."""
        if account == self._current:
            return
        manifest = write_spending(account)
        if not account.resource_version:
            manifest["metadata"]["resourceVersion"] = self._begun(manifest)["metadata"]["resourceVersion"]
        try:
            self._current = parse_spending(self._api.update(SPENDINGS, manifest, subresource="status"))
        except ConflictError:
            self._current = parse_spending(self._api.get(SPENDINGS, CLUSTER))

    def _begun(self, manifest: Object) -> Object:
        """The object, which may have been created without a status before a restart."""
        try:
            return self._api.create(SPENDINGS, manifest)
        except AlreadyExistsError:
            return self._api.get(SPENDINGS, CLUSTER)


def _version(account: Spending) -> int:
    return int(account.resource_version or 0)
