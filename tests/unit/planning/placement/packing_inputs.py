"""What the packing works on, for the pending pods of a snapshot."""

from __future__ import annotations

from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.bundles import bundles_of, classes_of
from autoscaler.planning.demand.demand import pending, pending_pods
from autoscaler.planning.demand.scope import Scopes
from autoscaler.planning.placement.packing_input import PackingInput, build_packing_input
from autoscaler.planning.policy import Policy
from autoscaler.planning.work import Ledger
from autoscaler.scheduling.world import World
from instance_catalog.types.catalog import Catalog
from tests.builders import NOW


def packing_input(state: Snapshot, catalog: Catalog) -> PackingInput:
    """As the planner makes it, with the default policy."""
    world, policy = World.of(state), Policy()
    scopes = Scopes.of(state, pending_pods(state), world.extended_resources)
    classes = classes_of(bundles_of(pending(state, scopes).wanted, state.claims), state)
    ledger = Ledger.of(classes, policy)
    return build_packing_input(classes, world, state, catalog, scopes=scopes, policy=policy, now=NOW, ledger=ledger)
