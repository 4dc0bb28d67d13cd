"""What a refusal says about a launch of several calls: nothing has been launched, or nobody knows what has been."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from providers.errors import AmbiguousError, CapacityError, GoneError, RefusedError


@contextmanager
def before_launching() -> Iterator[None]:
    """What is refused here settles the launch: its token has launched nothing, in no call."""
    try:
        yield
    except RefusedError as error:
        error.settled = True
        raise


@contextmanager
def after_launching(what: str) -> Iterator[None]:
    """What is refused here, other than what settles the launch, leaves machines that the repetition finds again."""
    try:
        yield
    except (RefusedError, GoneError, CapacityError) as error:
        if isinstance(error, RefusedError) and error.settled:
            raise
        raise AmbiguousError(f"{what}: {error.message}", code=error.code, next_step=error.next_step) from error
