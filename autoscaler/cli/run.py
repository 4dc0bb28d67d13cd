"""`foreslice run`: the controller as a process."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import Final

import click

from autoscaler.cli.common.commands import Command
from autoscaler.cli.common.terminal import behind
from autoscaler.clock import SystemClock
from autoscaler.composition.build import controller
from autoscaler.serve.logs import log_to_stderr
from autoscaler.settings.load import read_settings
from autoscaler.settings.names import Setting, all_settings

# Names of the same options in other commands work here as well.
_ALSO: Final = {"--cluster-kubeconfig": ("--kubeconfig",), "--cluster-context": ("--context",)}


def _setting_options(command: Command) -> Command:
    """A flag for each setting, in the order of docs/settings.md. Values stay text: settings/load.py reads them."""
    for setting in reversed(all_settings()):
        names = (setting.flag, *_ALSO.get(setting.flag, ()), _parameter(setting))
        command = click.option(*names, metavar=setting.unit.upper(), help=_help(setting))(command)
    return command


def _help(setting: Setting) -> str:
    default = f"; default {setting.default_text}" if setting.default_text else ""
    return f"{setting.reason} [{setting.variable}{default}]"


def _parameter(setting: Setting) -> str:
    return setting.flag.removeprefix("--").replace("-", "_")


@click.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    envvar="FORESLICE_CONFIG",
    show_envvar=True,
    help="YAML file of settings (docs/settings.md); the environment overrides it, and flags override both.",
)
@_setting_options
def run(config: Path | None, **flags: str | None) -> None:
    """Pools in mode Observe, the default, write only their own status and Events. The cluster needs the custom
    resources of deploy/crds. Of several replicas, only the leader acts. On SIGTERM, the process finishes the current
    reconcile and exits.
    """
    given = {setting.flag: value for setting in all_settings() if (value := flags[_parameter(setting)]) is not None}
    settings = read_settings(config, flags=given)
    # Fields are made printable, and the colours of a console are meant.
    log_to_stderr(settings.log, behind(sys.stderr))
    running = controller(settings, SystemClock())
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: running.stop())
    running.run()
