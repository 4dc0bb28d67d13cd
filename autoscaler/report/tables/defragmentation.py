"""The fragmentation of free devices, and the moves that would make room, as lines and as data."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from autoscaler.model.plan import Fragmentation, Plan, RoomMade
from autoscaler.report.words import counted, few, money

_MOVES: Final = 8  # named by one line


def fragmentation_lines(plan: Plan) -> Iterator[str]:
    """A line for each accelerator of which some are free."""
    for found in plan.fragmentation:
        if found.free:
            yield f"fragmentation: {found.accelerator}: {_how_much(found)}"


def _how_much(found: Fragmentation) -> str:
    free = f"{number(found.free)} free {'device' if found.free == 1 else 'devices'}"
    unknown = f"; {counted(found.undecided, 'kind')} of pods took too much work" if found.undecided else ""
    if not found.kinds:
        return f"{free}{unknown or ', and no pod of this cluster asks for them'}"
    share = f"{100 * float(found.share):.0f}%"
    return (
        f"{number(found.unusable)} of {free} ({share}) cannot serve the pods of this cluster that ask for them{unknown}"
    )


def room_lines(plan: Plan, pods: frozenset[str] | None = None) -> Iterator[str]:
    """A line for each proposal; with `pods`, only for proposals that serve one of them."""
    for found in plan.room:
        if pods is None or pods.intersection(found.pods):
            yield _proposal(found)


def _proposal(found: RoomMade) -> str:
    moves = few([f"{move.pod} from {move.source} to {move.target}" for move in found.moves], _MOVES)
    devices = few([f"{counted(count, 'device')} on {node}" for node, count in sorted(found.devices.items())], _MOVES)
    saved = "" if found.usd_per_hour is None else f", which saves {money(found.usd_per_hour)} $/h"
    return f"moving {moves} makes room for {few(found.pods)}: {devices}{saved}"


def number(amount: Fraction) -> str:
    """A number of devices, with one digit if it is not whole."""
    return f"{float(amount):.1f}".removesuffix(".0")


def fragmentation_data(plan: Plan) -> list[dict[str, Any]]:
    """The value of `summary.fragmentation`: numbers of devices, and the share in percent."""
    return [
        {
            "accelerator": found.accelerator,
            "devices": found.devices,
            "free": round(float(found.free), 3),
            "unusable": round(float(found.unusable), 3),
            "percent": round(100 * float(found.share), 1),
            "kindsOfPods": found.kinds,
            **({"undecidedKinds": found.undecided} if found.undecided else {}),
        }
        for found in plan.fragmentation
    ]


def room_data(plan: Plan, price: Callable[[Decimal], str | None]) -> list[dict[str, Any]]:
    """The value of `room[]`; `price` writes dollars."""
    return [
        {
            "pods": list(found.pods),
            "moves": [{"pod": move.pod, "from": move.source, "to": move.target} for move in found.moves],
            "devices": dict(sorted(found.devices.items())),
            **({} if found.usd_per_hour is None else {"usdPerHour": price(found.usd_per_hour)}),
        }
        for found in plan.room
    ]
