"""The providers that the settings name, by the kinds of their node templates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from autoscaler.cluster.resources import KWOK_NODE_TEMPLATES
from autoscaler.composition.kwok import KwokMachines
from autoscaler.errors import ConfigurationError
from autoscaler.settings.settings import Settings
from instance_catalog.kubernetes.profile import KubernetesProfile
from instance_catalog.spelling import did_you_mean
from providers.abilities import Announcer
from providers.contract import Provider
from providers.kwok.provider import KwokProvider
from providers.plugins import PluginError, Surroundings, installed, plugged_in

AT_ONCE: Final = 8
"""Requests to the API server in flight: its connections beside those of the watches (cluster/client/transport.py)."""


def providers_of(surroundings: Surroundings, profile: KubernetesProfile, settings: Settings) -> Mapping[str, Provider]:
    """Built-in providers and those of third parties. Raises ConfigurationError."""
    found: dict[str, Provider] = {}
    third_parties = installed()
    for name in settings.cluster.providers:
        if name in _BUILT_IN:
            found |= _BUILT_IN[name](surroundings, profile, settings)
        elif name in third_parties:
            try:
                found |= plugged_in(surroundings, [third_parties[name]], taken=found)
            except PluginError as error:
                step = "or take it out of cluster.providers"
                raise ConfigurationError(str(error), next_step=step) from error
        else:
            known = sorted({*_BUILT_IN, *third_parties})
            step = did_you_mean(name, known, f"the providers are: {', '.join(known)}")
            raise ConfigurationError(f"cluster.providers names {name!r}, which does not exist", next_step=step)
    return found


def interruption_announcer(settings: Settings) -> Announcer | None:
    """The source of a cloud's interruption notices; None if it has none."""
    if "aws" not in settings.cluster.providers or not settings.aws.queue:
        return None
    from autoscaler.composition.aws import aws_announcer  # boto3 is an extra

    return aws_announcer(settings.aws)


def _kwok(surroundings: Surroundings, profile: KubernetesProfile, _: Settings) -> Mapping[str, Provider]:
    machines = KwokMachines(surroundings.objects, surroundings.catalog, profile)
    return {KWOK_NODE_TEMPLATES.kind: KwokProvider(surroundings.objects, machines, at_once=AT_ONCE)}


def _aws(surroundings: Surroundings, _: KubernetesProfile, settings: Settings) -> Mapping[str, Provider]:
    try:
        from autoscaler.composition.aws import aws_providers  # boto3 is an extra
    except ModuleNotFoundError as error:
        step = "install foreslice[aws]"
        raise ConfigurationError(f"the provider aws cannot be used: {error}", next_step=step) from error
    return aws_providers(surroundings, settings.aws)


def _gcp(surroundings: Surroundings, _: KubernetesProfile, settings: Settings) -> Mapping[str, Provider]:
    try:
        from autoscaler.composition.gcp import gcp_providers  # Google's clients are an extra
    except ModuleNotFoundError as error:
        step = "install foreslice[gcp]"
        raise ConfigurationError(f"the provider gcp cannot be used: {error}", next_step=step) from error
    return gcp_providers(surroundings, settings.gcp)


_BUILT_IN: Final = {"aws": _aws, "gcp": _gcp, "kwok": _kwok}
