"""The boot time-outs of machines, from node templates that set one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from typing import Final

from instance_catalog.frozen_map import FrozenMap
from providers.aws.node_template.template import GroupTemplates, Templates
from providers.contract import Clock, TemplateRef
from providers.errors import TemplateError
from providers.ttl_cache import TtlCache

# Templates are read from Kubernetes one by one, and every reconcile asks.
_LIFETIME: Final = timedelta(minutes=1)


class BootTimeouts:
    """Of all templates of one kind, at most a minute old."""

    def __init__(self, templates: Templates | GroupTemplates, clock: Clock) -> None:
        self._templates = templates
        self._read: TtlCache[Mapping[TemplateRef, timedelta]] = TtlCache(clock, _LIFETIME)

    def all(self) -> Mapping[TemplateRef, timedelta]:
        """The time-outs by template. A template that cannot be used is left out: its status has the reason."""
        return self._read.get("", lambda: FrozenMap(dict(self._found())))

    def _found(self) -> Iterator[tuple[TemplateRef, timedelta]]:
        for reference in self._templates.references():
            with suppress(TemplateError):
                said = self._templates.template(reference).boot_timeout
                if said is not None:
                    yield reference, said


class Booting:
    """Part of a provider. Also BootTimes."""

    _boot: BootTimeouts

    def boot_timeouts(self) -> Mapping[TemplateRef, timedelta]:
        return self._boot.all()
