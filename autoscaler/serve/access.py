"""Authenticates and authorises readers with TokenReview and SubjectAccessReview, so that no new rights are needed.

A user who may `get` a pod may read why it waits; one who may `list` pods of a namespace, or of all, may read the status
page with those pods. Each request is reviewed by the API server: a removed right has effect at once.
"""

from __future__ import annotations

import base64
import binascii

from autoscaler.cluster.api import ApiError, KubernetesApi, Object
from autoscaler.cluster.resources import ACCESS_REVIEWS, TOKEN_REVIEWS
from autoscaler.errors import ForesliceError
from instance_catalog.dataclass import dataclass, field

_LONGEST_TOKEN = 16_384


class UnauthenticatedError(ForesliceError):
    """The user is unknown."""

    reason = "Unauthenticated"


class UnauthorizedError(ForesliceError):
    """The user may not read this."""

    reason = "Unauthorized"


class UndecidedError(ForesliceError):
    """The API server could not be asked."""

    reason = "Undecided"


@dataclass(frozen=True, slots=True)
class User:
    """The user of a token, from the API server's review."""

    name: str
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RequestAuthorizer:
    """Reviews tokens and rights at the API server, with the rights of system:auth-delegator."""

    api: KubernetesApi

    def user(self, authorization: str) -> User:
        """The sender of this Authorization header. Raises UnauthenticatedError or UndecidedError."""
        token = bearer_token(authorization)
        status = self._asked({"spec": {"token": token}}, about_token=True)
        if not status.get("authenticated"):
            raise UnauthenticatedError(
                "the API server does not know this token: it expired, or is another cluster's",
                next_step="get a new one: kubectl create token <service account>",
            )
        user = status.get("user") or {}
        return User(
            user.get("username", ""), user.get("uid", ""), tuple(user.get("groups") or ()), user.get("extra") or {}
        )

    def require(self, user: User, verb: str, *, namespace: str = "", name: str = "") -> None:
        """Checks that the user may do this with pods. Raises UnauthorizedError or UndecidedError."""
        attributes = {"verb": verb, "resource": "pods", "version": "v1", "namespace": namespace, "name": name}
        spec: Object = {"resourceAttributes": {key: value for key, value in attributes.items() if value}}
        spec |= {"user": user.name, "uid": user.uid, "groups": list(user.groups), "extra": user.extra}
        if not self._asked({"spec": spec}).get("allowed"):
            what = f"pod {namespace}/{name}" if name else f"pods in namespace {namespace}" if namespace else "pods"
            where = f" -n {namespace}" if namespace else " -A"
            raise UnauthorizedError(
                f"{user.name} may not {verb} {what}",
                next_step=f"ask for that right (kubectl auth can-i {verb} pods{where} shows it)"
                + ("" if namespace else ", or look at one namespace: /?namespace=<name>"),
            )

    def _asked(self, review: Object, *, about_token: bool = False) -> Object:
        try:
            answer = self.api.create(TOKEN_REVIEWS if about_token else ACCESS_REVIEWS, review)
        except ApiError as error:
            raise UndecidedError(
                f"the API server did not say whether this is allowed: {type(error).__name__}",
                next_step="try again; if it stays, bind Foreslice's service account to system:auth-delegator",
            ) from error
        status: Object = answer.get("status") or {}
        return status


def bearer_token(authorization: str) -> str:
    """The token of a header, which is `Bearer TOKEN`, or a browser's Basic header whose password is the token."""
    scheme, _, credentials = authorization.partition(" ")
    token = credentials.strip()
    if scheme.lower() == "basic":
        try:
            token = base64.b64decode(token, validate=True).decode("utf-8").partition(":")[2].strip()
        except (binascii.Error, UnicodeDecodeError):
            token = ""
    if scheme.lower() not in ("bearer", "basic") or not token or len(token) > _LONGEST_TOKEN:
        raise UnauthenticatedError(
            "this page needs a token of this cluster",
            next_step="send `Authorization: Bearer $(kubectl create token <service account>)`; in a browser, give the "
            "token as the password, with any user name",
        )
    return token
