"""`foreslice gcp trial`: starts a few machines of one group for some minutes and checks Google's behaviour."""

from __future__ import annotations

import click

from autoscaler.cli.common.commands import as_input_error, cluster_options
from autoscaler.cli.common.live import connected
from autoscaler.cli.common.preflight import surroundings_of
from autoscaler.cli.common.trials import carried_out, check_cost, show
from autoscaler.settings.settings import GcpSettings


@click.command("trial")
@cluster_options
@click.option("--project", default="", metavar="ID", help="[default: as the environment says]")
@click.option("--template", required=True, metavar="NAME", help="GCPNodeTemplate to launch with.")
@click.option("--type", "instance_type", default="", metavar="NAME", help="[default: that of its first group]")
@click.option(
    "--max-usd", required=True, type=float, metavar="DOLLARS", help="The most that an hour of its machines may cost."
)
@click.option("--report", default="gcp-trial.json", show_default=True, metavar="PATH", help="File for the report.")
@click.option("--resize-requests", is_flag=True, help="Try resize requests, which flex-start needs, with two machines.")
@click.option("--yes", is_flag=True, help="Launch. Without this flag the command only prints what it would do.")
@click.pass_context
def trial_gcp(
    ctx: click.Context,
    *,
    kubeconfig: str,
    context: str,
    project: str,
    template: str,
    instance_type: str,
    max_usd: float,
    report: str,
    resize_requests: bool,  # click's
    yes: bool,  # click's
) -> None:
    """It starts one machine and a gang of two, in a group of a GCPNodeTemplate. It checks repeated requests for the
    same names, how long Google takes to list and to delete a machine, and that no name is left in the group. On GKE the
    machines join the cluster for these minutes, and pods may be scheduled onto them: use a node pool with a taint.
    Every name is deleted, also after Ctrl-C. With --resize-requests it requests two machines by a resize request
    instead, and cancels a second request. If both work as expected, it adds the group to an annotation of the
    GCPNodeTemplate, which allows launches of flex-start in this group. After a crash of the command, its machines run
    and cost money until the next trial in this cluster, with any group, deletes them. The report names no project, key
    or user.

    \b
    Try:
      foreslice gcp trial --template gpu --max-usd 5
      foreslice gcp trial --template gpu --type g2-standard-4 --max-usd 5 --yes
      foreslice gcp trial --template flex --resize-requests --max-usd 100 --yes

    Exit code 0: all is as expected, or nothing was launched; 3: a check failed; 1: Google Cloud cannot be reached, or
    an hour of the machines costs more than --max-usd.
    """
    # With google-cloud-compute; `--help` needs none of it.
    from autoscaler.composition.gcp import gcp_trial, note_tried

    api = connected(kubeconfig, context)
    surroundings = surroundings_of(api)
    with as_input_error():
        gcp = GcpSettings(project=project)
        trial = gcp_trial(
            surroundings, gcp, template, instance_type=instance_type, resize_requests=resize_requests, on_outcome=show
        )
        cost, kind = trial.cost(), trial.group.instance_type
        click.echo(f"{trial.machines} machines of {kind} in group {trial.group.ref}: an hour of them costs ${cost}")
        click.echo("the command ends them within minutes; if it is killed, they run until the next trial deletes them")
        check_cost(cost, max_usd)
        if not yes:
            click.echo("nothing was launched; add --yes to launch")
            return
        about: dict[str, object] = {"instanceType": kind, "atMostUsd": str(cost)}
        code = carried_out(
            trial.run, trial.outcomes, report=report, about=about, sdks=("google-cloud-compute", "google-auth")
        )
        if trial.proven:
            note_tried(api, template, trial.group.ref)
            click.echo(f"noted in GCPNodeTemplate {template}: resize requests work in group {trial.group.ref}")
    ctx.exit(code)
