"""Asks the API server for the rights of a user; the request changes nothing."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.checks.rights import Right
from autoscaler.cluster.api import KubernetesApi
from autoscaler.cluster.resources import ACCESS_REVIEWS, OWN_ACCESS_REVIEWS


def missing_rights(api: KubernetesApi, rights: Iterable[Right], *, user: str = "") -> tuple[Right, ...]:
    """Those of the rights that `user` lacks; "" is the client itself. Asking about other users needs a right of its
    own."""
    return tuple(right for right in dict.fromkeys(rights) if not _has(api, right, user))


def service_account(name: str) -> str:
    """The user that a service account "namespace/name" is."""
    namespace, _, account = name.partition("/")
    return f"system:serviceaccount:{namespace}:{account}"


def _has(api: KubernetesApi, right: Right, user: str) -> bool:
    resource, _, subresource = right.resource.partition("/")
    attributes = {"group": right.group, "resource": resource, "subresource": subresource, "verb": right.verb}
    attributes |= {"name": right.name, "namespace": right.namespace}
    spec = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
    if not user:
        answer = api.create(OWN_ACCESS_REVIEWS, {"spec": spec})
    else:
        answer = api.create(ACCESS_REVIEWS, {"spec": {**spec, "user": user, "groups": _groups(user)}})
    return bool(answer.get("status", {}).get("allowed"))


def _groups(account: str) -> list[str]:
    """The groups of every service account (apiserver serviceaccount/util.go)."""
    namespace = account.split(":")[2]
    return ["system:serviceaccounts", f"system:serviceaccounts:{namespace}", "system:authenticated"]
