"""Claims as their controller leaves them, and their devices: computed again only for claims that have changed."""

from __future__ import annotations

from collections.abc import Mapping

from autoscaler.dra.claims.finished_consumers import without_finished_consumers
from autoscaler.dra.inventory.allocated import AllocatedState
from autoscaler.dra.inventory.kept_use import UseMemory, changed_keys
from autoscaler.model.gang import Gang
from autoscaler.model.resource_claim import ResourceClaim
from instance_catalog.dataclass import dataclass, field


@dataclass(slots=True)
class ClaimMemory:
    """The claims of the previous snapshot. They are immutable: the same object loses the same consumers to the same
    finished pods and groups, and holds the same devices.

    It belongs to one series of plans, and no two threads use it at once.
    """

    _claims: Mapping[str, ResourceClaim] = field(default_factory=dict)  # as in the snapshot
    _done: frozenset[str] = frozenset()
    _groups: Mapping[str, Gang] = field(default_factory=dict)
    _lost: Mapping[str, ResourceClaim] = field(default_factory=dict)  # those that lost consumers, without them
    _use: UseMemory = field(default_factory=UseMemory)

    def of(
        self, claims: Mapping[str, ResourceClaim], done: frozenset[str], pod_groups: Mapping[str, Gang]
    ) -> tuple[Mapping[str, ResourceClaim], AllocatedState]:
        """The claims without finished consumers (see there for `done` and `pod_groups`), and their devices in use.

        `claims` by namespace/name, a mapping that never changes.
        """
        listed = dict(claims.items())  # faster than a FrozenMap
        changed = changed_keys(self._claims, listed)
        same = done == self._done and pod_groups == self._groups
        asked = {key: listed[key] for key in changed if key in listed} if same else listed
        lost = {key: claim for key, claim in self._lost.items() if same and key not in changed}
        lost |= without_finished_consumers(asked, done, pod_groups)
        found = {**listed, **lost}
        allocated = self._use.of(found, changed | changed_keys(self._lost, lost))
        self._claims, self._done, self._groups, self._lost = listed, done, pod_groups, lost
        return found, allocated
