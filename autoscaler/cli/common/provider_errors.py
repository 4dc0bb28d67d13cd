"""A provider's errors as commands tell them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from autoscaler.errors import BadInputError
from providers.errors import ProviderError


@contextmanager
def told() -> Iterator[None]:
    """Raise ProviderErrors as BadInputErrors, which the command group prints with their next step."""
    try:
        yield
    except ProviderError as error:
        raise BadInputError(error.message, next_step=error.next_step) from error
