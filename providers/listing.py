"""A cloud's offers, read page by page, so that a sync can be throttled, shown, interrupted and continued.

A cloud lists the steps of its listing and answers one page of one step at a time; `fetch` does the rest for all clouds.
It depends neither on the catalog's files nor on any cloud.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, Protocol, TypeAlias

from instance_catalog.dataclass import dataclass, field, replace
from instance_catalog.frozen_map import FrozenMap
from instance_catalog.sources.sync import CloudListing
from providers.contract import Clock
from providers.errors import ThrottledError, UncertainError

Row: TypeAlias = Mapping[str, Any]
Rows: TypeAlias = Mapping[str, Sequence[Row]]

# Page tokens do not live long, and a listing of two days' halves is of no day.
LONGEST_PAUSE: Final = timedelta(hours=1)
# Below the refill of the slowest bucket that a listing draws from: 10 unfiltered describe calls a second (EC2).
_SECONDS_BETWEEN_CALLS: Final = 0.1
_MOST_FAILURES: Final = 6


@dataclass(frozen=True, slots=True)
class ListingPage:
    """Rows, reduced to the needed fields, as JSON values; `next_page` "" after the last one."""

    rows: tuple[Row, ...]
    next_page: str = ""


class Listing(Protocol):
    """Optional: a provider that can list its cloud's offers.

    `cloud` is the catalog's name of it, `scope` what is listed (a region, a project): "aws", "us-east-1". `steps` are
    in order; a later one may depend on the rows of those before.
    """

    @property
    def cloud(self) -> str:
        """aws, gcp, ..."""

    @property
    def scope(self) -> str:
        """The region or project of one listing."""

    @property
    def steps(self) -> tuple[str, ...]:
        """The names of the steps."""

    def page(self, step: str, token: str, so_far: Rows) -> ListingPage:
        """One page of a step, `token` "" for the first; at most one call of the cloud. Raises ProviderErrors."""

    def interpreted(self, rows: Rows, *, date: str) -> CloudListing:
        """Converts all rows. Makes no call."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A listing in progress: the rows of each step so far, the token of the next page, and the finished steps."""

    cloud: str
    scope: str
    began_at: datetime
    rows: FrozenMap[str, tuple[Row, ...]] = field(default_factory=FrozenMap)
    token: str = ""
    done: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        rows = {step: list(found) for step, found in self.rows.items()}
        parts = {"cloud": self.cloud, "scope": self.scope, "beganAt": self.began_at.isoformat()}
        return {**parts, "rows": rows, "token": self.token, "done": list(self.done)}

    @staticmethod
    def of_json(data: Mapping[str, Any]) -> Progress:
        """Reads the output of `as_json`. Raises KeyError, TypeError or ValueError for anything else."""
        rows = FrozenMap({str(step): tuple(found) for step, found in dict(data["rows"]).items()})
        began = datetime.fromisoformat(data["beganAt"])
        return Progress(data["cloud"], data["scope"], began, rows, data["token"], tuple(data["done"]))

    def continues(self, listing: Listing, now: datetime) -> bool:
        """True if it is of this listing, and recent enough to continue."""
        same = (self.cloud, self.scope) == (listing.cloud, listing.scope)
        return same and now - LONGEST_PAUSE < self.began_at <= now

    def with_page(self, step: str, page: ListingPage) -> Progress:
        rows = self.rows.with_items({step: (*self.rows.get(step, ()), *page.rows)})
        done = self.done if page.next_page else (*self.done, step)
        return replace(self, rows=rows, token=page.next_page, done=done)


def fetch(
    listing: Listing,
    clock: Clock,
    *,
    progress: Progress | None = None,
    on_page: Callable[[str, Progress], None] = lambda step, progress: None,
) -> Progress:
    """All pages of all steps, after those that `progress` has. `on_page` is called with every page, to show or save it.

    Calls are spaced; throttled ones and those without an answer are repeated some times, with growing pauses. Raises
    the ProviderError that does not end in that time; the last Progress passed to `on_page` can be continued.
    """
    now = clock.now()
    if progress is None or not progress.continues(listing, now):
        progress = Progress(listing.cloud, listing.scope, now)
    for step in listing.steps:
        while step not in progress.done:
            page = _page(listing, clock, step, progress)
            progress = progress.with_page(step, page)
            on_page(step, progress)
            clock.wait(_SECONDS_BETWEEN_CALLS)
    return progress


def _page(listing: Listing, clock: Clock, step: str, progress: Progress) -> ListingPage:
    failures = 0
    while True:
        try:
            return listing.page(step, progress.token, progress.rows)
        except (ThrottledError, UncertainError) as error:
            failures += 1
            if failures == _MOST_FAILURES:
                raise
            clock.wait((error.retry_after or timedelta(seconds=2**failures)).total_seconds())
