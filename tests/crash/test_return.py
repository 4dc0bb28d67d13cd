"""Pods that come while the controller is dead, to nodes that were about to go for being empty."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial

from autoscaler.cluster.api import key_of
from autoscaler.cluster.resources import PODS
from autoscaler.simulation.simulation import Simulation
from tests.crash.life import SIMULATED, START, CrashError, Dying, live, small_catalog, written
from tests.crash.plots import LAUNCH
from tests.crash.troubles import undisturbed
from tests.faults.witness import Witness

# The writes between which a node stops being wanted and is gone.
_ENDING = ("update ProvisionedNode to Draining", "patch Node spec.taints", "update ProvisionedNode to Terminating")


def test_pods_that_return_while_the_controller_is_dead_run_to_their_end() -> None:
    kinds = live(undisturbed)[1][0].kinds
    wrong = {}
    for at, kind in enumerate(kinds, start=1):
        if kind.startswith(_ENDING):
            wrong[f"{at}, {kind}"] = _die(at)
    assert len(wrong) >= len(_ENDING)
    assert {step: found for step, found in wrong.items() if found} == {}


def _die(at: int) -> list[str]:
    """A life of the first plot that ends after a write, after which two more pods come; what was wrong then."""
    simulation = Simulation(catalog=small_catalog(*LAUNCH.types), start=START)
    manifests = written(LAUNCH.manifests, SIMULATED.kind)
    simulation.add(manifests)
    witness = Witness(simulation.api, partial(SIMULATED.runs, simulation))
    witness.follows(simulation.new_loop(Dying(simulation.api, at, witness=witness)))
    with suppress(CrashError):
        simulation.run(START + LAUNCH.lasts)
    for arrival in manifests.arrivals:
        if arrival.resource == PODS:
            metadata = {**arrival.manifest["metadata"], "name": f"again-{arrival.manifest['metadata']['name']}"}
            simulation.api.create(PODS, {**arrival.manifest, "metadata": metadata})
    simulation.settle_cluster()
    witness.follows(simulation.new_loop(Dying(simulation.api, witness=witness)))
    simulation.run(simulation.clock.now() + timedelta(hours=2))
    seen = [event.object for event in simulation.api.watch(PODS, resource_version="0") if event.type != "BOOKMARK"]
    ended = {key_of(pod) for pod in seen if pod.get("status", {}).get("phase") == "Succeeded"}
    lost = sorted({key_of(pod) for pod in seen} - ended)
    return [*witness.found, *([f"invariant 1: {', '.join(lost)} did not run to the end"] if lost else [])]
