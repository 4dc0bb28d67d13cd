"""`foreslice aws trial`: a few machines on a real account for some minutes, and what EC2 made of each promise."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import click

from autoscaler.catalog_refresh.atomic_write import replace_file
from autoscaler.cli.common.commands import as_input_error, cluster_options
from autoscaler.cli.common.live import connected
from autoscaler.clock import SystemClock
from autoscaler.cluster.provider_objects import ProviderObjects
from autoscaler.cluster.resources import AWS_NODE_TEMPLATES, NAMESPACES
from autoscaler.errors import BadInputError
from autoscaler.settings.settings import AwsSettings
from instance_catalog.files.loader import load_catalog
from providers.plugins import Surroundings

if TYPE_CHECKING:
    from providers.aws.trial import Outcome

FAILED = 3


@click.command("trial")
@cluster_options
@click.option("--region", default="", metavar="NAME", help="[default: as the environment says]")
@click.option("--profile", default="", metavar="NAME", help="AWS profile. [default: as the environment says]")
@click.option("--template", required=True, metavar="NAME", help="AWSNodeTemplate to launch with.")
@click.option("--type", "instance_type", default="g6.xlarge", show_default=True, metavar="NAME", help="Instance type.")
@click.option("--max-usd", required=True, type=float, metavar="DOLLARS", help="The most that the trial may cost.")
@click.option("--report", default="aws-trial.json", show_default=True, metavar="PATH", help="File for the report.")
@click.option("--yes", is_flag=True, help="Really launch. Without it the command only says what it would do.")
@click.pass_context
def trial_aws(
    ctx: click.Context,
    kubeconfig: str,
    context: str,
    region: str,
    profile: str,
    template: str,
    instance_type: str,
    max_usd: float,
    report: str,
    yes: bool,  # click's
) -> None:
    """One on-demand machine, one spot machine and a gang of two, from the subnets, the image and the role of an
    AWSNodeTemplate. They do not join the cluster. Checked are tokens that are used again, tags, network interfaces, how
    long EC2 takes to show and to end a machine. Every machine is ended, also after Ctrl-C; after a crash the next
    trial ends what is left, and a machine ends itself after half an hour. The report names no account, key or user.

    \b
    Try:
      foreslice aws trial --template gpu --max-usd 5
      foreslice aws trial --template gpu --type g6.xlarge --max-usd 5 --yes

    Exit code 0: all is as expected, or nothing was launched; 3: something is not; 1: AWS cannot be asked, or the trial
    may cost more.
    """
    from autoscaler.composition.aws import aws_providers
    from providers.aws.provider import AwsProvider

    api = connected(kubeconfig, context)
    uid = str(api.get(NAMESPACES, "kube-system")["metadata"]["uid"])
    surroundings = Surroundings(uid, SystemClock(), ProviderObjects(api), load_catalog())
    with as_input_error():
        provider = aws_providers(surroundings, AwsSettings(region=region, profile=profile))[AWS_NODE_TEMPLATES.kind]
        assert isinstance(provider, AwsProvider)
        trial = provider.trial(template, instance_type, _show)
        cost = trial.cost()
        click.echo(f"five machines of {instance_type} for half an hour at most: up to ${cost}, spot below that")
        if cost > Decimal(str(max_usd)):
            step = "choose a smaller type with --type, or raise --max-usd"
            raise BadInputError(f"the trial may cost ${cost}, more than --max-usd {max_usd:g}", next_step=step)
        if not yes:
            click.echo("nothing was launched; add --yes to launch")
            return
        try:
            with _ended_like_ctrl_c():
                trial.run()
        finally:
            text = json.dumps(_report(trial.outcomes, instance_type, str(cost)), indent=2) + "\n"
            replace_file(Path(report), text)
            click.echo(f"report: {report}")
    ctx.exit(FAILED if any(one.passed is False for one in trial.outcomes) else 0)


def _show(outcome: Outcome) -> None:
    mark = {True: "ok", False: "NOT AS EXPECTED", None: "note"}[outcome.passed]
    click.echo(f"{mark:<16}{outcome.name} ({outcome.seconds:g} s): {outcome.message}")


def _report(outcomes: Sequence[Outcome], instance_type: str, cost: str) -> dict[str, object]:
    """What can be attached to a bug: versions and outcomes."""
    versions = {name: version(name) for name in ("foreslice", "boto3", "botocore")}
    rows = [{"check": o.name, "passed": o.passed, "message": o.message, "seconds": o.seconds} for o in outcomes]
    return {"versions": versions, "instanceType": instance_type, "atMostUsd": cost, "outcomes": rows}


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """SIGTERM and a closed terminal end the command as Ctrl-C does, so that the machines are ended first."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = {number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
