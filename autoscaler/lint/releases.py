"""Names that drivers published in other releases: a selector on one of them was right once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from autoscaler.cel.common.outcome import CompileFailure
from autoscaler.cel.interpreter.device import split_name
from autoscaler.cel.program import compile_selector
from autoscaler.lint.advice import surprise
from autoscaler.model.resource_claim import DistinctAttribute, MatchAttribute, ResourceClaim
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.demand import claim_keys
from instance_catalog.diagnostic import Diagnostic
from instance_catalog.drivers.attribute_names import gated_attributes, removed_attributes, renamed_attributes
from instance_catalog.drivers.facts import driver_facts
from instance_catalog.drivers.profile import DriverSet, parse_driver_set
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.predict import predict, runs_on, unpredictable
from instance_catalog.types.catalog import Catalog


def names_of_releases(catalog: Catalog, profile: KubernetesProfile) -> Mapping[str, str]:
    """ "domain/identifier" of attributes and capacities to the latest release that publishes it: "nvidia@v0.4.1".

    One instance type represents all: what a release publishes differs little from type to type.
    """
    found: dict[str, str] = {}
    for name, facts in driver_facts().items():
        for release in facts.releases:
            text = f"{name}@{release.name}"
            for slice_ in _sample(catalog, parse_driver_set(text), profile):
                for device in slice_.devices:
                    names = (*device.attributes, *device.capacity)
                    found.update(("/".join(split_name(one, slice_.driver)), text) for one in names)
    return found


def names_advice(snapshot: Snapshot) -> Iterator[Diagnostic]:
    """The first claim of a pending pod that reads each attribute which a driver has renamed, or publishes only with a
    feature gate: for plans; `lint` finds it by its own rule."""
    seen: set[str] = set()
    for pod in (pod for pod in snapshot.pods if not pod.bound):
        found = (snapshot.claims.get(key) for key in claim_keys(pod))
        for claim in (claim for claim in found if claim is not None):
            for name in sorted(_read(claim, snapshot.profile) - seen):
                seen.add(name)
                if (wrong := wrong_name(name)) is not None and not _of_older_release(name, snapshot):
                    path = ("spec", "devices")
                    yield surprise(f"ResourceClaim {claim.key}", path, f"reads {wrong[0]}", wrong[1], claim.origin)


def _of_older_release(name: str, snapshot: Snapshot) -> bool:
    """True if nodes may run a release that still has the attribute: what pools list, or what publishes slices."""
    domain = name.partition("/")[0]
    there = any(pool.drivers for pool in snapshot.pools) or any(slice_.driver == domain for slice_ in snapshot.slices)
    return name in removed_attributes() and there


def wrong_name(name: str) -> tuple[str, str] | None:
    """(what is known of an attribute that no driver publishes by default, what to do); None for all others."""
    if new := renamed_attributes().get(name):
        return (
            f"attribute {name}, which {new.profile} does not publish since {new.since}",
            f"read {new.reading} instead",
        )
    if old := removed_attributes().get(name):
        return f"attribute {name}, which {old.profile} does not publish since {old.since}", old.instead
    if gated := gated_attributes().get(name):
        return (
            f"attribute {name}, which {gated.profile} publishes only with its feature gate {gated.gate} (from "
            f"{gated.since} on, off by default), and which no plan predicts",
            "turn the gate on in the driver, and give the ResourceSlices of such nodes",
        )
    return None


def _read(claim: ResourceClaim, profile: KubernetesProfile) -> frozenset[str]:
    """The attributes that its selectors and constraints read, "domain/identifier"."""
    requests = (alternative for request in claim.requests for alternative in request.alternatives)
    texts = (one.expression for request in requests for one in request.selectors)
    compiled = (compile_selector(text, profile) for text in texts if text)
    programs = (program for program in compiled if not isinstance(program, CompileFailure))
    selected = {f"{domain}/{name}" for program in programs for _, domain, name in program.reads or () if name}
    compared = {one.attribute for one in claim.constraints if isinstance(one, MatchAttribute | DistinctAttribute)}
    return frozenset(selected | compared)


def _sample(catalog: Catalog, driver_set: DriverSet, profile: KubernetesProfile) -> tuple[ResourceSlice, ...]:
    for instance_type in catalog:
        if runs_on(instance_type, driver_set.profiles[0]) and unpredictable(instance_type, driver_set) is None:
            return predict(instance_type, driver_set, kubernetes=profile)
    return ()
