"""--cloud, --region and --allow: where and how a plan may buy. Without them the existing nodes decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from autoscaler.cli.common.commands import Command
from autoscaler.errors import BadInputError
from autoscaler.model.pod import Pod
from autoscaler.model.snapshot import Snapshot
from autoscaler.planning.demand.mounted import clouds_of_volumes
from autoscaler.planning.demand.scope import asks_for_no_device
from autoscaler.planning.policy import Where
from autoscaler.planning.supply.places import places_of_nodes, priced_regions
from instance_catalog.dataclass import dataclass, replace
from instance_catalog.kubernetes import labels
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.catalog import Catalog
from instance_catalog.types.clouds import cloud_facts, clouds_of_labels, is_regular_region
from instance_catalog.types.instance_type import CapacityType

_SHIPPED = "data/"  # the prefix of the files of the shipped catalog
_FEW = 3  # the most regions with prices of a user's catalog that are worth a note; a cloud's whole price list has more


def where_options(command: Command) -> Command:
    """The three options, given to the command as one value `asked`."""

    def run(*args: Any, cloud: str, region: str, allow: str, **options: Any) -> Any:
        return command(*args, asked=Asked(_split(cloud), _split(region), _split(allow)), **options)

    run.__doc__ = command.__doc__
    run.__name__ = command.__name__
    found: Any = run
    if hasattr(command, "__click_params__"):
        found.__click_params__ = command.__click_params__
    for decorate in (
        click.option(
            "--allow",
            default="",
            metavar="TYPES",
            help="Capacity types to buy, in order of preference, instead of those of the pools: spot, flex-start, "
            "on-demand, reserved, capacity-block.  [default: capacity-block,reserved,on-demand]",
        ),
        click.option(
            "--region",
            default="",
            metavar="REGION",
            help="Buy in this region, at its prices.  [default: that of the nodes, else the list price's]",
        ),
        click.option(
            "--cloud",
            default="",
            metavar="CLOUD",
            help="Buy in this cloud: aws or gcp.  [default: that of the nodes, else of the volumes]",
        ),
    ):
        found = decorate(found)
    result: Command = found
    return result


@dataclass(frozen=True, slots=True)
class Asked:
    """The options as typed."""

    clouds: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    capacity_types: tuple[str, ...] = ()

    def where(self, snapshot: Snapshot, catalog: Catalog) -> Where:
        """The requested place, else that of the snapshot's nodes, with a note. Raises BadInputError."""
        _known("--allow", "capacity type", self.capacity_types, [kind.value for kind in CapacityType])
        kinds = tuple(map(CapacityType, self.capacity_types))
        _known("--cloud", "cloud", self.clouds, sorted({found.cloud for found in catalog}))
        where = Where(self.clouds, self.regions, kinds)
        _tell_of_regions(self.regions, snapshot, catalog)
        asking = [pod for pod in snapshot.pods if not (pod.bound or asks_for_no_device(pod))]
        volumes = clouds_of_volumes(asking, snapshot)
        _tell_of_volumes(self.clouds, volumes)
        if self.clouds or self.regions:
            return where
        there = places_of_nodes(snapshot.nodes)
        if there.clouds and not snapshot.pools:
            place = ", ".join((*there.clouds, *there.regions))
            click.echo(f"note: buying in {place}, where the nodes are; --cloud and --region choose otherwise", err=True)
            return replace(there, capacity_types=kinds)
        if len(volumes) == 1 and not snapshot.pools:
            ((cloud, (pod, driver)),) = volumes.items()
            if not any(_names_another(cloud, pod, catalog) for pod in asking):
                click.echo(
                    f"note: buying in {cloud}, the only cloud where pod {pod} can mount its volume (driver {driver})",
                    err=True,
                )
                return replace(where, clouds=(cloud,))
        return where


def _tell_of_volumes(asked: Sequence[str], volumes: Mapping[str, tuple[str, str]]) -> None:
    """Prints a note about a pod whose volume the requested clouds do not mount."""
    for cloud, (pod, driver) in volumes.items():
        if asked and cloud not in asked:
            option = f"--cloud {', '.join(asked)}"
            text = (
                f"only machines of {cloud} mount the volume of pod {pod} (driver {driver}): leave out {option} for it"
            )
            click.echo(f"note: {text}", err=True)


def _names_another(cloud: str, pod: Pod, catalog: Catalog) -> bool:
    """True if the pod selects a place, a machine or a label of another cloud."""
    terms = pod.affinity.terms if pod.affinity else ()
    wanted: list[tuple[str, tuple[str, ...]]] = [(key, (value,)) for key, value in pod.node_selector.items()]
    wanted += [(r.key, r.values) for term in terms for r in term.match_expressions if r.operator == "In"]
    named = set(clouds_of_labels(pod.selected_labels))
    named |= {catalog.types[value].cloud for _, values in wanted for value in values if value in catalog.types}
    places = [value for key, values in wanted if key in (labels.ZONE, labels.REGION) for value in values]
    for other, facts in cloud_facts().items():
        if any(facts.zone.match(value) or facts.region.match(value) for value in places):
            named.add(other)
    return bool(named - {cloud})


def _tell_of_regions(asked: Sequence[str], snapshot: Snapshot, catalog: Catalog) -> None:
    """Prints a note about a region whose name is similar to a known one, and about prices of a region that is not
    requested."""
    known = priced_regions(catalog)
    for name in asked:
        if name in known or is_regular_region(name):
            continue
        near = did_you_mean(name, known, "")
        if near:
            click.echo(f"note: no price of a region {name!r} is known; {near}", err=True)
    if asked or snapshot.pools or snapshot.nodes:
        return
    theirs = [found for found in catalog if not found.origin.startswith(_SHIPPED)]
    own = {price.region for found in theirs for zone in found.zone_prices.values() for price in zone.values()}
    own -= {price.region for found in catalog for price in found.prices.values()}
    if 0 < len(own) <= _FEW:
        regions = " or ".join(f"--region {name}" for name in sorted(own))
        click.echo(f"note: the catalog's prices of {', '.join(sorted(own))} count only with {regions}", err=True)


def _known(option: str, what: str, given: Sequence[str], known: Sequence[str]) -> None:
    for name in given:
        if name not in known:
            step = did_you_mean(name, known, f"choose from {', '.join(known)}")
            raise BadInputError(f"{option}: unknown {what} {name!r}", next_step=step)


def _split(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
