"""EC2's offers in a region: types, the zones that have them, spot and list prices. Reads only.

Calls: DescribeInstanceTypes, DescribeInstanceTypeOfferings, DescribeSpotPriceHistory and, for each type, GetProducts.
Shapes as in botocore 1.44's service models.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final

from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.sources.sync import CloudListing, ListedAccelerator, ListedPrice, ListedType
from instance_catalog.types.instance_type import CapacityType
from providers.aws.errors import translated
from providers.aws.sales.prices import in_dollars, list_price
from providers.aws.session import Aws
from providers.contract import Clock
from providers.errors import PermissionDeniedError
from providers.listing import ListingPage, Row, Rows

TYPES: Final = "types"
ZONES: Final = "zones"
SPOT: Final = "spot prices"
PRICES: Final = "list prices"

_ARCHITECTURES: Final = {"x86_64": "amd64", "arm64": "arm64"}
_KINDS: Final = {
    "on-demand": CapacityType.ON_DEMAND,
    "spot": CapacityType.SPOT,
    "capacity-block": CapacityType.CAPACITY_BLOCK,
}
_VENDORS: Final = {"NVIDIA": "NVIDIA", "AMD": "AMD", "Habana": "Habana", "Qualcomm": "Qualcomm", "AWS": "AWS"}
_DENIED: Final = ("UnauthorizedOperation", "AccessDenied", "AccessDeniedException")


class AwsListing:
    """The listing of an account's region. `spot` False leaves out prices that change by the hour."""

    cloud: Final = "aws"

    def __init__(self, aws: Aws, clock: Clock, *, spot: bool = True) -> None:
        self._aws = aws
        self._clock = clock
        self._spot = spot

    @property
    def scope(self) -> str:
        """The region."""
        return self._aws.region

    @property
    def steps(self) -> tuple[str, ...]:
        """Types first: the other steps read only types with accelerators."""
        return (TYPES, ZONES, SPOT, PRICES) if self._spot else (TYPES, ZONES, PRICES)

    def page(self, step: str, token: str, so_far: Rows) -> ListingPage:
        """One page. Raises ProviderErrors; PermissionDeniedError names the IAM action that is missing."""
        match step:
            case "types":
                return self._types(token)
            case "zones":
                return self._zones(token, so_far)
            case "spot prices":
                return self._spot_prices(token, so_far)
            case _:
                return self._list_price(int(token or 0), so_far)

    def interpreted(self, rows: Rows, *, date: str) -> CloudListing:
        """Types with the zones that have them; those that no zone has are left out."""
        zones: dict[str, list[str]] = {}
        for row in rows.get(ZONES, ()):
            zones.setdefault(row["type"], []).append(row["zone"])
        types = tuple(_listed(row, zones[row["type"]]) for row in rows[TYPES] if row["type"] in zones)
        prices = tuple(
            ListedPrice(row["type"], row["place"], CapacityType(row["kind"]), Decimal(row["usd"]))
            for step in (SPOT, PRICES)
            for row in rows.get(step, ())
        )
        source = f"EC2 DescribeInstanceTypes and DescribeInstanceTypeOfferings in {self.scope}"
        price_source = "AWS price list (GetProducts) and EC2 DescribeSpotPriceHistory"
        return CloudListing(self.cloud, (self.scope,), source, date, types, prices, price_source)

    def _types(self, token: str) -> ListingPage:
        answer = self._asked("describe_instance_types", "DescribeInstanceTypes", MaxResults=100, **_at(token))
        rows = (_type_row(found) for found in answer["InstanceTypes"])
        return ListingPage(tuple(row for row in rows if row is not None), answer.get("NextToken", ""))

    def _zones(self, token: str, so_far: Rows) -> ListingPage:
        names = {row["type"] for row in so_far[TYPES]}
        answer = self._asked(
            "describe_instance_type_offerings",
            "DescribeInstanceTypeOfferings",
            LocationType="availability-zone",
            MaxResults=1000,
            **_at(token),
        )
        rows = tuple(
            {"type": found["InstanceType"], "zone": found["Location"]}
            for found in answer["InstanceTypeOfferings"]
            if found["InstanceType"] in names
        )
        return ListingPage(rows, answer.get("NextToken", ""))

    def _spot_prices(self, token: str, so_far: Rows) -> ListingPage:
        names = _sold_on_spot(so_far[TYPES])
        if not names or not in_dollars(self.scope):
            return ListingPage(())
        answer = self._asked(
            "describe_spot_price_history",
            "DescribeSpotPriceHistory",
            InstanceTypes=names,
            ProductDescriptions=["Linux/UNIX"],
            StartTime=self._clock.now(),  # the price that holds now is the newest one before it
            MaxResults=1000,
            **_at(token),
        )
        rows = tuple(
            {"type": p["InstanceType"], "place": p["AvailabilityZone"], "kind": "spot", "usd": p["SpotPrice"]}
            for p in sorted(answer["SpotPriceHistory"], key=lambda p: p["Timestamp"])
        )
        return ListingPage(rows, answer.get("NextToken", ""))

    def _list_price(self, index: int, so_far: Rows) -> ListingPage:
        """One page for each type, since the price list of a whole region has tens of thousands of products."""
        names = sorted(row["type"] for row in so_far[TYPES] if "on-demand" in row["kinds"])
        if index >= len(names):
            return ListingPage(())
        with _permitted("pricing:GetProducts"):
            price = list_price(self._aws, names[index])
        row = {"type": names[index], "place": self.scope, "kind": CapacityType.ON_DEMAND, "usd": str(price)}
        return ListingPage((row,) if price is not None else (), str(index + 1) if index + 1 < len(names) else "")

    def _asked(self, method: str, operation: str, **parameters: Any) -> Mapping[str, Any]:
        with _permitted(f"ec2:{operation}"), translated(operation):
            answer: Mapping[str, Any] = getattr(self._aws.ec2, method)(**parameters)
            return answer


