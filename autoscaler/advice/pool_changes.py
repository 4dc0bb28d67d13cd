"""Changes of pools: capacity types, limits, requirements, drivers and the pods that they serve."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from decimal import Decimal
from functools import partial
from typing import Final

from autoscaler.advice.change import Change, ChangeKind, on_pool, pool_subject, unchanged
from autoscaler.advice.pod_changes import keys_dropped
from autoscaler.advice.situation import Situation
from autoscaler.lint.expressions import drivers_named
from autoscaler.lint.tpu_advice import hosts_meant
from autoscaler.model.capacity import CapacityPool, Limits, Permission, PodScope
from autoscaler.model.labels import LabelSelector
from autoscaler.model.plan import ConsideredOutcome
from autoscaler.model.pod import Pod
from autoscaler.model.reason import Code
from autoscaler.planning.demand.images import OF_MACHINES, accelerators_of_images
from autoscaler.planning.demand.scope import IMPLICIT
from autoscaler.planning.policy import Where
from autoscaler.planning.supply.drivers import FEATURE_DISCOVERY
from autoscaler.planning.supply.offering_labels import capacity_type_facts
from instance_catalog.dataclass import replace
from instance_catalog.drivers.attribute_names import clouds_of_domains
from instance_catalog.drivers.facts import driver_facts, profiles_of_classes
from instance_catalog.drivers.profile import DriverProfileError, parse_driver_set
from instance_catalog.kubernetes import labels as known
from instance_catalog.kubernetes.node_selector import Requirement
from instance_catalog.prediction.predict import PREDICTIONS
from instance_catalog.prediction.system_labels import capacity_labels
from instance_catalog.types.clouds import cloud_facts
from instance_catalog.types.instance_type import CapacityType

GIVING_LABELS: Final = frozenset({ChangeKind.ADD_LABELS, ChangeKind.LIST_GROUP})
_BOUGHT_ANY_TIME: Final = (CapacityType.ON_DEMAND, CapacityType.SPOT)
_LIMITS = {"accelerators": "accelerators", "nodes": "nodes", "usdPerHour": "usd_per_hour"}
_PREPARED = "nvidia:dynamic-mig"  # GPUs that a claim may divide
_ABOUT_CLOUDS: Final = frozenset({known.CLOUD, known.INSTANCE_TYPE})


def capacity_types(asked: Situation) -> Iterator[Change]:
    """On-demand, spot or what the pod selects, where a pool does not buy it."""
    for pool in asked.pools if not asked.where.capacity_types else ():
        for kind in (*_BOUGHT_ANY_TIME, *selected_kinds(asked.pod) - {*_BOUGHT_ANY_TIME}):
            if kind not in pool.capacity_types and not pool.implicit:
                yield Change.of(
                    ChangeKind.ALLOW_CAPACITY_TYPE,
                    pool_subject(pool),
                    on_pool(pool.name, partial(_buying, kind=kind)),
                    capacity_type=kind,
                )


def allowed_types(asked: Situation) -> Iterator[Change]:
    """On-demand, spot or what the pod selects, where the command line or the lack of any pool does not allow it."""
    if asked.snapshot.pools and not asked.where.capacity_types:
        return
    prepaid = IMPLICIT.capacity_types if asked.snapshot.blocks else (CapacityType.ON_DEMAND,)
    allowed = asked.where.capacity_types or prepaid
    for kind in (*_BOUGHT_ANY_TIME, *selected_kinds(asked.pod) - {*_BOUGHT_ANY_TIME}):
        if kind not in allowed:
            types = (*allowed, kind)
            found = Change.of(ChangeKind.ALLOW_CAPACITY_TYPE, "", unchanged, capacity_type=kind, allow=",".join(types))
            yield replace(found, where=partial(_allowing, types=types))


def selected_kinds(pod: Pod) -> frozenset[CapacityType]:
    """The capacity types that can be asked for at any time and whose label the pod requires: flex-start by GKE's."""
    return frozenset(kind for kind in CapacityType if not kind.needs_reservation and kind_keys(pod, kind))


