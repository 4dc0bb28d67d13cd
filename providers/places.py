"""Places: the account (or project) and the region that a provider calls, as account/region (Provider.place)."""

from __future__ import annotations


def same_place(one: str, other: str) -> bool:
    """True if two answers of Provider.place may be the same place: an unknown part matches everything."""
    (account, _, region), (other_account, _, other_region) = one.partition("/"), other.partition("/")
    return all("" in pair or pair[0] == pair[1] for pair in ((account, other_account), (region, other_region)))
