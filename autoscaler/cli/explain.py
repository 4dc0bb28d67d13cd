"""`foreslice explain`: why one pod waits, and what was done about it."""

from __future__ import annotations

import click

from autoscaler.checks.check import pool_conditions
from autoscaler.cli.common.live import cluster_options, connected, decided, read_store
from autoscaler.cli.common.output import output_option, print_data
from autoscaler.errors import BadInputError
from autoscaler.planning.policy import Policy
from autoscaler.report.explanation import explanation_lines, explanation_of
from instance_catalog.spelling import did_you_mean

# So that everything is looked at, not only what a plan needs to know.
_EVERYTHING = 1_000_000


@click.command()
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option("-n", "--namespace", default="default", show_default=True, help="Of a POD without one.")
@cluster_options
@output_option()
def explain(pod: str, namespace: str, kubeconfig: str, context: str, output: str) -> None:
    """Shows what the pod waits for, the offerings rejected for it by reason, the nearest miss, and what was done.

    It is planned anew from what the cluster shows, so it works without an installation and needs only read access.

    \b
    Try:
      foreslice explain train-0
      foreslice explain team-a/train-0 -o json | jq '.offerings[] | {offerings, reason}'
    """
    key = pod if "/" in pod else f"{namespace}/{pod}"
    live = decided(
        read_store(connected(kubeconfig, context)),
        policy=Policy(considered=_EVERYTHING, shown_fits=_EVERYTHING),
    )
    keys = {found.key: found for found in live.snapshot.pods}
    if key not in keys:
        step = did_you_mean(key, keys, "`kubectl get pods -A` lists them; -n sets the namespace", most=3)
        raise BadInputError(f"there is no pod {key}", next_step=step)
    checked = pool_conditions(live.snapshot, live.plan, live.catalog, policy=Policy(), now=live.now)
    found = explanation_of(keys[key], live.snapshot, live.plan, checked)
    if output != "table":
        print_data(found, output)
        return
    for line in explanation_lines(found):
        click.echo(line)
