"""The rules that recognise a container as a DRA driver: the table data/drivers/daemonsets.yaml as values.

Does not depend on DaemonSets; drivers/daemonsets.py applies the table to them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from instance_catalog import package_data
from instance_catalog.dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """The place of a container's setting: an environment variable, an argument, or either of them."""

    environment: str | None = None
    argument: str | None = None


@dataclass(frozen=True, slots=True)
class OptionSetting:
    """A setting that becomes an option of the driver's profile.

    `ignored` are values that mean the default; a `switch` has no value. With `says` the option is set if the command
    line contains that text: a filter in CEL has blanks, and is no value of one word.
    """

    option: str
    setting: Setting
    ignored: frozenset[str] = frozenset()
    switch: bool = False
    says: str = ""


@dataclass(frozen=True, slots=True)
class DriverRecognition:
    """The rule that recognises a container as a driver, and reads its profile from it."""

    profile: str
    images: frozenset[str]  # last part of the image's repository
    command: str | None  # a word of the command line, if several plugins share an image
    gates: Setting | None
    options: tuple[OptionSetting, ...]


@cache
def driver_recognition() -> tuple[DriverRecognition, ...]:
    return tuple(_recognition(row) for row in package_data.contents("drivers")["daemonsets"]["recognition"])


def _recognition(row: Mapping[str, Any]) -> DriverRecognition:
    return DriverRecognition(
        profile=row["profile"],
        images=frozenset(row["images"]),
        command=row.get("command"),
        gates=Setting(**row["gates"]) if "gates" in row else None,
        options=tuple(_option(option) for option in row.get("options", ())),
    )


def _option(row: Mapping[str, Any]) -> OptionSetting:
    return OptionSetting(
        row["option"],
        Setting(row.get("environment"), row.get("argument")),
        frozenset(map(str, row.get("ignored", ()))),
        row.get("switch", False),
        row.get("says", ""),
    )
