"""`foreslice catalog verify`: compares a node's published slices with the prediction."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from autoscaler.cli.catalog.impact import COLUMNS as IMPACT_COLUMNS
from autoscaler.cli.catalog.impact import PodImpact, impacts_on
from autoscaler.cli.common.choices import chosen_catalog, chosen_drivers, chosen_kubernetes, chosen_type
from autoscaler.cli.common.commands import catalog_option, kubernetes_option
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from autoscaler.manifests.load import load
from autoscaler.report.drift_text import COLUMNS, drift_data, drift_rows
from autoscaler.report.words import counted
from instance_catalog.dataclass import dataclass
from instance_catalog.drift.compare import Unified, node_names
from instance_catalog.drift.match import nearest
from instance_catalog.drift.repair import proposal
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.files.layers import Corrections
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.spelling import did_you_mean
from instance_catalog.types.instance_type import InstanceType

DRIFT_FOUND = 3


@dataclass(frozen=True, slots=True)
class _Comparison:
    """The two sides of a comparison; `drivers` None: the nearest implicit set."""

    type_name: str
    published: tuple[ResourceSlice, ...]
    drivers: str | None
    directories: tuple[Path, ...]
    kubernetes: KubernetesProfile


@click.command("verify")
@click.option(
    "--slices", "paths", metavar="FILE", multiple=True, required=True, help="Published ResourceSlices; - for stdin."
)
@click.option("--type", "type_name", metavar="TYPE", required=True, help="Instance type of the node.")
@click.option("--node", metavar="NAME", help="Name of the node, if the slices belong to several nodes.")
@click.option(
    "--drivers",
    metavar="PROFILE",
    help="Drivers of the node. Default: for each published driver, the most similar profile.",
)
@click.option(
    "--for",
    "pods",
    metavar="FILE",
    multiple=True,
    help="Pods and claims; the command lists those that the drift affects.",
)
@kubernetes_option
@catalog_option
@output_option()
def verify(
    paths: tuple[str, ...],
    type_name: str,
    node: str | None,
    drivers: str | None,
    pods: tuple[str, ...],
    kubernetes_version: str,
    directories: tuple[Path, ...],
    output: str,
) -> None:
    """Values that exist only on a running node (uuids, addresses) must correspond one to one; everything else must be
    equal. If an overlay can correct the catalog, the command prints the overlay and the differences that would remain.
    With --for, it decides each pod of your manifests with both the prediction and the published slices, and names the
    differences that change the pod's placement. See docs/drift.md.

    \b
    Try:
      kubectl get resourceslices -o yaml | foreslice catalog verify --slices - --type p5.48xlarge --node my-node
      foreslice catalog verify --slices published.yaml --type p4d.24xlarge --drivers nvidia:driver=580.126.09,dranet
      foreslice catalog verify --slices published.yaml --type p4d.24xlarge --for my-pods.yaml

    Exit code 0: equal; 3: drift; 1: the input cannot be read.
    """
    published = _of_node(_read(paths), node)
    compared = _Comparison(type_name, published, drivers, directories, chosen_kubernetes(kubernetes_version))
    machine, driver_set, unified = _unified(compared, ())
    overlay = _overlay(machine, unified, SystemClock().now().date().isoformat())
    left = _left(compared, overlay) if overlay else unified
    affected = impacts_on(pods, unified, compared.kubernetes) if pods else ()
    if output == "table":
        _print_text(machine, driver_set, unified, overlay, left)
        _print_impacts(affected)
    else:
        document = _document(machine, driver_set, unified, overlay, left)
        print_data({**document, **({"pods": [one.data() for one in affected]} if pods else {})}, output)
    if not unified.equal:
        sys.exit(DRIFT_FOUND)


def _read(paths: Sequence[str]) -> tuple[ResourceSlice, ...]:
    loaded = load(paths, stdin=sys.stdin)
    if loaded.errors:
        raise BadInputError(loaded.error_text)
    if not loaded.snapshot.slices:
        raise BadInputError(
            f"{', '.join(paths)}: no ResourceSlice found",
            next_step="save them with `kubectl get resourceslices -o yaml`",
        )
    return loaded.snapshot.slices


def _of_node(slices: tuple[ResourceSlice, ...], node: str | None) -> tuple[ResourceSlice, ...]:
    """The slices of the requested node, or of the only one."""
    names = node_names(slices)
    if node is None and len(names) != 1:
        found = f"slices of {len(names)} nodes: {', '.join(names)}" if names else "no slice that belongs to a node"
        raise BadInputError(
            found, next_step="choose one with --node" if names else "give slices that have spec.nodeName"
        )
    chosen = node or names[0]
    if chosen not in names:
        step = did_you_mean(chosen, names, f"there are slices of {', '.join(names)}")
        raise BadInputError(f"no slices of node {chosen!r}", next_step=step)
    return tuple(slice_ for slice_ in slices if slice_.reach.node_name == chosen)


def _unified(compared: _Comparison, corrections: Sequence[Corrections]) -> tuple[InstanceType, DriverSet, Unified]:
    machine = chosen_type(compared.type_name, chosen_catalog(compared.directories, corrections))
    asked = (chosen_drivers(machine, compared.drivers, compared.kubernetes),) if compared.drivers else ()
    return machine, *nearest(machine, compared.published, compared.kubernetes, asked)


def _overlay(machine: InstanceType, unified: Unified, today: str) -> dict[str, Any] | None:
    node = unified.published[0].pool.name
    return proposal(machine, unified, source=f"ResourceSlices published by node {node}", date=today)


def _left(compared: _Comparison, overlay: dict[str, Any]) -> Unified:
    """The differences that remain with the overlay in effect."""
    return _unified(compared, [Corrections("proposed overlay", 1, overlay)])[2]


def _print_text(
    machine: InstanceType, driver_set: DriverSet, unified: Unified, overlay: dict[str, Any] | None, left: Unified
) -> None:
    devices = sum(len(slice_.devices) for slice_ in unified.published)
    head = f"{machine.name} with {driver_set.label}: {counted(devices, 'device')} published"
    if unified.equal:
        click.echo(f"{head}, as predicted")
    else:
        click.echo(f"{head}, {counted(len(unified.differences), 'difference')} to the prediction\n")
        print_table(COLUMNS, drift_rows(unified.differences))
    if unified.answers:
        click.echo(f"\n{len(unified.answers)} values that the catalog lacks are published:\n")
        print_table(COLUMNS[1:], [row[1:] for row in drift_rows(unified.answers)])
    if overlay is None:
        if not unified.equal:
            click.echo("\nThe catalog has no field that would repair this; docs/drift.md says what else to look at.")
        return
    click.echo(
        f"\n# Overlay: put it into a file of a --catalog directory. {len(left.differences)} differences would be left."
    )
    print_data(overlay, "yaml")


def _print_impacts(affected: Sequence[PodImpact]) -> None:
    if affected:
        click.echo("")
        print_table(IMPACT_COLUMNS, [one.row() for one in affected])


def _document(
    machine: InstanceType, driver_set: DriverSet, unified: Unified, overlay: dict[str, Any] | None, left: Unified
) -> dict[str, Any]:
    return {
        "type": machine.name,
        "drivers": driver_set.text,
        "equal": unified.equal,
        "differences": drift_data(unified.differences),
        "answers": drift_data(unified.answers),
        "overlay": overlay,
        "leftWithOverlay": drift_data(left.differences),
    }
