"""What EC2 has to sell: without limit until a test says otherwise."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

from tests.fakes.ec2.errors import ApiError, shortage
from tests.fakes.ec2.geography import Geography
from tests.fakes.ec2.machines import Behaviour, Machine, Order

PLENTY: Final = 1_000_000


class Stock:
    """Limits by (type, zone, market), types that are not sold, quotas in vCPUs by market."""

    def __init__(self, geography: Geography) -> None:
        self._geography = geography
        self._limits: dict[tuple[str, str, str], int] = {}
        self._withdrawn: set[tuple[str, str]] = set()
        self._shortages: list[tuple[str, str, datetime, datetime]] = []
        self._quotas: dict[str, int] = {}
        self._prices: dict[tuple[str, str], str] = {}

    def limit(self, instance_type: str, zone: str, machines: int, *, market: str = "on-demand") -> None:
        """Have so many machines of a type in a zone, outside reservations."""
        self._limits[instance_type, zone, market] = machines

    def withdraw(self, instance_type: str, zone: str) -> None:
        """Do not sell a type in a zone at all."""
        self._withdrawn.add((instance_type, zone))

    def shortage(self, instance_type: str, zone: str, *, since: datetime, until: datetime) -> None:
        """Have none left for a time, in any market."""
        self._shortages.append((instance_type, zone, since, until))

    def quota(self, market: str, vcpus: int) -> None:
        """Allow the account so many vCPUs. Blocks and reservations of blocks do not count."""
        self._quotas[market] = vcpus

    def spot_price(self, instance_type: str, zone: str, usd_per_hour: str) -> None:
        """What spot costs there now; types without one cost a third of their list price."""
        self._prices[instance_type, zone] = usd_per_hour

    def spot_price_of(self, instance_type: str, zone: str) -> str | None:
        """The price that was set."""
        return self._prices.get((instance_type, zone))

    def quota_of(self, market: str) -> int | None:
        """The quota that was set."""
        return self._quotas.get(market)

    def offered(self, instance_type: str, zone: str) -> bool:
        """Whether a type is sold in a zone."""
        return instance_type in self._geography.types and (instance_type, zone) not in self._withdrawn

    def check(self, order: Order) -> None:
        """Raise what is wrong with a type and a zone, whatever there is in stock."""
        architecture = self._geography.architecture(order.instance_type)
        if architecture is None:
            raise ApiError("InvalidParameterValue", f"Invalid value '{order.instance_type}' for InstanceType.")
        if not self.offered(order.instance_type, order.zone):
            text = (
                f"Your requested instance type ({order.instance_type}) is not supported in your requested Availability"
            )
            raise ApiError("Unsupported", f"{text} Zone ({order.zone}).")
        image = self._geography.images[order.image]
        if image.architecture != architecture:
            text = f"The architecture '{architecture}' of the specified instance type does not match the architecture"
            raise ApiError("InvalidParameterValue", f"{text} '{image.architecture}' of the specified AMI.")

    def free(self, order: Order, machines: Iterable[Machine], now: datetime, behaviour: Behaviour) -> int:
        """How many machines of an order can be had outside reservations. Raises the quota's error."""
        taken = [m for m in machines if not m.reservation and m.occupies(now, behaviour)]
        within = self._within_quota(order, taken, now)
        kind = (order.instance_type, order.zone)
        if any((t, z) == kind and since <= now < until for t, z, since, until in self._shortages):
            return 0
        limit = self._limits.get((*kind, order.market), PLENTY)
        used = sum((m.order.instance_type, m.order.zone, m.order.market) == (*kind, order.market) for m in taken)
        return min(within, max(limit - used, 0))

    def shortage_of(self, order: Order) -> ApiError:
        """The answer when an order finds nothing."""
        return shortage(order.instance_type, order.zone)

    def _within_quota(self, order: Order, taken: Iterable[Machine], now: datetime) -> int:
        quota = self._quotas.get(order.market)
        if quota is None:
            return PLENTY
        vcpus = self._geography.vcpus
        used = sum(vcpus(m.order.instance_type) for m in taken if m.order.market == order.market and m.alive(now))
        free = (quota - used) // vcpus(order.instance_type)
        if free <= 0:
            if order.market == "spot":
                raise ApiError("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
            text = f"You have requested more vCPU capacity than your current vCPU limit of {quota} allows"
            raise ApiError("VcpuLimitExceeded", f"{text} for the instance bucket of the specified instance type.")
        return free