def kind_keys(pod: Pod, kind: CapacityType) -> frozenset[str]:
    """The keys of the labels by which the pod requires the capacity type and no other."""
    known = [capacity_type_facts(kind), *(capacity_labels(cloud, kind) for cloud in cloud_facts())]
    found = {key: value for labels in known for key, value in labels.items()}
    return frozenset(key for key, value in found.items() if (value,) in pod.required_values({key}))


def keys_allowed(change: Change, asked: Situation) -> frozenset[str]:
    """The keys by which the pod selects the capacity type that a change allows: nobody gives anything up for that."""
    if change.kind is not ChangeKind.ALLOW_CAPACITY_TYPE:
        return frozenset()
    return kind_keys(asked.pod, CapacityType(str(change.detail["capacity_type"])))


def keys_served(change: Change, asked: Situation) -> frozenset[object]:
    """The keys of the labels that the pod selects and that nodes have after the change."""
    parts = change.steps
    given = {label.partition("=")[0] for part in parts for label in labels_given(part)}
    return frozenset(given.union(*(keys_allowed(part, asked) for part in parts)))


def labels_given(change: Change) -> tuple[str, ...]:
    labels = change.detail.get("labels") if change.kind in GIVING_LABELS else None
    return tuple(map(str, labels)) if isinstance(labels, tuple) else ()


def parts_of_cards(asked: Situation) -> Iterator[Change]:
    """Instance types with a part of a card, where one fits and nothing else keeps it from being bought."""
    found = [r for entry in asked.considered for r in entry.reasons if entry.outcome is ConsideredOutcome.FITS]
    shares = [str(r.detail.get("share", "")) for r in found if r.code is Code.FRACTION_UNASKED]
    for pool in asked.pools if shares else ():
        edit = on_pool(pool.name, lambda pool: replace(pool, fractional=Permission.ALLOW))
        yield Change.of(ChangeKind.ALLOW_PARTS, pool_subject(pool), edit, share=shares[0])


def overflows(asked: Situation) -> Iterator[Change]:
    """Other capacity than that of a pool's blocks, where the plan names these as a reason."""
    named = {r.detail.get("pool"): r.detail["blocks"] for r in asked.reasons if r.code is Code.OVERFLOW_NEVER}
    for pool in asked.pools:
        if pool.name in named:
            edit = on_pool(pool.name, lambda pool: replace(pool, overflow=Permission.ALLOW))
            yield Change.of(ChangeKind.ALLOW_OVERFLOW, pool_subject(pool), edit, blocks=named[pool.name])


def _allowing(where: Where, types: tuple[CapacityType, ...]) -> Where:
    return replace(where, capacity_types=types)


def elsewhere(asked: Situation) -> Iterator[Change]:
    """Without an option of the command line that says where to buy."""
    if asked.where.regions:
        found = Change.of(ChangeKind.ASK_ELSEWHERE, "", unchanged, option="--region", values=asked.where.regions)
        yield replace(found, where=lambda where: replace(where, regions=()))
    if asked.where.clouds:
        regions = f" and --region {', '.join(asked.where.regions)}" if asked.where.regions else ""
        values = (", ".join(asked.where.clouds) + regions,)
        found = Change.of(ChangeKind.ASK_ELSEWHERE, "", unchanged, option="--cloud", values=values)
        # A region belongs to a cloud, so it goes with it.
        yield replace(found, where=lambda where: replace(where, clouds=(), regions=()))


def _buying(pool: CapacityPool, kind: CapacityType) -> CapacityPool:
    return replace(pool, capacity_types=(*pool.capacity_types, kind))


def exceeded_limits(asked: Situation) -> Iterator[tuple[CapacityPool, str]]:
    """The limits of pools that the plan names as a reason."""
    named = {(r.detail.get("pool"), r.detail.get("resource")): None for r in asked.reasons if r.code is Code.POOL_LIMIT}
    for pool in asked.pools:
        for resource in _LIMITS:
            if (pool.name, resource) in named:
                yield pool, resource


