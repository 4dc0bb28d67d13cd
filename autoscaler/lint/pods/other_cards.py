"""GPUs of other clouds: which one a machine has whose name does not say it, and the memory of those that the catalog
lacks."""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from instance_catalog.dataclass import dataclass
from instance_catalog.types.instance_type import Accelerator

# Oracle: "Compute Shapes" of its documentation (copy of 2025-02: jacklty/oci_doc_crawler 8e7bbd7, computeshapes.md); B4
# and the VMs of A100: the shapes in oracle-quickstart/oci-hpc-oke, of which public tables of shapes say A100-40G; GM4
# is an earlier name of A100-v2. RTXPRO: public code that lists the shapes says 8 x RTX PRO 6000 (2026-11). Azure:
# learn.microsoft.com, the pages on the series NDasrA100v4, NDm A100 v4, NC A100 v4, NDv2 and NCv3 (all read 2026-11).
_MACHINES: Final = {
    r"BM\.GPU4\.|BM\.GPU\.B4\.|VM\.GPU\.A100\.B?40G\.": "gpu a100 40gb",
    r"BM\.GPU\.(A100-v2|GM4)\.": "gpu a100 80gb",
    r"(BM|VM)\.GPU3\.": "gpu v100 16gb",
    r"(BM|VM)\.GPU2\.": "gpu p100",
    r"BM\.GPU\.RTXPRO\.": "gpu rtx pro 6000",
    r"standard_nd96asr_(a100_)?v4": "gpu a100 40gb",
    r"standard_nd96ams?r_a100_v4|standard_nc[0-9]+ads_a100_v4": "gpu a100 80gb",
    r"standard_nd40rs_v2": "gpu v100 32gb",
    r"standard_nc[0-9]+r?s_v3": "gpu v100 16gb",
}


@dataclass(frozen=True, slots=True)
class OtherCard:
    """A GPU of NVIDIA that no machine of the catalog has: its memory in GB and its compute capability."""

    memory: int
    capability: tuple[int, int]


# By the words of its name. Memory: NVIDIA's data sheets, and coreweave/kubernetes-cloud, node-types.md, for those of
# CoreWeave; NVIDIA/mig-parted and data/mig for those with MIG. Capability: developer.nvidia.com/cuda-gpus (2026-11).
_CARDS: Final = {
    ("a2",): OtherCard(16, (8, 6)),
    ("a10",): OtherCard(24, (8, 6)),
    ("a16",): OtherCard(16, (8, 6)),
    ("a30",): OtherCard(24, (8, 0)),
    ("a40",): OtherCard(48, (8, 6)),
    ("a4000",): OtherCard(16, (8, 6)),
    ("a5000",): OtherCard(24, (8, 6)),
    ("a6000",): OtherCard(48, (8, 6)),
    ("a800",): OtherCard(80, (8, 0)),
    ("h800",): OtherCard(80, (9, 0)),
    ("h20",): OtherCard(96, (9, 0)),
    ("gh200",): OtherCard(96, (9, 0)),
    ("l20",): OtherCard(48, (8, 9)),
    ("l40",): OtherCard(48, (8, 9)),
    ("rtx", "4000"): OtherCard(8, (7, 5)),
    ("rtx", "5000"): OtherCard(16, (7, 5)),
    ("rtx", "3090"): OtherCard(24, (8, 6)),
    ("rtx", "4090"): OtherCard(24, (8, 9)),
}
_LATER: Final = "ada"  # of "RTX 5000 Ada", another card than RTX 5000
_LIKE: Final = 1.05  # cards of one nominal size report memories that differ by less


def card_of_machine(name: str) -> str:
    """The GPU of another cloud's machine in words ("gpu a100 40gb") where its name names it incompletely or not; else
    the name."""
    return next((card for form, card in _MACHINES.items() if re.match(form, name, re.IGNORECASE)), name)


def other_card(words: Collection[str]) -> OtherCard | None:
    """The GPU that the words of a label's value name; None for those that are not known."""
    named = (card for name, card in _CARDS.items() if _LATER not in words and all(word in words for word in name))
    return next(named, None)


def replacing(card: OtherCard, cards: Collection[Accelerator]) -> list[Accelerator]:
    """Of the `cards`, those that come nearest: of those with as much memory and as high a capability, those with the
    least memory."""
    fitting = {
        one: memory
        for one in cards
        if one.vendor == "NVIDIA" and _capability(one) >= card.capability
        if (memory := _memory(one)) >= card.memory * 10**9
    }
    least = min(fitting.values(), default=0)
    return [one for one, memory in fitting.items() if memory <= least * _LIKE]


def _capability(card: Accelerator) -> tuple[int, ...]:
    return tuple(map(int, (card.cuda_compute_capability or "0.0").split(".")[:2]))


def least_memory(card: Accelerator) -> int:
    """Bytes, the least that it may have; 0 if that is not known."""
    known = card.memory or (card.memory_bounds[0] if card.memory_bounds else None) or card.api_memory
    return known.int64_value() if known is not None else 0


def _memory(card: Accelerator) -> int:
    """Bytes, the most that it may have; 0 if that is not known."""
    known = card.memory or (card.memory_bounds[1] if card.memory_bounds else None) or card.api_memory
    return known.int64_value() if known is not None else 0
