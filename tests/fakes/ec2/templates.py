"""Launch templates as they are stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tests.fakes.ec2.errors import ApiError


@dataclass
class LaunchTemplate:
    """A template and its versions, numbered from 1."""

    id: str
    name: str
    created_at: datetime
    versions: dict[int, tuple[Mapping[str, Any], str, datetime]] = field(default_factory=dict)
    default: int = 1
    tags: dict[str, str] = field(default_factory=dict)

    def version(self, asked: str) -> int:
        """The number of a version: a number, $Latest or $Default ("" is the default)."""
        number = {"$Latest": max(self.versions), "$Default": self.default, "": self.default}.get(asked)
        if number is None:
            number = int(asked) if asked.isdigit() else 0
        if number not in self.versions:
            text = f"Could not find the specified version {asked} for the launch template with ID {self.id}."
            raise ApiError("InvalidLaunchTemplateId.VersionNotFound", text)
        return number

    def data(self, asked: str) -> Mapping[str, Any]:
        """The launch parameters of a version."""
        return self.versions[self.version(asked)][0]
