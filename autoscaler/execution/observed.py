"""The observations of a reconcile before it acts, and the actions that it withheld because a pool only observes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

from autoscaler.execution.drain import occupants
from autoscaler.lifecycle.ownership import OwnNodes
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from instance_catalog.dataclass import dataclass, field
from providers.contract import Instance


@dataclass(frozen=True)
class Observed:
    """The observations of a reconcile: the cluster, and the machines of each provider that answered, by provider id."""

    snapshot: Snapshot
    machines: Mapping[str, Mapping[str, Instance]]
    found_empty: set[str] = field(default_factory=set)  # slices whose hosts had no pods, read from the API server

    @cached_property
    def own(self) -> OwnNodes:
        """The Nodes, by the ProvisionedNodes that they belong to."""
        return OwnNodes(self.snapshot.nodes)

    @cached_property
    def occupants(self) -> Mapping[str, Sequence[Pod]]:
        """The pods that keep a node from being empty, by its name."""
        return occupants(self.snapshot.pods)


@dataclass(frozen=True, slots=True)
class Withheld:
    """An action that is withheld because its pool observes. `pool` is "" if no pool acts."""

    kind: str
    name: str
    uid: str
    pool: str
    would: str
