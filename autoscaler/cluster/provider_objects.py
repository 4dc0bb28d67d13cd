"""The Kubernetes access of providers (providers.contract.KubernetesObjects), over the KubernetesApi.

Its errors are converted to those of providers, so that callers of a provider see one tree. If the API server does not
answer, the result is unknown: AmbiguousError, which a repetition with the same token resolves.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from autoscaler.cluster.api import (
    AlreadyExistsError,
    ApiError,
    ForbiddenError,
    InvalidError,
    KubernetesApi,
    NotFoundError,
    list_all,
)
from autoscaler.cluster.resources import ALL
from providers.errors import AmbiguousError, PermissionDeniedError, TemplateError

_RESOURCES: Final = {(resource.api_version, resource.plural): resource for resource in ALL}


class ProviderObjects:
    """Cluster-scoped objects as JSON, with the types of providers."""

    def __init__(self, api: KubernetesApi) -> None:
        self._api = api

    def get(self, resource: tuple[str, str], name: str) -> Mapping[str, Any] | None:
        with _translated():
            try:
                return self._api.get(_RESOURCES[resource], name)
            except NotFoundError:
                return None

    def list(self, resource: tuple[str, str], *, labels: Mapping[str, str]) -> Sequence[Mapping[str, Any]]:
        """All objects that carry these labels, ordered by name."""
        with _translated():
            return list_all(self._api, _RESOURCES[resource], labels=labels)[0]

    def create(self, resource: tuple[str, str], manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
        """Create it; as it was created, or None when an object of this name exists already."""
        with _translated():
            try:
                return self._api.create(_RESOURCES[resource], dict(manifest))
            except AlreadyExistsError:
                return None

    def delete(self, resource: tuple[str, str], name: str) -> bool:
        """Deletes it; False if it does not exist."""
        with _translated():
            try:
                self._api.delete(_RESOURCES[resource], name)
            except NotFoundError:
                return False
            return True


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ForbiddenError as error:
        raise PermissionDeniedError(error.message, next_step=error.next_step) from error
    except InvalidError as error:
        raise TemplateError(error.message, next_step=error.next_step) from error
    except ApiError as error:
        raise AmbiguousError(error.message, next_step=error.next_step) from error
