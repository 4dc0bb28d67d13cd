"""`foreslice cel`: tests a selector on published or predicted devices."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from autoscaler.cel.common.evaluation import COST_LIMIT
from autoscaler.cel.common.outcome import CompileFailure
from autoscaler.cel.program import Program, compile_selector, estimated_cost
from autoscaler.cli.common.choices import chosen_catalog, chosen_drivers, chosen_kubernetes, chosen_type, parsed_drivers
from autoscaler.cli.common.commands import catalog_option, kubernetes_option
from autoscaler.cli.common.output import output_option, print_data, print_table
from autoscaler.errors import BadInputError
from autoscaler.lint.devices.effort import EffortExceededError
from autoscaler.lint.devices.offers import Offer, catalog_offers, offers_of, published_offer, specimens
from autoscaler.lint.published_names import PublishedNames
from autoscaler.lint.releases import names_of_releases
from autoscaler.lint.selector_text import misnamed
from autoscaler.manifests.load import load
from autoscaler.report.tables.cel_trial import (
    Tried,
    entries_of,
    pointed_at,
    table_apart,
    table_together,
    tried_apart,
    tried_together,
)
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.prediction.predict import predict


@click.command()
@click.argument("expression", metavar="EXPR")
@click.option("--type", "instance_type", metavar="TYPE", help="Evaluate it on the devices of this instance type.")
@click.option("--slices", "slices_file", metavar="FILE", help="Evaluate it on these ResourceSlices; - is stdin.")
@click.option("--drivers", metavar="PROFILE", help="Drivers that run on the nodes, as for `foreslice slices`.")
@kubernetes_option
@catalog_option
@output_option()
def cel(
    expression: str,
    instance_type: str | None,
    slices_file: str | None,
    drivers: str | None,
    kubernetes_version: str,
    directories: tuple[Path, ...],
    output: str,
) -> None:
    """Without --type or --slices, the selector is evaluated on every instance type of the catalog, with every driver
    profile that the type may run. An error is not a mismatch: if a selector fails on a device, kube-scheduler does not
    schedule the pod at all. Unknown means that the result depends on values that exist only on a running node.

    \b
    Try:
      foreslice cel 'device.capacity["gpu.nvidia.com"].memory.isGreaterThan(quantity("80Gi"))'
      foreslice cel 'device.attributes["dra.net"].rdma' --type p5.48xlarge
      kubectl get resourceslices -o yaml | foreslice cel 'device.driver == "gpu.nvidia.com"' --slices -

    Exit code 0: the selector was evaluated; 1: it does not compile, or the input cannot be used.
    """
    if instance_type and slices_file:
        raise click.UsageError("--type and --slices exclude each other")
    kubernetes = chosen_kubernetes(kubernetes_version)
    program = _program(expression, kubernetes)
    if slices_file:
        offers = _published(slices_file, kubernetes)
    else:
        offers = _predicted(instance_type, drivers, kubernetes, directories)
    devices = specimens(offers, kubernetes)
    one_node = bool(instance_type or slices_file)
    try:
        tried = tried_apart(program, devices) if one_node else tried_together(program, devices)
    except EffortExceededError as error:
        cost = program.evaluate(devices[0].view).cost
        step = "shorten loops and lists, or try it on fewer devices with --type or --slices"
        raise BadInputError(f"too costly to try on all devices: {cost:,} units on the first", next_step=step) from error
    for what, step in _misnamed(program, tried, offers, kubernetes, directories):
        click.echo(f"note: {what}; {step}", err=True)
    _print(program, tried, kubernetes, output, one_node=one_node)


def _misnamed(
    program: Program,
    tried: Sequence[Tried],
    offers: Sequence[Offer],
    kubernetes: KubernetesProfile,
    directories: Sequence[Path],
) -> Iterator[tuple[str, str]]:
    """Names that no driver publishes; the whole catalog is searched, because other drivers may publish them."""
    if any(one.answer.missing_key for one in tried):
        catalog = chosen_catalog(directories)
        devices = specimens((*catalog_offers(catalog, kubernetes), *offers), kubernetes)
        yield from misnamed(program, PublishedNames.of(devices, names_of_releases(catalog, kubernetes), kubernetes))


def _program(expression: str, kubernetes: KubernetesProfile) -> Program:
    compiled = compile_selector(expression, kubernetes)
    if isinstance(compiled, CompileFailure):
        raise BadInputError(pointed_at(compiled), next_step=compiled.hint)
    return compiled


def _predicted(
    instance_type: str | None, drivers: str | None, kubernetes: KubernetesProfile, directories: Sequence[Path]
) -> tuple[Offer, ...]:
    catalog = chosen_catalog(directories)
    if instance_type is not None:
        machine = chosen_type(instance_type, catalog)
        driver_set = chosen_drivers(machine, drivers, kubernetes)
        return (Offer(machine.name, driver_set.text, predict(machine, driver_set, kubernetes=kubernetes)),)
    if drivers is not None:
        return offers_of(catalog, parsed_drivers(drivers, catalog.drivers), kubernetes)
    return catalog_offers(catalog, kubernetes)


def _published(file: str, kubernetes: KubernetesProfile) -> tuple[Offer, ...]:
    loaded = load((file,), stdin=sys.stdin, profile=kubernetes)
    if not loaded.ok:
        raise BadInputError(loaded.error_text)
    if not loaded.snapshot.slices:
        step = "kubectl get resourceslices -o yaml, or foreslice slices TYPE -o yaml, prints some"
        raise BadInputError(f"{file} holds no ResourceSlices", next_step=step)
    return published_offer(loaded.snapshot.slices)


def _notes(program: Program, estimate: int | CompileFailure, kubernetes: KubernetesProfile) -> Iterator[str]:
    """Notes for the user beside the answers."""
    if kubernetes.note:
        yield kubernetes.note
    if isinstance(estimate, CompileFailure):
        yield f"the API server of Kubernetes {kubernetes.name} refuses it in new objects: {estimate.message}"
    elif estimate > COST_LIMIT:
        yield f"the API server refuses it in new objects: its estimated cost exceeds {COST_LIMIT:,}"
    if program.warning:
        yield program.warning


def _print(
    program: Program, tried: Sequence[Tried], kubernetes: KubernetesProfile, output: str, *, one_node: bool
) -> None:
    estimate = estimated_cost(program.expression, kubernetes)
    for note in _notes(program, estimate, kubernetes):
        click.echo(f"note: {note}", err=True)
    known = estimate if isinstance(estimate, int) else None
    if output != "table":
        about = {"expression": program.expression, "kubernetes": kubernetes.name, "estimatedCost": known}
        print_data({**about, "results": entries_of(tried)}, output)
        return
    click.echo(f"Kubernetes {kubernetes.name}" + ("" if known is None else f", estimated cost at most {known:,}"))
    table = table_apart(tried) if one_node else table_together(tried)
    print_table(table.columns, table.rows)
    if not tried:
        click.echo("no devices to try it on")
