"""What a launch that is asked for again is compared by: its parameters, in short."""

from __future__ import annotations

import hashlib
import json

from providers.contract import LaunchRequest


def fingerprint(request: LaunchRequest) -> str:
    """Equal for equal requests, whatever their template says by now."""
    parameters = (
        request.nodes,
        [str(offering) for offering in request.offerings],
        sorted(request.tags.items()),
        request.minimum,
        (request.template.kind, request.template.name),
    )
    return hashlib.sha256(json.dumps(parameters).encode()).hexdigest()[:40]