def raise_limit(pool: CapacityPool, resource: str, amount: Decimal | None) -> Change:
    """The limit at that amount; None: not limited, for a first look."""
    field = _LIMITS[resource]
    now = getattr(pool.limits, field)
    value: object = amount if amount is None or resource == "usdPerHour" else int(amount.to_integral_value("ROUND_UP"))

    def edit(found: CapacityPool) -> CapacityPool:
        limits: Limits = replace(found.limits, **{field: value})  # type: ignore[arg-type]
        return replace(found, limits=limits)

    return Change.of(
        ChangeKind.RAISE_LIMIT,
        pool_subject(pool),
        on_pool(pool.name, edit),
        limited=pool.limits.path(resource),
        limit=str(now),
        instead=str(value),
    )


def add_scheduler(asked: Situation, pool: CapacityPool) -> Change:
    """The pod's scheduler in the scope of the pool."""
    scheduler = asked.pod.scheduler_name
    edit = on_pool(pool.name, partial(_serving, scheduler=scheduler))
    return Change.of(ChangeKind.ADD_SCHEDULER, pool_subject(pool), edit, scheduler=scheduler)


def widen_scope(asked: Situation, pool: CapacityPool) -> Change:
    """Pods without a claim in the scope of the pool: by a label, where a pool that somebody creates would otherwise buy
    for pods that ask for no device as well."""
    label = asked.own_label if pool.implicit else None
    if label is None:
        edit = on_pool(pool.name, lambda pool: replace(pool, scope=replace(pool.scope, pods=PodScope.ALL)))
        return Change.of(ChangeKind.WIDEN_SCOPE, pool_subject(pool), edit, scope="All")
    selector = LabelSelector((Requirement(label[0], "In", (label[1],)),))
    edit = on_pool(pool.name, partial(_selecting, selector=selector))
    scope = f"Selected (podSelector: {{matchLabels: {{{label[0]}: {label[1]}}}}})"
    return Change.of(ChangeKind.WIDEN_SCOPE, pool_subject(pool), edit, scope=scope)


def _selecting(pool: CapacityPool, selector: LabelSelector) -> CapacityPool:
    return replace(pool, scope=replace(pool.scope, pods=PodScope.SELECTED, pod_selector=selector))


def one_host_each(asked: Situation, pool: CapacityPool) -> Iterator[Change]:
    """Only machines that make a slice with a host for each pod, where the pods look like its hosts and a single machine
    with all the chips would do as well."""
    types = hosts_meant(asked.pod, asked.pods, asked.catalog)
    if types and pool.implicit:
        yield require(pool, Requirement(known.INSTANCE_TYPE, "In", types))


def on_cards_of_images(asked: Situation, pool: CapacityPool) -> Iterator[Change]:
    """Only machines on whose accelerators the pods' images run, in a pool that somebody has yet to create."""
    cards, pod = accelerators_of_images(asked.pod), asked.pod
    free = cards and not pod.required_values(OF_MACHINES - {known.HOSTNAME})  # once it selects no single node any more
    if pool.implicit and (free or cards in pod.required_values({known.ACCELERATOR})):
        yield require(pool, Requirement(known.ACCELERATOR, "In", cards))


def in_cloud_meant(change: Change, asked: Situation) -> Change:
    """The change with a pool that stays in the one cloud that the pods mean, if the change has somebody create a pool:
    a plan without pools stays in that cloud, and one with pools buys where these say."""
    created = [pool for pool in change.edit(asked.snapshot).pools if pool.name == IMPLICIT.name]
    clouds = tuple(asked.clouds)
    if len(clouds) != 1 or not created or any(r.key in _ABOUT_CLOUDS for r in created[0].requirements):
        return change
    return Change.together(*(require(pool, Requirement(known.CLOUD, "In", clouds)) for pool in asked.pools), change)


