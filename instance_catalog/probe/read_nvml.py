"""NVML's side of a probe. The only module that uses pynvml; calls as kubernetes-sigs/dra-driver-nvidia-gpu v0.4.1 makes
them (cmd/gpu-kubelet-plugin/nvlib.go), names as NVIDIA/go-nvlib has them.

Values that a GPU or an older driver does not offer are left out, with a note. A GPU that does not answer ends the
probe: half a node must not become a catalog entry.
"""

from __future__ import annotations

import ctypes
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from instance_catalog.probe.read_host import pci_record, read_host, read_nics
from instance_catalog.probe.record import (
    FabricRecord,
    GpuRecord,
    MigInstanceRecord,
    MigProfileRecord,
    MigRecord,
    NvLinkRecord,
    Probe,
    ProbeError,
)

T = TypeVar("T")

# NVML's numbers, by which go-nvlib names them (pkg/nvlib/device/device.go).
_BRANDS: Final = {
    1: "Quadro",
    2: "Tesla",
    3: "NVS",
    4: "Grid",
    5: "GeForce",
    6: "Titan",
    7: "NvidiaVApps",
    8: "NvidiaVPC",
    9: "NvidiaVCS",
    10: "NvidiaVWS",
    11: "NvidiaCloudGaming",
    12: "QuadroRTX",
    13: "NvidiaRTX",
    14: "Nvidia",
    15: "GeForceRTX",
    16: "TitanRTX",
}
_ARCHITECTURES: Final = {
    2: "Kepler",
    3: "Maxwell",
    4: "Pascal",
    5: "Volta",
    6: "Turing",
    7: "Ampere",
    8: "Ada Lovelace",
    9: "Hopper",
    10: "Blackwell",
    13: "Rubin",
}
_ADDRESSING_MODES: Final = {0: "None", 1: "HMM", 2: "ATS"}
_FABRIC_STATES: Final = {1: "not-started", 2: "in-progress", 3: "completed"}
_SWITCH: Final = 2  # NVML_NVLINK_DEVICE_TYPE_SWITCH
_VGPU: Final = 2  # NVML_GPU_VIRTUALIZATION_MODE_VGPU


def probe(*, taken_on: str, host_root: Path = Path("/")) -> Probe:
    """The record of this node; `taken_on` is today (ISO), `host_root` the parent of the node's /proc and /sys.

    Raises ProbeError.
    """
    with _opened() as nvml:
        return _Reading(nvml, host_root).record(taken_on)


@contextmanager
def _opened() -> Iterator[ModuleType]:
    try:
        import pynvml
    except ImportError as error:
        raise ProbeError("the package nvidia-ml-py is not installed", "pip install 'foreslice[probe]'") from error
    try:
        pynvml.nvmlInit()
        try:
            yield pynvml
        finally:
            pynvml.nvmlShutdown()
    except pynvml.NVMLError as error:
        raise _why(pynvml, error) from error


def _why(nvml: ModuleType, error: Any) -> ProbeError:
    """The error for the user of the probe, from NVML's error code."""
    known = {
        nvml.NVML_ERROR_LIBRARY_NOT_FOUND: (
            "libnvidia-ml.so.1 was not found",
            "install the NVIDIA driver; in a container, use the runtime class nvidia or mount the driver's libraries",
        ),
        nvml.NVML_ERROR_DRIVER_NOT_LOADED: (
            "the NVIDIA kernel driver is not loaded",
            "install the NVIDIA driver, or load it with `modprobe nvidia`",
        ),
        nvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: (
            "libnvidia-ml.so.1 and the loaded kernel driver are of different versions",
            "reboot the node, or reload the kernel driver, so that the installed driver is the one that runs",
        ),
        nvml.NVML_ERROR_NO_PERMISSION: (
            "the GPUs may not be opened",
            "run the probe as root; in Kubernetes, privileged as in deploy/probe-job.yaml",
        ),
        nvml.NVML_ERROR_GPU_IS_LOST: (
            "a GPU is lost: it fell off the bus",
            "drain the node and reboot it, or probe another node of the type",
        ),
        nvml.NVML_ERROR_FUNCTION_NOT_FOUND: (
            "the NVIDIA driver is too old for a function that every probe needs",
            "update the NVIDIA driver to 450 or newer",
        ),
    }
    message, step = known.get(error.value, (f"NVML failed: {error}", "see whether `nvidia-smi` works on the node"))
    return ProbeError(message, step)


