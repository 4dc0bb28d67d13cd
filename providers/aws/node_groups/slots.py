"""Which launch a group serves, written on the group before it does: the memory of launches whose machines get no tags.

Text and values only; node_groups/provider.py reads and writes the tag.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from instance_catalog.kubernetes import labels
from providers.errors import BusyError

SLOT_TAG: Final = labels.RESIZING
# What an open slot is called: of a launch by desired capacity, and by LaunchInstances.
_STATES: Final = ("open", "launching")


@dataclass(frozen=True, slots=True)
class Slot:
    """Which token changes a group's size and to what; the text of a tag on the group.

    `since` is when that began by our clock, `after` the newest scaling activity of that moment ("-": there was none).
    `by_instances`: it is LaunchInstances that changes the size, so that `size` and `after` say nothing.
    """

    token: str
    size: int
    since: datetime
    after: str
    open: bool = True
    by_instances: bool = False

    @property
    def text(self) -> str:
        """As written on the group."""
        state = _STATES[self.by_instances] if self.open else "closed"
        return f"{self.token} {self.size} {self.since.isoformat()} {self.after} {state}"


def slot_of(tags: Mapping[str, str]) -> Slot | None:
    """The slot among the tags of a group; None without one, or where the tag holds something else."""
    parts = tags.get(SLOT_TAG, "").split()
    if len(parts) != 5:
        return None
    try:
        size, since = int(parts[1]), datetime.fromisoformat(parts[2])
    except ValueError:  # anybody may tag a group
        return None
    if since.tzinfo is None:
        return None
    return Slot(parts[0], size, since, parts[3], parts[4] in _STATES, by_instances=parts[4] == _STATES[True])


def busy_for_another(group: str) -> BusyError:
    """Why a group cannot be changed while its slot is open for another launch."""
    step = f"Nothing to do while that launch runs; if none runs, remove the tag {SLOT_TAG} from the group."
    return BusyError(f"group {group} is being resized for another launch", next_step=step)
