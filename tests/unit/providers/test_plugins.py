"""Providers of third parties are found by entry point, and what is wrong with one is said with its name."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from typing import cast

import pytest

from autoscaler.clock import VirtualClock
from instance_catalog.files.loader import load_catalog
from providers.abilities import KubernetesObjects
from providers.contract import Provider
from providers.plugins import GROUP, PluginError, Surroundings, installed, plugged_in
from providers.simulated.cloud import SimulatedCloud
from providers.simulated.provider import SimulatedProvider

SURROUNDINGS = Surroundings("uid", VirtualClock(), cast(KubernetesObjects, None), load_catalog())
NOT_CALLABLE = "not a function"


def moon(surroundings: Surroundings) -> dict[str, Provider]:
    """A package's factory."""
    return {"MoonNodeTemplate": SimulatedProvider(SimulatedCloud(surroundings.clock), "moon")}


def point(attribute: str, name: str = "moon") -> EntryPoint:
    return EntryPoint(name, f"{__name__}:{attribute}", GROUP)


def test_a_package_serves_its_template_kind() -> None:
    (kind, provider), *rest = plugged_in(SURROUNDINGS, [point("moon")]).items()
    assert (kind, provider.name, rest) == ("MoonNodeTemplate", "moon", [])


def test_nothing_is_installed_beside_the_project() -> None:
    assert installed() == {}


@pytest.mark.parametrize(
    ("points", "taken", "message"),
    [
        pytest.param([point("sun")], (), "provider 'moon' cannot be loaded", id="no such attribute"),
        pytest.param([EntryPoint("moon", "nowhere:x", GROUP)], (), "Reinstall or remove", id="no such module"),
        pytest.param([point("NOT_CALLABLE")], (), "must be a ProviderFactory", id="no function"),
        pytest.param([point("moon")], ("MoonNodeTemplate",), "as Foreslice does", id="a kind of ours"),
        pytest.param(
            [point("moon"), point("moon", "again")], (), "serves MoonNodeTemplate, as provider 'again'", id="twice"
        ),
    ],
)
def test_what_is_wrong_is_named(points: list[EntryPoint], taken: tuple[str, ...], message: str) -> None:
    with pytest.raises(PluginError, match=message):
        plugged_in(SURROUNDINGS, points, taken=taken)