def staying_in_cloud(change: Change, asked: Situation) -> Change:
    """A dropped condition on what is published in one cloud alone, with a pool that stays in this cloud: who reads such
    an attribute does not want a machine of another one."""
    condition = str(change.detail["condition"])
    clouds = {cloud for domain, cloud in clouds_of_domains().items() if f'"{domain}"' in condition.replace("'", '"')}
    if len(clouds) != 1 or any(not pool.implicit for pool in asked.pools):
        return change
    requirement = Requirement(known.CLOUD, "In", tuple(clouds))
    return Change.together(*(require(pool, requirement) for pool in asked.pools), change)


def require(pool: CapacityPool, requirement: Requirement) -> Change:
    """Only machines that meet it."""
    edit = on_pool(pool.name, lambda pool: replace(pool, requirements=(*pool.requirements, requirement)))
    values = ", ".join(requirement.values)
    return Change.of(ChangeKind.ADD_REQUIREMENT, pool_subject(pool), edit, key=requirement.key, value=values)


def _serving(pool: CapacityPool, scheduler: str) -> CapacityPool:
    return replace(pool, scope=replace(pool.scope, schedulers=(*pool.scope.schedulers, scheduler)))


def requirements(asked: Situation) -> Iterator[Change]:
    """Without one of a pool's requirements: another region, zone, type or cloud."""
    for pool in asked.pools:
        for requirement in pool.requirements:
            yield Change.of(
                ChangeKind.DROP_REQUIREMENT,
                pool_subject(pool),
                on_pool(pool.name, partial(_without, requirement=requirement)),
                key=requirement.key,
                operator=requirement.operator,
                values=requirement.values,
            )


def _without(pool: CapacityPool, requirement: Requirement) -> CapacityPool:
    return replace(pool, requirements=tuple(r for r in pool.requirements if r != requirement))


def driver_profiles(asked: Situation) -> Iterator[Change]:
    """A driver profile that publishes devices which the claims ask for and the pool's nodes do not have. A pool that
    lists none also gets the drivers of the other devices, which are assumed only there."""
    for pool in asked.pools:
        created = pool.name == IMPLICIT.name
        # Where a pool lists none, the others are offered anyway.
        own = None if pool.drivers or created else asked.catalog.drivers.keys()
        for text in _profiles_for(asked, pool):
            name = _profile_name(text)
            if own is not None and name not in own:
                continue
            others = pool.drivers or _assumed_for(asked)
            yield set_drivers(pool, (*(given for given in others if _profile_name(given) != name), text))


def _assumed_for(asked: Situation) -> tuple[str, ...]:
    """The profiles that plans without pools assume and whose drivers the classes of the claims name."""
    drivers = _named_by(asked, _classes_of(asked))
    assumed = [text for text in PREDICTIONS if PREDICTIONS[text].in_implicit_pools]
    return tuple(text for text, driver in _profiles(asked) if text in assumed and driver in drivers)


def _classes_of(asked: Situation) -> frozenset[str]:
    return frozenset(
        each.device_class for claim in asked.claims for request in claim.requests for each in request.alternatives
    )


def feature_discovery(asked: Situation) -> Iterator[Change]:
    """GPU feature discovery beside the NVIDIA driver, where the pod selects nodes by its labels."""
    profile, option = FEATURE_DISCOVERY
    for pool in asked.pools if known.DISCOVERED_LABELS & asked.pod.selected_labels else ():
        texts = tuple(
            f"{text}:{option}" if _profile_name(text) == profile and option not in text.split(":") else text
            for text in pool.drivers
        )
        if texts != pool.drivers:
            yield set_drivers(pool, texts)


def set_drivers(pool: CapacityPool, drivers: tuple[str, ...]) -> Change:
    edit = on_pool(pool.name, partial(_running, drivers=drivers))
    return Change.of(ChangeKind.SET_DRIVERS, pool_subject(pool), edit, drivers=drivers)


def _profile_name(text: str) -> str:
    """ "nvidia" of "nvidia@v0.5.0:dynamic-mig"."""
    return text.partition(":")[0].partition("@")[0]


