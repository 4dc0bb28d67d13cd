"""The errors that the fake answers with, and the one it raises at whoever writes it."""

from __future__ import annotations


class ApiError(Exception):
    """An error answer: AWS's code, a message, and the HTTP status it travels with."""

    def __init__(self, code: str, message: str, *, status: int = 400) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status


class MisspeltAnswerError(AssertionError):
    """The fake wanted to answer with something that the service model does not have: a bug of the fake."""


def unknown_to_the_fake(what: str) -> ApiError:
    """Never guess silently: what the fake does not do is an error of its own, with a status no service uses for it."""
    return ApiError("NotInTheFake", f"the fake does not know {what}; see the docstring of tests.fakes.ec2", status=501)


def shortage(instance_type: str, zone: str) -> ApiError:
    """EC2 reports an empty pool as a fault of its own (HTTP 500), which is why SDKs like to repeat it."""
    text = (
        f"We currently do not have sufficient {instance_type} capacity in the Availability Zone you requested ({zone})."
    )
    return ApiError("InsufficientInstanceCapacity", text, status=500)
