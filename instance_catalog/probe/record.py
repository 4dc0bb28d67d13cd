"""The Probe record: the raw facts of a GPU node, as a file.

The facts are raw so that their interpretation can be corrected later without a new probe. Must not know the catalog.
"""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel


class ProbeError(Exception):
    """The reason why a node cannot be probed. `next_step` names what to install, start or allow."""

    def __init__(self, message: str, next_step: str) -> None:
        super().__init__(message)
        self.next_step = next_step


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", alias_generator=to_camel, populate_by_name=True, frozen=True)


class PciRecord(_Record):
    """The position of a device. `path` are the bridges between root and device; a lone root complex has none."""

    address: str = Field(description="0000:53:00.0")
    root: str | None = Field(default=None, description="pci0000:44; None: not in sysfs")
    path: tuple[str, ...] = ()
    numa_node: int | None = None


class MigProfileRecord(_Record):
    """A GPU instance profile; `id` is the hardware's number, not NVML's enum argument."""

    id: int
    name: str | None = Field(default=None, description="as newer drivers call it: 1g.10gb")
    slices: int
    instances: int
    multiprocessors: int
    copy_engines: int
    decoders: int
    encoders: int
    jpeg_engines: int
    ofa_engines: int
    memory_mib: int
    placements: tuple[tuple[int, int], ...] | None = Field(default=None, description="(start, size); None: not read")


class MigInstanceRecord(_Record):
    """A GPU instance that exists."""

    uuid: str
    profile_id: int
    start: int
    size: int


class MigRecord(_Record):
    """The MIG state of a GPU that supports it."""

    enabled: bool
    pending: bool
    profiles: tuple[MigProfileRecord, ...] = ()
    instances: tuple[MigInstanceRecord, ...] = ()


class NvLinkRecord(_Record):
    """Active NVLinks to one peer."""

    peer: str = Field(description='"switch", or the PCI address of a GPU or of what else there is')
    links: int


class FabricRecord(_Record):
    """Membership in an NVLink domain that may span nodes."""

    state: Literal["not-started", "in-progress", "completed"]
    cluster_uuid: str
    clique_id: int


class GpuRecord(_Record):
    """One GPU. None: NVML has no value, on this GPU or with this driver."""

    index: int
    minor: int
    uuid: str
    product_name: str
    brand: str
    architecture: str | None = None
    cuda_compute_capability: str
    memory_bytes: int | None = None
    pci: PciRecord
    addressing_mode: str | None = None
    module_id: int | None = None
    virtual: bool = False
    mig: MigRecord | None = None
    nv_links: tuple[NvLinkRecord, ...] = ()
    fabric: FabricRecord | None = None


class NicRecord(_Record):
    """One network card on the PCI bus. Ids are hexadecimal without 0x."""

    pci: PciRecord
    vendor: str
    device: str
    subsystem: str
    interfaces: tuple[str, ...] = ()
    rdma_devices: tuple[str, ...] = ()
    default_route: bool = False


class HostRecord(_Record):
    """The machine as its kernel sees it."""

    architecture: Literal["amd64", "arm64"]
    vcpu: int
    memory_ki_b: int = Field(alias="memoryKiB", description="MemTotal, which is less than the machine has")


class Probe(_Record):
    """A probed node. `notes` name the values that could not be read, with the reasons."""

    api_version: Literal["foreslice.dev/v1alpha1"] = "foreslice.dev/v1alpha1"
    kind: Literal["Probe"] = "Probe"
    taken_on: str = Field(pattern=r"^\d{4}-\d{2}-\d{2}$")
    host: HostRecord
    driver_version: str
    cuda_driver_version: str | None = None
    gpus: tuple[GpuRecord, ...]
    nics: tuple[NicRecord, ...] = ()
    notes: tuple[str, ...] = ()
