"""`foreslice run`: the controller as a process."""

from __future__ import annotations

import logging
import signal
from datetime import timedelta
from pathlib import Path

import click
import yaml

from autoscaler.app import controller
from autoscaler.cli.choices import chosen_catalog
from autoscaler.clock import SystemClock
from autoscaler.errors import BadInputError
from autoscaler.kube.custom.schema import duration, duration_text
from autoscaler.kube.problem import did_you_mean
from autoscaler.settings import DEFAULTS, BatchSettings, LoopSettings, Settings

_BATCH = DEFAULTS.batch


def _duration(ctx: click.Context, param: click.Parameter, text: str) -> timedelta:
    try:
        return duration(text)
    except ValueError as error:
        raise click.BadParameter(str(error), ctx, param) from error


def _read_file(ctx: click.Context, param: click.Parameter, path: str | None) -> None:
    """Take the file's values as defaults, so that the environment and flags override them."""
    if path is None:
        return
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise BadInputError(f"{path} cannot be read: {error}", next_step="give a YAML file of settings") from error
    options = {option.opts[-1].removeprefix("--"): str(option.name) for option in ctx.command.params}
    options.pop("config")
    unknown = [str(key) for key in found if key not in options] if isinstance(found, dict) else [str(found)]
    if unknown:
        near = did_you_mean(unknown[0], options)
        step = f"did you mean {near!r}?" if near else f"the settings are: {', '.join(sorted(options))}"
        raise BadInputError(f"{path}: there is no setting {unknown[0]!r}", next_step=step)
    ctx.default_map = {options[key]: value for key, value in found.items()}


@click.command(context_settings={"auto_envvar_prefix": "FORESLICE"})
@click.option(
    "--config",
    metavar="FILE",
    is_eager=True,
    expose_value=False,
    callback=_read_file,
    show_envvar=True,
    help="YAML file of settings named like these flags; the environment overrides it, and flags override both.",
)
@click.option(
    "--kubeconfig", default="", metavar="PATH", show_envvar=True, help="[default: in a pod its service account]"
)
@click.option("--context", default="", metavar="NAME", show_envvar=True, help="[default: the current context]")
@click.option(
    "--catalog", multiple=True, metavar="DIR", show_envvar=True, help="More catalog files, over the shipped ones."
)
@click.option(
    "--batch-idle",
    callback=_duration,
    default=duration_text(_BATCH.idle),
    show_default=True,
    show_envvar=True,
    help="Quiet time after which changes are looked at.",
)
@click.option(
    "--batch-max",
    callback=_duration,
    default=duration_text(_BATCH.longest),
    show_default=True,
    show_envvar=True,
    help="The longest that a change waits for others.",
)
@click.option(
    "--resync",
    callback=_duration,
    default=duration_text(DEFAULTS.loop.resync),
    show_default=True,
    show_envvar=True,
    help="Look again at least this often.",
)
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    show_envvar=True,
)
def run(
    kubeconfig: str,
    context: str,
    catalog: tuple[str, ...],
    batch_idle: timedelta,
    batch_max: timedelta,
    resync: timedelta,
    log_level: str,
) -> None:
    """Watch a cluster, say what its pending pods need, and launch it for pools in mode Act.

    Pools in mode Observe, the default, change nothing but their own status and events. The cluster needs the custom
    resources of deploy/crds. Run one replica. Ends on SIGTERM after the round that is under way.
    """
    logging.basicConfig(level=log_level.upper(), format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    settings = Settings(
        loop=LoopSettings(resync=resync),
        batch=BatchSettings(idle=batch_idle, longest=batch_max),
        policy=DEFAULTS.policy,
    )
    types = chosen_catalog([Path(directory) for directory in catalog])
    running = controller(kubeconfig=kubeconfig, context=context, catalog=types, clock=SystemClock(), settings=settings)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: running.stop())
    running.run()
