"""`foreslice catalog learn`: builds or corrects entries from running nodes, and shows the changes first."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from autoscaler.cli.catalog.diff import print_changes
from autoscaler.cli.catalog.edit import file_name, present
from autoscaler.cli.catalog.files import defects, replace_file
from autoscaler.cli.common.choices import chosen_catalog, chosen_kubernetes
from autoscaler.cli.common.commands import catalog_option, cluster_options, kubernetes_option
from autoscaler.cli.common.output import yaml_text
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from autoscaler.manifests.load import load
from autoscaler.model.snapshot import Snapshot
from instance_catalog.files.layers import Corrections
from instance_catalog.kubernetes.labels import ARCHITECTURE, INSTANCE_TYPE
from instance_catalog.sources.learn import Lesson, SeenNode
from instance_catalog.sources.learn import learn as lessons_of
from instance_catalog.types.clouds import cloud_facts

# Scheme of a node's providerID → cloud; those that the catalog has no facts of are called as their scheme.
_CLOUDS = {name: name for name in ("azure", "oci", "kwok")} | {c.provider_id: name for name, c in cloud_facts().items()}


@click.command("learn")
@click.option(
    "--nodes",
    "paths",
    metavar="FILE",
    multiple=True,
    help="Saved Nodes and ResourceSlices; - for stdin. [default: the cluster]",
)
@click.option("--type", "type_names", metavar="TYPE", multiple=True, help="Only this instance type. May be repeated.")
@click.option("--cloud", metavar="CLOUD", help="Cloud of nodes whose providerID does not name one.")
@kubernetes_option
@click.option(
    "--write", "target", metavar="DIR", type=click.Path(path_type=Path), help="Write learned-TYPE.yaml there."
)
@catalog_option
@cluster_options
def learn(
    paths: tuple[str, ...],
    type_names: tuple[str, ...],
    cloud: str | None,
    kubernetes_version: str,
    target: Path | None,
    directories: tuple[Path, ...],
    kubeconfig: str,
    context: str,
) -> None:
    """For known types, it corrects facts that the nodes contradict and adds facts that were unknown; unknown types get
    an entry. The changes are shown, and written only with --write. A learned file has priority -10, so files that you
    wrote by hand win.

    \b
    Try:
      foreslice catalog learn
      kubectl get nodes,resourceslices -o yaml | foreslice catalog learn --nodes - --type p5.48xlarge
      foreslice catalog learn --nodes saved.yaml --write my-types/
    """
    profile = chosen_kubernetes(kubernetes_version)
    seen = _seen(_snapshot(paths, kubeconfig, context), cloud)
    wanted = [node for node in seen if not type_names or node.type_name in type_names]
    if not wanted:
        found = ", ".join(sorted({node.type_name for node in seen})) or "none"
        raise BadInputError(
            f"no node to learn from; instance types of the nodes: {found}",
            next_step="give nodes with the label node.kubernetes.io/instance-type, and their ResourceSlices",
        )
    below = present(directories, target) if target else directories
    catalog = chosen_catalog(below)
    for lesson in lessons_of(wanted, catalog, profile, date=SystemClock().now().date().isoformat()):
        _show(lesson, below, target)


def _snapshot(paths: tuple[str, ...], kubeconfig: str, context: str) -> Snapshot:
    from autoscaler.cli.common.live import connected, read_store

    if not paths:
        return read_store(connected(kubeconfig, context)).snapshot()
    loaded = load(paths, stdin=sys.stdin)
    if loaded.errors:
        raise BadInputError(loaded.error_text)
    return loaded.snapshot


def _seen(snapshot: Snapshot, cloud: str | None) -> list[SeenNode]:
    """The nodes with a known type. Raises BadInputError if the cloud is unknown."""
    found = []
    for node in snapshot.nodes:
        scheme = node.provider_id.partition("://")[0]
        theirs = cloud or _CLOUDS.get(scheme)
        if INSTANCE_TYPE not in node.labels:
            click.echo(f"note: node {node.name} has no label {INSTANCE_TYPE}; left out", err=True)
            continue
        if theirs is None:
            raise BadInputError(
                f"node {node.name}: providerID {node.provider_id!r} is of no known cloud", next_step="give --cloud"
            )
        slices = tuple(slice_ for slice_ in snapshot.slices if slice_.reach.node_name == node.name)
        architecture = node.labels.get(ARCHITECTURE, "amd64")
        type_name = node.labels[INSTANCE_TYPE]
        found.append(SeenNode(node.name, type_name, theirs, architecture, node.allocatable, slices))
    return found


def _show(lesson: Lesson, directories: tuple[Path, ...], target: Path | None) -> None:
    if lesson.content is None:
        click.echo(f"{lesson.type_name}: as the catalog says")
    for note in lesson.notes:
        click.echo(f"note: {lesson.type_name}: {note}", err=True)
    if lesson.content is None:
        return
    text = yaml_text(lesson.content)
    click.echo(f"{text}\n# What it changes{' (a new type)' if lesson.is_new else ''}:")
    corrections = [Corrections(f"lesson of {lesson.type_name}", 1, lesson.content)]
    if not print_changes(chosen_catalog(directories), chosen_catalog(directories, corrections)):
        click.echo("nothing, since something of higher priority says otherwise")
    if target is None:
        return
    path = target / f"learned-{file_name(lesson.type_name)}.yaml"
    wrong = defects(path, text, directories)
    if wrong:
        raise BadInputError(f"{path} is not written:\n{wrong}")
    replace_file(path, text)
    click.echo(f"{path} is written")
