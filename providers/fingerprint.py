"""A short fingerprint of a launch's parameters, to compare a repeated launch with the first."""

from __future__ import annotations

import hashlib
import json

from providers.contract import LaunchRequest


def fingerprint(request: LaunchRequest) -> str:
    """Equal for equal requests, independent of the current content of their template."""
    parameters = (
        request.nodes,
        [str(offering) for offering in request.offerings],
        sorted(request.tags.items()),
        request.minimum,
        (request.template.kind, request.template.name),
    )
    return hashlib.sha256(json.dumps(parameters).encode()).hexdigest()[:40]
