"""`foreslice slices`: predicts the slices that the drivers on an instance type will publish, before a node exists."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from autoscaler.cli.common.choices import chosen_catalog, chosen_drivers, chosen_kubernetes, chosen_type
from autoscaler.cli.common.commands import catalog_option, kubernetes_option
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.kube.writing.slices import slice_manifest
from autoscaler.report.tables.slice_tables import legend, slice_tables
from instance_catalog.drivers.profile import DriverSet
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.concrete import make_concrete, placeholder_names
from instance_catalog.prediction.predict import PLACEHOLDER_NODE, predict
from instance_catalog.prediction.variants import implicit_driver_sets, left_out
from instance_catalog.types.instance_type import InstanceType


@click.command()
@click.argument("instance_type", metavar="TYPE")
@click.option(
    "--drivers", metavar="PROFILE", help="Drivers that run on the node. Default: all that fit the type, as shipped."
)
@kubernetes_option
@click.option("--node-name", metavar="NAME", help="Name of the node that publishes the slices.")
@catalog_option
@output_option()
def slices(
    instance_type: str,
    drivers: str | None,
    kubernetes_version: str,
    node_name: str | None,
    directories: tuple[Path, ...],
    output: str,
) -> None:
    """A PROFILE names drivers, separated by commas. Each may have a release and options:

    \b
      nvidia                       whole GPUs
      nvidia:dynamic-mig           partitions that are made when claimed (gate DynamicMIG)
      nvidia:mig=all-1g.10gb       GPUs partitioned by the node image, a layout of nvidia-mig-parted
      nvidia@v0.4.0:driver=580.126.09:cuda=13.0
      compute-domain               NVLink domains across nodes
      dranet                       network cards, EFA among them
      aws-net                      RDMA cards, as AWS's own driver publishes them
      tpu:topology=4x4             TPU chips of a multi-host slice
      neuron                       Trainium devices

    The line above the table shows the attributes that all devices of a driver share. YAML and JSON can be applied to a
    cluster: they have placeholders for values that exist only on a running node, and an annotation lists these.

    \b
    Try:
      foreslice slices p5.48xlarge
      foreslice slices p5.48xlarge --drivers nvidia:dynamic-mig -o yaml
      foreslice slices a3-highgpu-8g --drivers nvidia,dranet
    """
    machine = chosen_type(instance_type, chosen_catalog(directories))
    kubernetes = chosen_kubernetes(kubernetes_version)
    driver_set = chosen_drivers(machine, drivers, kubernetes)
    name = node_name or PLACEHOLDER_NODE
    predicted = predict(machine, driver_set, kubernetes=kubernetes, node_name=name)
    for note in (kubernetes.note, *driver_set.notes, *_gate_notes(predicted, kubernetes)):
        if note:
            click.echo(f"note: {note}", err=True)
    if output == "table":
        _print_table(machine, driver_set, predicted, kubernetes)
    else:
        print_data(_manifests(predicted, name), output)


def _gate_notes(predicted: tuple[ResourceSlice, ...], kubernetes: KubernetesProfile) -> Iterator[str]:
    """The fields that an API server drops if their gates are off: partitions then look like separate devices, for
    instance."""
    gates, devices = kubernetes.gates, [device for slice_ in predicted for device in slice_.devices]
    dropped = {
        ("counters", "DRAPartitionableDevices"): not gates.partitionable_devices
        and any(slice_.shared_counters for slice_ in predicted),
        ("allowMultipleAllocations and request policies", "DRAConsumableCapacity"): not gates.consumable_capacity
        and any(device.allow_multiple_allocations for device in devices),
        ("binding conditions", "DRADeviceBindingConditions"): not gates.binding_conditions
        and any(device.binding_conditions for device in devices),
    }
    for (fields, gate), drops in dropped.items():
        if drops:
            yield f"Kubernetes {kubernetes.name} drops these {fields} unless the gate {gate} is switched on"


def _manifests(predicted: tuple[ResourceSlice, ...], node_name: str) -> dict[str, object]:
    concrete = make_concrete(predicted, node_name=node_name)
    pairs = zip(predicted, concrete, strict=True)
    items = [slice_manifest(made, placeholders=placeholder_names(token)) for token, made in pairs]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def _print_table(
    machine: InstanceType,
    driver_set: DriverSet,
    predicted: tuple[ResourceSlice, ...],
    kubernetes: KubernetesProfile,
) -> None:
    click.echo(f"{machine.name} with {driver_set.label}, Kubernetes {kubernetes.name}")
    if not predicted:
        click.echo(f"Nothing is published: {_why_nothing(machine, driver_set, kubernetes)}.")
    for table in slice_tables(predicted):
        click.echo()
        print_table(table.columns, table.rows, title=table.title)
    for line in ("", *marks) if (marks := legend(predicted)) else ():
        click.echo(line)
    others = [s.text for s in implicit_driver_sets(machine, kubernetes) if s != driver_set]
    if others:
        click.echo("\nOther driver profiles for this type (--drivers):")
        for text in others:
            click.echo(f"  {text}")


def _why_nothing(machine: InstanceType, driver_set: DriverSet, kubernetes: KubernetesProfile) -> str:
    if driver_set.profiles:
        return f"{driver_set.label} has no devices on this type"
    reasons = list(dict.fromkeys(reason for _, reason in left_out(machine, kubernetes)))
    return "; ".join(reasons) or "no known driver has devices on this type"
