"""Third-party providers, found by entry point, so that a cloud can be added without a change of this project.

A package declares in its pyproject.toml

    [project.entry-points."foreslice.providers"]
    mycloud = "my_package.foreslice:providers"

where `providers` is a ProviderFactory. providers/conformance.py has the checks that such a provider must pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Final, Protocol

from instance_catalog.dataclass import dataclass
from instance_catalog.types.catalog import Catalog
from providers.abilities import KubernetesObjects
from providers.contract import Clock, Provider

GROUP: Final = "foreslice.providers"


class PluginError(Exception):
    """A provider of a third party cannot be used; the message names the package and what to do."""


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The inputs of a provider: the cluster's identity (uid of kube-system), time, objects and the catalog."""

    cluster: str
    clock: Clock
    objects: KubernetesObjects
    catalog: Catalog


class ProviderFactory(Protocol):
    """Makes the providers of a package, by the kinds of their node templates."""

    def __call__(self, surroundings: Surroundings) -> Mapping[str, Provider]:
        """The providers. Called once, when the controller starts."""


def installed() -> Mapping[str, EntryPoint]:
    """The entry points that packages declare, by name; nothing is imported yet."""
    return {point.name: point for point in entry_points(group=GROUP)}


def plugged_in(
    surroundings: Surroundings, points: Iterable[EntryPoint], *, taken: Iterable[str] = ()
) -> dict[str, Provider]:
    """The providers of third parties, by template kind.

    `points` are of `installed`, `taken` kinds that are served already. Raises PluginError for a package that
    cannot be imported, is no factory, or serves a kind that another one serves.
    """
    owners = dict.fromkeys(taken, "Foreslice")
    providers: dict[str, Provider] = {}
    for point in sorted(points, key=lambda point: point.name):
        for kind, provider in _made(point, surroundings).items():
            if kind in owners:
                raise PluginError(f"{_name(point)} serves {kind}, as {owners[kind]} does: uninstall one of them")
            owners[kind] = _name(point)
            providers[kind] = provider
    return providers


def _made(point: EntryPoint, surroundings: Surroundings) -> Mapping[str, Provider]:
    try:
        factory = point.load()
    except (ImportError, AttributeError) as error:
        raise PluginError(f"{_name(point)} cannot be loaded: {error}. Reinstall or remove its package") from error
    if not callable(factory):
        raise PluginError(f"{_name(point)} is not a function: it must be a ProviderFactory (providers/plugins.py)")
    made: Mapping[str, Provider] = factory(surroundings)
    return made


def _name(point: EntryPoint) -> str:
    package = f" of {point.dist.name}" if point.dist else ""
    return f"provider {point.name!r}{package}"
