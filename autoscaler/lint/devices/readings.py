"""The values that a selector reads of a device, as text."""

from __future__ import annotations

from collections.abc import Iterable

from autoscaler.cel.common.values import MISSING, QuantityCell, Unknown, Value
from autoscaler.cel.interpreter.device import DeviceView
from autoscaler.cel.interpreter.reads import Path
from instance_catalog.kubernetes.semver import SemanticVersion

ABSENT = "(absent)"
AT_RUN_TIME = "(not known before launch)"


def readings(view: DeviceView, paths: Iterable[Path] | None) -> tuple[tuple[str, str], ...]:
    """(name, value) of every path, by name; nothing where the paths are computed."""
    driver = view.root.find("driver")
    return tuple(sorted((path_name(path, driver), reading(view, path)) for path in paths or ()))


def path_name(path: Path, driver: str) -> str:
    """The shortest form of a path: names in the driver's own domain are written without it."""
    group, domain, identifier = path
    if not identifier:
        return group
    return identifier if domain == driver else f"{domain}/{identifier}"


def reading(view: DeviceView, path: Path) -> str:
    return _text(look_up(view, path))


def look_up(view: DeviceView, path: Path) -> Value:
    """The CEL value at a path, or MISSING."""
    group, domain, identifier = path
    value = view.root.find(group)
    return value.find(domain).find(identifier) if identifier else value


def _text(value: Value) -> str:
    match value:
        case _ if value is MISSING:
            return ABSENT
        case Unknown():
            return AT_RUN_TIME
        case QuantityCell():
            return str(value.quantity)
        case SemanticVersion():
            return _version(value)
        case bool():
            return str(value).lower()
        case list():
            return f"[{', '.join(_text(item) for item in value)}]"
        case _:
            return str(value)


def _version(found: SemanticVersion) -> str:
    text = f"{found.major}.{found.minor}.{found.patch}"
    if found.prerelease:
        text += f"-{'.'.join(str(part) for part in found.prerelease)}"
    return f"{text}+{'.'.join(found.build)}" if found.build else text
