"""Machines to which accelerators are attached (GCP N1): every allowed pair is an instance type of its own.

Pure. The pairs become ordinary entries, so that defaults, overlays and checks treat them like written ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from instance_catalog.files.overlay import Source, Written
from instance_catalog.files.schema import AttachmentEntry, CatalogFile, MachineEntry
from instance_catalog.types.instance_type import Accelerator


def expanded(
    file: CatalogFile, raw: Mapping[str, Any], name: str, accelerators: Mapping[str, Accelerator]
) -> Iterator[Written]:
    """Every pair of a machine and an attachment within its bounds. `raw` is the text of `file`, called `name`.

    A pair is called <machine>+<count>x<API name of the accelerator>, as in n1-standard-8+1xnvidia-tesla-t4.
    """
    for index, attachment in enumerate(file.attachments):
        suffix = f"+{attachment.accelerator.count}x{_api_name(attachment, file.cloud or '', accelerators)}"
        written = raw["attachments"][index]
        attached = {key: written[key] for key in ("accelerator", "fabric") if key in written}
        for position, machine in enumerate(file.machines):
            if machine.vcpu <= attachment.max_vcpu and machine.memory <= attachment.max_memory:
                own = {key: value for key, value in raw["machines"][position].items() if key != "prices"}
                named = {**own, "name": machine.name + suffix, "machine": machine.name}
                priced = {**attached, **_prices(file, machine, attachment)}
                sources = (Source(name, ("machines", position), named), Source(name, ("attachments", index), priced))
                yield machine.name + suffix, sources


def _prices(file: CatalogFile, machine: MachineEntry, attachment: AttachmentEntry) -> dict[str, Any]:
    """Machine and accelerators are billed apart: nobody quotes the sum, so it is marked as a guess."""
    given = file.prices_as_of
    both = [kind for kind in machine.prices if kind in attachment.prices]
    if given is None or not both:
        return {}
    return {
        "prices": {
            kind.value: {
                "usdPerHour": str(machine.prices[kind] + attachment.prices[kind]),
                "region": given.region,
                "date": given.date,
                "guess": True,
            }
            for kind in both
        }
    }


def _api_name(attachment: AttachmentEntry, cloud: str, accelerators: Mapping[str, Accelerator]) -> str:
    use = attachment.accelerator
    model = accelerators.get(use.model)  # an unknown model is reported when the pair is checked
    known = model.api_names.get(cloud, use.model) if model else use.model
    return use.api_name or known
