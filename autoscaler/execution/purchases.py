"""Buys a block once: the intent is in a file before the call, and is read before any repetition.

A purchase cannot be undone and has no token. So each carries a mark that follows from the offer alone: the file has the
attempts, and the market the reservations with the mark.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final

from autoscaler.errors import BadInputError
from instance_catalog.dataclass import dataclass, fields, replace
from providers.contract import Clock, Reservation, ReservationState
from providers.errors import ProviderError, UncertainError
from providers.market import CapacityMarket, CapacityOffer, PriceCeilingError

# So long a purchase whose outcome is unknown may still turn up among the reservations.
SETTLES: Final = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Intent:
    """A line of the journal. `outcome` is "" until it is known, then the ids of the reservations, or the failure."""

    mark: str
    offer: str
    price: str
    at: str
    outcome: str = ""


class PurchaseJournal:
    """A file with one JSON object in each line; the last one of a mark counts."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def last(self, mark: str) -> Intent | None:
        """The latest entry of a mark. Raises BadInputError if the file cannot be read."""
        found = None
        try:
            lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
            for line in lines:
                entry: Mapping[str, str] = json.loads(line)
                found = Intent(**entry) if entry["mark"] == mark else found
        except (OSError, ValueError, TypeError, KeyError) as error:
            step = "repair or move the file; without it, look for the purchase in the EC2 console before buying again"
            raise BadInputError(f"the journal {self.path} cannot be read: {error}", next_step=step) from error
        return found

    def write(self, intent: Intent) -> None:
        """Append a line, on disk before this returns. Raises BadInputError."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({field.name: getattr(intent, field.name) for field in fields(intent)}) + "\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            step = "give a path that can be written with --journal: nothing is bought without one"
            raise BadInputError(f"the journal {self.path} cannot be written: {error}", next_step=step) from error


def mark_of(offer: str) -> str:
    return hashlib.sha256(offer.encode()).hexdigest()[:32]


def yielded(market: CapacityMarket, journal: PurchaseJournal, offer: str, *, clock: Clock) -> tuple[Reservation, ...]:
    """The reservations from an earlier purchase of this offer; () if it was not bought, and may be.

    Raises BadInputError while it is unknown whether it was bought, and if all its reservations have ended.
    """
    mark = mark_of(offer)
    known, found = journal.last(mark), market.bought(mark)
    if found:
        if known is not None and not known.outcome:
            journal.write(_ended(known, found))
        _refuse_lost(offer, found)
        return found
    if known is not None and not known.outcome:
        waited = clock.now() - datetime.fromisoformat(known.at)
        if waited < SETTLES:
            raise BadInputError(
                f"buying {offer} was tried {int(waited.total_seconds())} s ago, and its outcome is not known",
                next_step=f"ask again in {int((SETTLES - waited).total_seconds()) + 1} s: it may still turn up",
            )
    return ()


def purchase(
    market: CapacityMarket, journal: PurchaseJournal, offer: CapacityOffer, *, ceiling: Decimal, clock: Clock
) -> tuple[Reservation, ...]:
    """Buys the offer, unless it was bought or tried already. Returns its reservations.

    Raises BadInputError if a person has to check first, ProviderErrors as the market does. An unknown result stays open
    in the journal.
    """
    found = yielded(market, journal, offer.id, clock=clock)
    if found:
        return found
    mark = mark_of(offer.id)
    intent = Intent(mark, offer.id, str(offer.price), clock.now().isoformat())
    journal.write(intent)
    try:
        bought = market.buy(offer, mark=mark, ceiling=ceiling)
    except UncertainError:
        raise
    except (ProviderError, PriceCeilingError) as error:
        journal.write(replace(intent, outcome=f"not bought: {error}"))
        raise
    journal.write(_ended(intent, bought))
    return bought


def _ended(intent: Intent, bought: Iterable[Reservation]) -> Intent:
    return replace(intent, outcome=" ".join(one.id for one in bought))


def _refuse_lost(offer: str, found: Sequence[Reservation]) -> None:
    """Raises BadInputError if all reservations have ended: they are neither held nor bought once more."""
    if all(one.state is ReservationState.ENDED for one in found):
        what = ", ".join(f"{one.id} ({one.note or 'it has ended'})" for one in found)
        step = "choose another offer: `foreslice blocks find` lists what there is now"
        raise BadInputError(f"{offer} was bought as {what}", next_step=step)
