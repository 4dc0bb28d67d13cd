"""Machines whose slices are known: published by a project, or derived by hand from the driver's code."""

from __future__ import annotations

from fractions import Fraction

from instance_catalog.drivers.profile import parse_driver_set
from instance_catalog.kubernetes.profile import profile_for
from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.kubernetes.resource_slice import ResourceSlice
from instance_catalog.prediction.predict import predict
from instance_catalog.types.instance_type import Accelerator, Fabric, InstanceType, NetworkCard, PciPlacement, RootGroup

PCIE_ONLY = Fabric()


def gpu(
    model: str,
    product_name: str | None,
    architecture: str,
    capability: str,
    memory: str | None,
    *,
    mig_table: str | None = None,
    virtual: bool = False,
) -> Accelerator:
    return Accelerator(
        key=f"nvidia-{model.lower()}",
        vendor="NVIDIA",
        model=model,
        product_name=product_name,
        architecture=architecture,
        cuda_compute_capability=capability,
        brand="Nvidia",
        memory=Quantity.parse(memory) if memory else None,
        api_memory=Quantity.parse("32Gi"),
        mig_table=mig_table,
        virtual=virtual,
    )


def machine(
    name: str,
    accelerator: Accelerator | None,
    count: int,
    *,
    cloud: str = "aws",
    architecture: str = "amd64",
    placements: tuple[PciPlacement, ...] = (),
    cards: tuple[NetworkCard, ...] = (),
    topology: str | None = None,
    fabric: Fabric = PCIE_ONLY,
    min_driver: str | None = None,
) -> InstanceType:
    return InstanceType(
        cloud=cloud,
        name=name,
        architecture=architecture,
        vcpu=96,
        memory=Quantity.parse("1152Gi"),
        accelerator=accelerator,
        accelerator_count=Fraction(count),
        placements=placements,
        network_cards=cards,
        topology=topology,
        fabric=fabric,
        min_driver=min_driver,
    )


A100_40 = gpu("A100-40", "NVIDIA A100-SXM4-40GB", "Ampere", "8.0.0", "40Gi", mig_table="a100-40gb")
A100_80 = gpu("A100-80", "NVIDIA A100-SXM4-80GB", "Ampere", "8.0.0", "80Gi", mig_table="a100-80gb")
H100 = gpu("H100", "NVIDIA H100 80GB HBM3", "Hopper", "9.0.0", "81559Mi", mig_table="h100-80gb")
H200 = gpu("H200", "NVIDIA H200", "Hopper", "9.0.0", "143771Mi", mig_table="h200")
L4 = gpu("L4", "NVIDIA L4", "Ada Lovelace", "8.9.0", "23034Mi")
L4_VGPU = gpu("L4-3Q", "NVIDIA L4-3Q", "Ada Lovelace", "8.9.0", "3Gi", virtual=True)
UNNAMED = gpu("RTX-PRO-4500", None, "Blackwell", "12.0.0", None)
GB200 = gpu("GB200", "NVIDIA GB200", "Blackwell", "10.0.0", "189471Mi", mig_table="gb200")
GB300 = gpu("GB300", "NVIDIA GB300", "Blackwell", "10.3.0", "284208Mi", mig_table="gb300")
TPU_V6E = Accelerator(key="google-tpu-v6e", vendor="Google", model="TPU v6e", node_label="tpu-v6e-slice")
TRAINIUM = Accelerator(key="aws-trainium2", vendor="AWS", model="Trainium2")

_P4D = [("10", "1c"), ("10", "1d"), ("20", "1c"), ("20", "1d"), ("90", "1c"), ("90", "1d"), ("a0", "1c"), ("a0", "1d")]


def _card(kind: str, address: str, subsystem: str, numa: int) -> NetworkCard:
    return NetworkCard(kind, PciPlacement(f"0000:{address}.0", f"pci0000:{address[:2]}", numa), subsystem)


def p4d() -> InstanceType:
    """EKS p4d.24xlarge (kubernetes-sigs/dranet examples/aws_eks_examples/gpu-efa)."""
    return machine(
        "p4d.24xlarge",
        A100_40,
        8,
        placements=tuple(PciPlacement(f"0000:{bus}:{slot}.0", f"pci0000:{bus}") for bus, slot in _P4D),
        cards=(
            NetworkCard("ena", PciPlacement("0000:10:01.0", "pci0000:10", 0), "ec20", primary=True),
            _card("efa", "10:1b", "efa0", 0),
            _card("efa", "20:1b", "efa0", 0),
            _card("efa", "90:1b", "efa0", 1),
            _card("efa", "a0:1b", "efa0", 1),
            _card("ena", "20:01", "ec20", 0),
            _card("ena", "90:01", "ec20", 1),
            _card("ena", "a0:01", "ec20", 1),
        ),
    )


def h100x8() -> InstanceType:
    """Eight H100 on eight roots, of which the first is verified and the others are groups."""
    roots = ("pci0000:44", *(RootGroup(i) for i in range(1, 8)))
    efa = (NetworkCard("efa", PciPlacement(pcie_root=root), "efa1") for root in roots for _ in range(4))
    return machine(
        "h100x8",
        H100,
        8,
        placements=tuple(PciPlacement(pcie_root=root) for root in roots),
        cards=(NetworkCard("ena", primary=True), *efa),
    )


def grace_blackwell(accelerator: Accelerator) -> InstanceType:
    """AKS ND128isr_GB300_v6 and OKE BM.GPU.GB200-v3.4: same PCI addresses (kubernetes-sigs/dranet examples)."""
    domains = ("0008", "0009", "0018", "0019")
    return machine(
        f"{accelerator.model}x4",
        accelerator,
        4,
        cloud="azure",
        architecture="arm64",
        placements=tuple(PciPlacement(f"{d}:06:00.0", f"pci{d}:00", 0 if d < "0010" else 1) for d in domains),
        fabric=Fabric("NVLink", "NVL72", 1800, (18,)),
    )


def trainium(name: str, efa: int) -> InstanceType:
    cards = (NetworkCard("ena", primary=True), *(NetworkCard("efa") for _ in range(efa)))
    return machine(name, TRAINIUM, 16, cards=cards)


def tpu(chips: int = 8) -> InstanceType:
    return machine("ct6e-standard-8t", TPU_V6E, chips, cloud="gcp", topology="2x4")


def slices_of(machine: InstanceType, drivers: str, version: str = "1.36") -> tuple[ResourceSlice, ...]:
    """The slices that the drivers publish on the machine."""
    return predict(machine, parse_driver_set(drivers), kubernetes=profile_for(version), node_name="n")