def _profiles_for(asked: Situation, pool: CapacityPool) -> list[str]:
    """The profiles to try: those that are known to serve the classes, else every one of a driver that a class names."""
    named = [text for text in (*_of_classes(asked), *_that_share(asked)) if text not in pool.drivers]
    if named:
        return list(dict.fromkeys(named))
    wanted = _drivers_wanted(asked)
    found = [text for text, driver in _profiles(asked) if driver in wanted and text not in pool.drivers]
    return [text for text in found if not (pool.implicit and text in _offered_anyway())]


def _offered_anyway() -> frozenset[str]:
    """The profiles that a plan without pools tries anyway."""
    return frozenset({_PREPARED, *(name for name, driver in PREDICTIONS.items() if driver.in_implicit_pools)})


def _of_classes(asked: Situation) -> Iterator[str]:
    """Profiles for classes whose devices a driver publishes only with an option."""
    profiles = profiles_of_classes()
    for reason in asked.reasons:
        if reason.code is Code.NO_DEVICE_OF_CLASS and (text := profiles.get(str(reason.detail.get("device_class")))):
            yield text


def _that_share(asked: Situation) -> Iterator[str]:
    """Profiles under which claims for an amount of a device share it, where the devices lack the amount."""
    requests = [request for claim in asked.claims for request in claim.exact_requests if request.capacity]
    if requests and Code.CAPACITY_INSUFFICIENT in asked.codes:
        drivers = _named_by(asked, {request.device_class for request in requests})
        yield from (f.sharing_profile for f in driver_facts().values() if f.sharing_profile and f.driver in drivers)


def _running(pool: CapacityPool, drivers: tuple[str, ...]) -> CapacityPool:
    return replace(pool, drivers=drivers)


def _profiles(asked: Situation) -> Iterator[tuple[str, str]]:
    """(profile, its DRA driver) of everything that can be predicted."""
    for text in (*PREDICTIONS, _PREPARED, *asked.catalog.drivers):
        try:
            profiles = parse_driver_set(text, custom=asked.catalog.drivers).profiles
        except DriverProfileError:
            continue
        yield from ((text, profile.driver) for profile in profiles)


def _drivers_wanted(asked: Situation) -> frozenset[str]:
    """The drivers that the classes of the pod's requests name, where no type has a device of the class."""
    named = {str(r.detail.get("device_class")) for r in asked.reasons if r.code is Code.NO_DEVICE_OF_CLASS}
    return _named_by(asked, named & _classes_of(asked))


def _named_by(asked: Situation, classes: Collection[str]) -> frozenset[str]:
    """The drivers that the selectors of these classes name."""
    expressions = tuple(
        selector.expression
        for found in asked.snapshot.classes
        if found.name in classes
        for selector in found.selectors
        if selector.expression
    )
    return drivers_named(expressions)


def undone(one: Change, other: Change) -> bool:
    """True if one gives nodes a label that the pod no longer selects after the other."""
    return _ungiven(one, other) or _ungiven(other, one)


def _ungiven(change: Change, dropping: Change) -> bool:
    given = [label for part in change.steps for label in labels_given(part)]
    dropped = [part.detail for part in dropping.steps if keys_dropped(part)]
    return any(label.startswith(f"{each['key']}={each.get('value', '')}") for label in given for each in dropped)


def gives_up_label(change: Change, found: Change) -> bool:
    """True if it drops the label for which another has been found that selects the same accelerator or the nearest, or
    has nodes carry a label that is not true of them."""
    dropped = keys_dropped(change)
    if any(part.kind is ChangeKind.RENAME_LABELS for part in found.steps):
        return any(str(key).startswith(known.AUTO_MODE_INSTANCE_PREFIX) for key in dropped)
    if dropped and found.kind in (ChangeKind.REWRITE_LABEL, ChangeKind.NEAREST_MODEL):
        return found.detail["key"] in dropped
    given = [label for part in change.steps for label in labels_given(part)]
    return found.kind is ChangeKind.NEAREST_MODEL and any(
        label.startswith(f"{found.detail['key']}=") for label in given
    )