@contextmanager
def _permitted(action: str) -> Iterator[None]:
    """Names the IAM action in a PermissionDeniedError. Errors about credentials have a next step already."""
    try:
        yield
    except PermissionDeniedError as error:
        if error.code not in _DENIED:
            raise
        step = f"allow {action} for the account that runs the sync; deploy/aws has a policy for people"
        raise PermissionDeniedError(
            f"{action} is not allowed: {error.message}", code=error.code, next_step=step
        ) from error


def _at(token: str) -> dict[str, str]:
    return {"NextToken": token} if token else {}


def _type_row(found: Mapping[str, Any]) -> Row | None:
    """The row of an instance type; None for one without accelerators, or of a kind that the catalog cannot hold."""
    architectures = found.get("ProcessorInfo", {}).get("SupportedArchitectures", [])
    architecture = next((_ARCHITECTURES[name] for name in architectures if name in _ARCHITECTURES), None)
    device = _device(found)
    if device is None or architecture is None:
        return None
    network = found.get("NetworkInfo", {})
    return {
        "type": found["InstanceType"],
        "architecture": architecture,
        "vcpu": found["VCpuInfo"]["DefaultVCpus"],
        "memory": f"{found['MemoryInfo']['SizeInMiB']}Mi",
        "kinds": [_KINDS[usage].value for usage in found.get("SupportedUsageClasses", ()) if usage in _KINDS],
        "network": network.get("NetworkPerformance", ""),
        "efa": network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        "nvme": found.get("InstanceStorageInfo", {}).get("TotalSizeInGB"),
        **device,
    }


def _device(found: Mapping[str, Any]) -> Row | None:
    """GPUs and Neuron devices; a part of a GPU (g6f) has Count 0 and a partition size."""
    lists: tuple[tuple[Sequence[Mapping[str, Any]], str], ...] = (
        (found.get("GpuInfo", {}).get("Gpus", ()), ""),
        (found.get("NeuronInfo", {}).get("NeuronDevices", ()), "AWS"),
    )
    for devices, vendor in lists:
        for device in devices:
            maker = vendor or device.get("Manufacturer", "")
            count = device.get("Count") or Fraction(str(device.get("GpuPartitionSize", 0))).limit_denominator(64)
            if maker in _VENDORS and count:
                size = device.get("MemoryInfo", {}).get("SizeInMiB")
                memory = f"{size}Mi" if size else None
                return {
                    "vendor": _VENDORS[maker],
                    "device": device["Name"],
                    "count": str(count),
                    "deviceMemory": memory,
                }
    return None


def _listed(row: Row, zones: Sequence[str]) -> ListedType:
    memory = Quantity.parse(row["deviceMemory"]) if row["deviceMemory"] else None
    return ListedType(
        name=row["type"],
        architecture=row["architecture"],
        vcpu=row["vcpu"],
        memory=Quantity.parse(row["memory"]),
        accelerator=ListedAccelerator(row["vendor"], row["device"], Fraction(row["count"]), memory),
        capacity_types=tuple(kind for kind in CapacityType if kind.value in row["kinds"]),
        zones=tuple(zones),
        network=row["network"],
        local_nvme_gb=row["nvme"],
        rdma_cards=row["efa"],
    )


def _sold_on_spot(rows: Sequence[Row]) -> list[str]:
    return sorted(row["type"] for row in rows if CapacityType.SPOT in row["kinds"])
