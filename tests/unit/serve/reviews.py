"""An in-memory API server that answers reviews of tokens and rights, as a real one does with its users and roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from autoscaler.cluster.api import ForbiddenError, Object
from autoscaler.cluster.resources import ACCESS_REVIEWS, TOKEN_REVIEWS, Resource
from autoscaler.simulation.api_server import ApiServer
from providers.contract import Clock


@dataclass(frozen=True, slots=True)
class Grant:
    """A right on pods: in a namespace ("" is all), of one name ("" is all)."""

    verb: str
    namespace: str = ""
    name: str = ""

    def covers(self, attributes: Mapping[str, Any]) -> bool:
        """Whether it grants what is asked for."""
        return (
            self.verb == attributes["verb"]
            and attributes["resource"] == "pods"
            and self.namespace in ("", attributes.get("namespace", ""))
            and self.name in ("", attributes.get("name", ""))
        )


@dataclass
class Users:
    """Tokens with the names they belong to, and what each may do."""

    tokens: dict[str, str] = field(default_factory=dict)
    grants: dict[str, tuple[Grant, ...]] = field(default_factory=dict)


class ReviewingServer(ApiServer):
    """Keeps the reviews it was asked, and no other trace of them."""

    def __init__(self, clock: Clock, users: Users) -> None:
        super().__init__(clock)
        self.users = users
        self.asked: list[Object] = []
        self.delegated = True

    def create(self, resource: Resource, manifest: Object) -> Object:
        if resource not in (TOKEN_REVIEWS, ACCESS_REVIEWS):
            return super().create(resource, manifest)
        if not self.delegated:
            raise ForbiddenError(f"cannot create {resource}", next_step="grant it")
        self.asked.append(manifest)
        spec = manifest["spec"]
        if resource == TOKEN_REVIEWS:
            name = self.users.tokens.get(spec["token"])
            known = {"authenticated": True, "user": {"username": name, "groups": ["system:authenticated"]}}
            return {**manifest, "status": known if name else {"error": "token not found"}}
        grants = self.users.grants.get(spec["user"], ())
        return {**manifest, "status": {"allowed": any(g.covers(spec["resourceAttributes"]) for g in grants)}}
