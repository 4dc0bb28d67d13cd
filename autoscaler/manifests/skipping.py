"""The option that leaves objects out, in next steps: it helps only if other objects make pods."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from instance_catalog.dataclass import replace
from instance_catalog.diagnostic import Diagnostic

SKIP: Final = "--skip-unknown"
OR_SKIP: Final = f", or pass {SKIP}"
SKIP_PLANS: Final = f"; {SKIP} plans for the rest of the files"
_OFFER: Final = re.compile(rf"(?:{OR_SKIP}|{SKIP_PLANS})[^,;]*")


def without_offer(step: str) -> str:
    """The next step without the option."""
    return _OFFER.sub("", step)


def without_offers(problems: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The problems with next steps that do not name the option."""
    for problem in problems:
        step = without_offer(problem.next_step)
        yield problem if step == problem.next_step else replace(problem, next_step=step)
