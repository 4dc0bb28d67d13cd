"""The account and region of this process's calls, and the machines found there by id."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from providers.aws.describe import looked_up
from providers.aws.errors import translated
from providers.aws.session import Aws
from providers.contract import Clock, Instance
from providers.errors import ProviderError

# After STS could not be reached it is not called for this time: each time-out delays a reconcile.
_AGAIN: Final = timedelta(minutes=10)


class Place:
    """The account and region. STS is asked once, because renewed credentials never belong to another account. The call
    needs no policy; if it fails the account is unknown."""

    def __init__(self, aws: Aws, clock: Clock) -> None:
        self._aws = aws
        self._clock = clock
        self._account = ""
        self._asks_at = clock.monotonic()

    def __str__(self) -> str:
        if not self._account and self._clock.monotonic() >= self._asks_at:
            self._asks_at = self._clock.monotonic() + _AGAIN.total_seconds()
            try:
                with translated("GetCallerIdentity"):
                    self._account = str(self._aws.sts.get_caller_identity().get("Account", ""))
            except ProviderError:
                self._account = ""
        return f"{self._account}/{self._aws.region}"


class Placed:
    """The methods about place and machines that both AWS providers share."""

    _aws: Aws
    _place: Place

    def look_up(self, provider_ids: Sequence[str]) -> Mapping[str, Instance]:
        """Machines by their ids, with or without the cluster's tags."""
        return looked_up(self._aws, provider_ids)

    def place(self) -> str:
        """The account and region of the credentials."""
        return str(self._place)
