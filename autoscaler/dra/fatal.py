"""The one exception of this package: what aborts kube-scheduler's attempt. `allocate` turns it into a value."""

from __future__ import annotations

from autoscaler.model.reason import Code, Fact, Reason


class FatalError(Exception):
    """Upstream would return an error here, whatever else might fit."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(reason)
        self.reason = reason

    @staticmethod
    def of(code: Code, subject: str, **detail: Fact) -> FatalError:
        """Shorthand for FatalError(Reason.of(...))."""
        return FatalError(Reason.of(code, subject, **detail))