class _Reading:
    """One pass over the node's GPUs; `_notes` collects what could not be read."""

    def __init__(self, nvml: ModuleType, host_root: Path) -> None:
        self._nvml = nvml
        self._root = host_root
        self._notes: dict[str, None] = {}

    def record(self, taken_on: str) -> Probe:
        nvml = self._nvml
        count = nvml.nvmlDeviceGetCount()
        if count == 0:
            step = "see whether `lspci -d 10de:` lists one, and whether it was given to this machine or container"
            raise ProbeError("NVML works, but there is no NVIDIA GPU", step)
        cuda = self._optional("cudaDriverVersion", nvml.nvmlSystemGetCudaDriverVersion)
        gpus = tuple(self._gpu(index) for index in range(count))
        return Probe(
            taken_on=taken_on,
            host=read_host(self._root),
            driver_version=nvml.nvmlSystemGetDriverVersion(),
            cuda_driver_version=None if cuda is None else f"{cuda // 1000}.{cuda % 1000 // 10}",
            gpus=tuple(sorted(gpus, key=lambda gpu: gpu.minor)),
            nics=read_nics(self._root),
            notes=tuple(self._notes),
        )

    def _gpu(self, index: int) -> GpuRecord:
        nvml = self._nvml
        handle = nvml.nvmlDeviceGetHandleByIndex(index)
        major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
        architecture = self._optional("architecture", nvml.nvmlDeviceGetArchitecture, handle)
        memory = self._optional("memory", nvml.nvmlDeviceGetMemoryInfo, handle)
        mode = self._optional("addressingMode", nvml.nvmlDeviceGetAddressingMode, handle)
        module = self._optional("moduleID", lambda: nvml.nvmlDeviceGetModuleId(handle))
        virtualization = self._optional("virtualization", nvml.nvmlDeviceGetVirtualizationMode, handle)
        return GpuRecord(
            index=index,
            minor=nvml.nvmlDeviceGetMinorNumber(handle),
            uuid=nvml.nvmlDeviceGetUUID(handle),
            product_name=nvml.nvmlDeviceGetName(handle),
            brand=_BRANDS.get(nvml.nvmlDeviceGetBrand(handle), "Unknown"),
            architecture=None if architecture is None else _ARCHITECTURES.get(architecture, "Unknown"),
            cuda_compute_capability=f"{major}.{minor}.0",
            memory_bytes=None if memory is None else memory.total,
            pci=pci_record(self._root, _address(nvml.nvmlDeviceGetPciInfo(handle))),
            addressing_mode=None if mode is None else _ADDRESSING_MODES.get(mode),
            module_id=module,
            virtual=virtualization == _VGPU,
            mig=self._mig(handle),
            nv_links=self._nv_links(handle),
            fabric=self._fabric(handle),
        )

    def _mig(self, handle: Any) -> MigRecord | None:
        nvml = self._nvml
        mode = self._optional("MIG mode", nvml.nvmlDeviceGetMigMode, handle)
        if mode is None:
            return None
        arguments = range(nvml.NVML_GPU_INSTANCE_PROFILE_COUNT)
        return MigRecord(
            enabled=bool(mode[0]),
            pending=bool(mode[1]),
            profiles=tuple(p for p in (self._mig_profile(handle, argument) for argument in arguments) if p),
            instances=tuple(self._mig_instances(handle)),
        )

    def _mig_profile(self, handle: Any, argument: int) -> MigProfileRecord | None:
        """The profile of an enum argument; None if the GPU has no such profile, or the driver does not support it."""
        nvml = self._nvml
        absent = (nvml.NVML_ERROR_NOT_SUPPORTED, nvml.NVML_ERROR_INVALID_ARGUMENT)
        info = None
        for version in (2, 1):
            try:
                info = nvml.nvmlDeviceGetGpuInstanceProfileInfo(handle, argument, version)
                break
            except nvml.NVMLError as error:
                if error.value in absent:
                    return None
                if error.value != nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                    raise
        if info is None:
            self._note("MIG profiles", "the driver is too old")
            return None
        return MigProfileRecord(
            id=info.id,
            name=_text(getattr(info, "name", "")).removeprefix("MIG ") or None,
            slices=info.sliceCount,
            instances=info.instanceCount,
            multiprocessors=info.multiprocessorCount,
            copy_engines=info.copyEngineCount,
            decoders=info.decoderCount,
            encoders=info.encoderCount,
            jpeg_engines=info.jpegCount,
            ofa_engines=info.ofaCount,
            memory_mib=info.memorySizeMB,
            placements=self._optional("MIG placements", self._placements, handle, info.id),
        )

    def _placements(self, handle: Any, profile_id: int) -> tuple[tuple[int, int], ...]:
        nvml = self._nvml
        count = ctypes.c_uint()
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile_id, None, ctypes.byref(count))
        array = (nvml.c_nvmlGpuInstancePlacement_t * count.value)()
        nvml.nvmlDeviceGetGpuInstancePossiblePlacements(handle, profile_id, array, ctypes.byref(count))
        return tuple(sorted((place.start, place.size) for place in array[: count.value]))

    def _mig_instances(self, handle: Any) -> Iterator[MigInstanceRecord]:
        nvml = self._nvml
        for index in range(self._optional("MIG devices", nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0):
            try:
                device = nvml.nvmlDeviceGetMigDeviceHandleByIndex(handle, index)
            except nvml.NVMLError_NotFound:
                continue
            found = self._optional("MIG devices", self._mig_instance, handle, device)
            if found is not None:
                yield found

    def _mig_instance(self, handle: Any, device: Any) -> MigInstanceRecord:
        nvml = self._nvml
        instance = nvml.nvmlDeviceGetGpuInstanceById(handle, nvml.nvmlDeviceGetGpuInstanceId(device))
        info = nvml.nvmlGpuInstanceGetInfo(instance)
        return MigInstanceRecord(
            uuid=nvml.nvmlDeviceGetUUID(device),
            profile_id=info.profileId,
            start=info.placement.start,
            size=info.placement.size,
        )

    def _nv_links(self, handle: Any) -> tuple[NvLinkRecord, ...]:
        nvml = self._nvml
        peers: Counter[str] = Counter()
        for link in range(nvml.NVML_NVLINK_MAX_LINKS):
            try:
                active = nvml.nvmlDeviceGetNvLinkState(handle, link)
            except (nvml.NVMLError_InvalidArgument, nvml.NVMLError_NotSupported):
                break  # links are numbered without gaps
            if active:
                peers[self._optional("NVLink peers", self._peer, handle, link) or "unknown"] += 1
        return tuple(NvLinkRecord(peer=peer, links=count) for peer, count in sorted(peers.items()))

    def _peer(self, handle: Any, link: int) -> str:
        nvml = self._nvml
        kind = self._optional("NVLink peer types", nvml.nvmlDeviceGetNvLinkRemoteDeviceType, handle, link)
        return "switch" if kind == _SWITCH else _address(nvml.nvmlDeviceGetNvLinkRemotePciInfo(handle, link))

    def _fabric(self, handle: Any) -> FabricRecord | None:
        nvml = self._nvml
        info = nvml.c_nvmlGpuFabricInfoV_t()
        if self._optional("fabric", nvml.nvmlDeviceGetGpuFabricInfoV, handle, ctypes.byref(info)) is None:
            return None
        state = _FABRIC_STATES.get(info.state & 0xFF)  # one byte in NVML's struct, four in pynvml's
        cluster = uuid.UUID(bytes=bytes(info.clusterUuid))
        if state is None or cluster.int == 0:
            return None
        return FabricRecord.model_validate(
            {"state": state, "clusterUuid": str(cluster), "cliqueId": info.cliqueId},
        )

    def _optional(self, what: str, call: Callable[..., T], *arguments: Any) -> T | None:
        """The result of the call; None if the GPU does not support it, the driver is too old, or root is needed."""
        nvml = self._nvml
        try:
            return call(*arguments)
        except nvml.NVMLError as error:
            match error.value:
                case nvml.NVML_ERROR_NOT_SUPPORTED:
                    return None
                case nvml.NVML_ERROR_FUNCTION_NOT_FOUND:
                    self._note(what, "the driver is too old")
                case nvml.NVML_ERROR_NO_PERMISSION:
                    self._note(what, "this needs root")
                case _:
                    raise
            return None

    def _note(self, what: str, reason: str) -> None:
        self._notes[f"{what}: not read, {reason}"] = None


def _address(info: Any) -> str:
    """00000000:53:00.0 → 0000:53:00.0, as sysfs and the driver write it."""
    domain, _, rest = _text(info.busId).lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}"


def _text(value: Any) -> str:
    """Some of pynvml's structs give text, some bytes."""
    return value.decode() if isinstance(value, bytes) else str(value)
