"""Settings from one file, the environment and flags; each overrides those before it.

The values of one setting are never mixed: a list from the environment replaces the one of the file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import ValidationError

from autoscaler.errors import BadInputError, ConfigurationError
from autoscaler.settings.names import SECTIONS, SETTINGS, Setting, all_settings, camel_case
from autoscaler.settings.settings import OFF, LeaseSettings, LoopSettings, Settings
from autoscaler.settings.spans import span_text
from instance_catalog.spelling import did_you_mean

# A retry may be late by this factor (client-go tools/leaderelection, JitterFactor).
RETRY_JITTER: Final = 1.2
# Variables that the kubelet sets for Services whose names begin with foreslice.
_OF_A_SERVICE: Final = re.compile(r"_(SERVICE_(HOST|PORT)|PORT(_\d+_(TCP|UDP|SCTP))?)(_|$)")


def read_settings(
    path: Path | None = None, *, environment: Mapping[str, str] | None = None, flags: Mapping[str, object] | None = None
) -> Settings:
    """The settings of a process. `flags` are values by flag (--batch-idle), only those that were given.

    Raises BadInputError naming the file, variable or flag, and ConfigurationError for values in contradiction.
    """
    variables = os.environ if environment is None else environment
    values = {} if path is None else _read_file(path)
    _refuse_unknown_variables(variables)
    for setting in all_settings():
        # An empty variable counts as unset.
        for value in (variables.get(setting.variable) or None, (flags or {}).get(setting.flag)):
            if value is not None:
                values.setdefault(setting.section, {})[setting.field] = value
    try:
        settings = SETTINGS.validate_python(values)
    except ValidationError as error:
        raise _explained(error, path, variables, flags or {}) from error
    _check(settings)
    return settings


def _check(settings: Settings) -> None:
    """Checks that the type of a value cannot express."""
    for setting in all_settings():
        value = getattr(getattr(settings, setting.section), setting.field)
        if value == timedelta(0) and setting.key != "batch.idle":
            raise ConfigurationError(
                f"{setting.key} is 0s, which never ends", next_step=f"leave it out for {setting.default_text}"
            )
    _check_lease(settings.lease)
    _check_staleness(settings.loop)
    if settings.sync.lists and not settings.sync.directory:
        raise ConfigurationError(
            "sync lists a cloud, and sync.directory does not say where to keep it",
            next_step="give a directory that can be written to; the chart mounts one",
        )
    if settings.batch.idle > settings.batch.longest:
        raise ConfigurationError(
            "batch.idle is longer than batch.longest", next_step="wait for quiet at most as long as for everything"
        )


def _check_lease(lease: LeaseSettings) -> None:
    """The bounds of k8s.io/client-go tools/leaderelection (v1.36, NewLeaderElector), and those of a Lease's fields."""
    step = "leave them out, or keep the proportions of 2s, 10s and 15s"
    if lease.duration % timedelta(seconds=1):
        raise ConfigurationError(
            f"lease.duration ({span_text(lease.duration)}) is not a whole number of seconds, as a Lease requires",
            next_step="round it up",
        )
    if lease.renew_deadline >= lease.duration:
        raise ConfigurationError(
            f"lease.renewDeadline ({span_text(lease.renew_deadline)}) must be shorter than lease.duration "
            f"({span_text(lease.duration)}): the leader must have stopped before another replica begins",
            next_step=step,
        )
    if lease.renew_deadline <= lease.retry * RETRY_JITTER:
        raise ConfigurationError(
            f"lease.renewDeadline ({span_text(lease.renew_deadline)}) must be longer than {RETRY_JITTER} times "
            f"lease.retry ({span_text(lease.retry)}): the leader must have time to renew",
            next_step=step,
        )


def _check_staleness(loop: LoopSettings) -> None:
    """Resources are listed at half of loop.stale, so a reconcile must run by then."""
    if loop.stale < 2 * loop.resync:
        raise ConfigurationError(
            f"loop.stale ({span_text(loop.stale)}) must be at least twice loop.resync ({span_text(loop.resync)}), the "
            "longest time between two reconciles",
            next_step="raise loop.stale with loop.resync",
        )


# -- the file


def _read_file(path: Path) -> dict[str, Any]:
    """The file's values by section and field, as Python names them."""
    try:
        found = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise BadInputError(f"{path} cannot be read: {error}", next_step="give a YAML file of settings") from error
    known = {section.name: {camel_case(s.field): s.field for s in section.settings()} for section in SECTIONS}
    sections = _mapping({} if found is None else found, str(path))
    read: dict[str, Any] = {}
    for name, content in sections.items():
        _refuse_unknown(name, known, str(path))
        values = _mapping({} if content is None else content, f"{path}: {name}")
        for key in values:
            _refuse_unknown(key, known[name], f"{path}: {name}")
        read[name] = {known[name][key]: value for key, value in values.items() if value is not None}
    return read


def _mapping(found: object, where: str) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise BadInputError(
            f"{where} is {found!r}, not a mapping", next_step="write sections such as `batch: {idle: 1s}`"
        )
    return {str(key): value for key, value in found.items()}


def _refuse_unknown(name: str, known: Mapping[str, object], where: str) -> None:
    if name not in known:
        step = did_you_mean(name, known, f"the settings are: {', '.join(sorted(known))}")
        raise BadInputError(f"{where}: there is no setting {name!r}", next_step=step)


def _refuse_unknown_variables(variables: Mapping[str, str]) -> None:
    # Of commands: where they keep what the next one need not work out again (cli.md).
    others = {"FORESLICE_CONFIG", "FORESLICE_CACHE_DIR"}
    known = {setting.variable for setting in all_settings()} | others
    for name in sorted(variables):
        if name.startswith("FORESLICE_") and name not in known and not _OF_A_SERVICE.search(name):
            _refuse_unknown(name, dict.fromkeys(known), "the environment")


# -- errors


def _explained(
    error: ValidationError, path: Path | None, variables: Mapping[str, str], flags: Mapping[str, object]
) -> BadInputError:
    """The first mistake, by the name under which the value was given; the value itself is not repeated."""
    first = error.errors(include_url=False)[0]
    location = [str(part) for part in first["loc"][:2]]
    setting = next((s for s in all_settings() if [s.section, s.field] == location), None)
    if setting is None:
        return BadInputError(f"{'.'.join(location)}: {first['msg']}", next_step="docs/settings.md lists the settings")
    if setting.flag in flags:
        where = setting.flag
    elif variables.get(setting.variable):
        where = setting.variable
    else:
        where = f"{path}: {setting.key}"
    problem = str(first["msg"]).removeprefix("Value error, ")
    return BadInputError(
        f"{where}: {problem}", next_step=f"{setting.key} is {setting.unit}, such as {_example(setting)}"
    )


def _example(setting: Setting) -> str:
    return setting.default_text or {"list": "a,b", "US dollars": "12.50", "number": "10"}.get(setting.unit, OFF)
