"""Why a node could not be probed, and what a person does about it."""

from __future__ import annotations


class ProbeError(Exception):
    """`next_step` says what to install, start or allow."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step
