"""Lists what Compute Engine sells to a project: machine types with accelerators, by zone, with prices. Read-only.

Calls: zones.list, acceleratorTypes.aggregatedList, machineTypes.aggregatedList, and services.skus.list of the Cloud
Billing catalogue. Shapes as in google-cloud-compute 1.56 and google-cloud-billing. N1 machines with attached
accelerators are no machine types of Google: the pairs that the catalog knows are listed in the zones that have both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any, Final, TypeVar

from google.api_core import exceptions as api
from google.auth import exceptions as auth
from google.auth.credentials import AnonymousCredentials
from google.cloud import billing_v1, compute_v1
from requests import exceptions as http

from instance_catalog.kubernetes.quantity import Quantity
from instance_catalog.sources.sync import CloudListing, ListedAccelerator, ListedPrice, ListedType
from instance_catalog.types.clouds import region_of
from instance_catalog.types.instance_type import CapacityType
from providers.errors import AmbiguousError, PermissionDeniedError, TemplateError, ThrottledError, UnclassifiedError
from providers.gcp.errors import enabled, message_of
from providers.gcp.listing_prices import composed, prices_of_file, service, sku_row
from providers.listing import ListingPage, Row, Rows

ZONES: Final = "zones"
ACCELERATORS: Final = "accelerators"
TYPES: Final = "types"
PRICES: Final = "prices"

_SECONDS: Final = 60.0
_ARCHITECTURES: Final = {"X86_64": "amd64", "ARM64": "arm64", "": "amd64"}
_LOCAL_SSD_GB: Final = 375
_NANO: Final = Decimal(1_000_000_000)
_PAIR: Final = re.compile(r"(?P<machine>.+)\+(?P<count>\d+)x(?P<accelerator>.+)")  # n1-standard-8+2xnvidia-tesla-t4
_COMPUTE: Final = "compute.googleapis.com"
_BILLING: Final = "cloudbilling.googleapis.com"
_CREDENTIALS_STEP = "run `gcloud auth application-default login`, or set GOOGLE_APPLICATION_CREDENTIALS to a key file"
C = TypeVar("C")


@contextmanager
def translated(what: str, permission: str, host: str, *, step: str) -> Iterator[None]:
    """Raise ProviderErrors, with the cause chained. `permission` is the IAM permission (or API) that `what` needs,
    `host` the API that it calls, and `step` the next step if the call is refused."""
    try:
        yield
    except (auth.GoogleAuthError, api.Unauthorized) as error:
        raise PermissionDeniedError(
            f"{what}: {message_of(error)}", code=type(error).__name__, next_step=_CREDENTIALS_STEP
        ) from error
    except api.Forbidden as error:
        if any(word in error.message for word in ("rateLimitExceeded", "Quota exceeded")):
            raise ThrottledError(f"{what}: {error.message}", code="rateLimitExceeded") from error
        message, advice = f"{permission} is not allowed: {error.message}", enabled("", error.message, host) or step
        raise PermissionDeniedError(message, code="Forbidden", next_step=advice) from error
    except api.TooManyRequests as error:
        raise ThrottledError(f"{what}: {error.message}", code="TooManyRequests") from error
    except (api.NotFound, api.BadRequest) as error:
        advice = "check the project's id: `gcloud projects list`"
        raise TemplateError(f"{what}: {error.message}", code=type(error).__name__, next_step=advice) from error
    except (api.ServerError, api.RetryError, http.RequestException) as error:
        advice = f"run the sync again; if this stays, check the network to {host}"
        raise AmbiguousError(f"{what}: {message_of(error)}", code=type(error).__name__, next_step=advice) from error
    except api.GoogleAPICallError as error:
        raise UnclassifiedError(f"{what}: {error}", code=type(error).__name__) from error


class GcpListing:
    """The listing of a project. Types of the catalog (`known`) are listed even without accelerators.

    `prices` is a file that replaces the billing catalogue. `endpoint` replaces Google in tests, without credentials.
    """

    cloud: Final = "gcp"
    steps: Final = (ZONES, ACCELERATORS, TYPES, PRICES)

    def __init__(
        self,
        project: str,
        *,
        known: Collection[str] = (),
        prices: Path | None = None,
        endpoint: str = "",
    ) -> None:
        self._project = project
        self._known = frozenset(known)
        self._pairs = tuple(found for name in sorted(self._known) if (found := _PAIR.fullmatch(name)) is not None)
        self._prices = prices
        self._endpoint = endpoint
        self._clients: dict[str, Any] = {}

    @property
    def scope(self) -> str:
        """The id of the project."""
        return self._project

    def page(self, step: str, token: str, so_far: Rows) -> ListingPage:
        """One page. Raises ProviderErrors; PermissionDeniedError names the missing permission."""
        match step:
            case "zones":
                return self._zones(token)
            case "accelerators":
                return self._accelerators(token)
            case "types":
                return self._types(token)
            case _:
                return self._skus(token) if self._prices is None else ListingPage(prices_of_file(self._prices))

    def interpreted(self, rows: Rows, *, date: str) -> CloudListing:
        """One entry for each type name, with the zones that are up and have both the machine and its accelerator."""
        up = {row["zone"] for row in rows[ZONES]}
        sold = {(row["accelerator"], row["zone"]) for row in rows[ACCELERATORS]}
        by_name: dict[str, list[Row]] = {}
        for row in rows[TYPES]:
            if row["zone"] in up and (not row["device"] or (row["device"], row["zone"]) in sold):
                by_name.setdefault(row["type"], []).append(row)
        types = tuple(_listed(found) for name, found in by_name.items() if found[0]["device"] or name in self._known)
        types += tuple(self._attached(by_name, sold))
        source = f"Compute Engine machineTypes and acceleratorTypes of project {self._project}"
        regions = tuple(sorted({region_of(zone) for zone in up}))
        if self._prices is not None:
            return CloudListing(self.cloud, regions, source, date, types, tuple(_given(rows)), self._prices.name)
        prices = tuple(composed(types, rows.get(PRICES, ())))
        price_source = "sums of SKUs of the Cloud Billing catalogue (a guess)"
        return CloudListing(self.cloud, regions, source, date, types, prices, price_source, prices_are_guesses=True)

    def _attached(
        self, by_name: Mapping[str, Sequence[Row]], sold: Collection[tuple[str, str]]
    ) -> Iterator[ListedType]:
        for pair in self._pairs:
            rows = [row for row in by_name.get(pair["machine"], ()) if (pair["accelerator"], row["zone"]) in sold]
            if rows:
                device = {"device": pair["accelerator"], "count": int(pair["count"])}
                yield _listed([{**row, **device, "type": pair[0]} for row in rows])

    def _zones(self, token: str) -> ListingPage:
        answer = self._answer(
            compute_v1.ZonesClient,
            "list",
            "compute.zones.list",
            project=self._project,
            max_results=500,
            page_token=token,
        )
        return ListingPage(tuple({"zone": z.name} for z in answer.items if z.status == "UP"), answer.next_page_token)

    def _accelerators(self, token: str) -> ListingPage:
        answer = self._answer(
            compute_v1.AcceleratorTypesClient,
            "aggregated_list",
            "compute.acceleratorTypes.list",
            project=self._project,
            max_results=500,
            page_token=token,
        )
        rows = (
            {"accelerator": found.name, "zone": _zone(place)}
            for place, scoped in answer.items.items()
            for found in scoped.accelerator_types
        )
        return ListingPage(tuple(rows), answer.next_page_token)

    def _types(self, token: str) -> ListingPage:
        answer = self._answer(
            compute_v1.MachineTypesClient,
            "aggregated_list",
            "compute.machineTypes.list",
            project=self._project,
            max_results=500,
            page_token=token,
        )
        listed = {*self._known, *(pair["machine"] for pair in self._pairs)}
        rows = (
            _type_row(found, _zone(place))
            for place, scoped in answer.items.items()
            for found in scoped.machine_types
            if found.accelerators or found.name in listed
        )
        return ListingPage(tuple(rows), answer.next_page_token)

    def _skus(self, token: str) -> ListingPage:
        answer = self._answer(
            billing_v1.CloudCatalogClient,
            "list_skus",
            "services.skus.list of the Cloud Billing API",
            parent=service(),
            currency_code="USD",
            page_size=5000,
            page_token=token,
        )
        rows = (sku_row(sku.description, sku.service_regions, _hourly(sku)) for sku in answer.skus if _is_hourly(sku))
        return ListingPage(tuple(row for row in rows if row is not None), answer.next_page_token)

    def _answer(self, kind: Callable[..., Any], method: str, permission: str, **request: Any) -> Any:
        """The first page of a pager: one call."""
        host = _COMPUTE
        step = f"grant {permission} to the account of the sync; roles/compute.viewer has the compute permissions"
        if kind is billing_v1.CloudCatalogClient:
            host = _BILLING
            enable = f"gcloud services enable {host} --project {self._project}"
            step = f"enable the API ({enable}), or give prices in a file (docs/catalog.md, Sync with a cloud)"
        with translated(f"{kind.__name__}.{method}", permission, host, step=step):
            client = self._clients.get(kind.__name__) or self._client(kind)
            call = getattr(client, method)
            return next(iter(call(request=request, retry=None, timeout=_SECONDS).pages))

    def _client(self, kind: Callable[..., Any]) -> Any:
        options = {"api_endpoint": self._endpoint} if self._endpoint else None
        nobody = AnonymousCredentials() if self._endpoint else None  # type: ignore[no-untyped-call]  # not annotated
        made = kind(credentials=nobody, transport="rest", client_options=options)
        self._clients[kind.__name__] = made
        return made


def _zone(place: str) -> str:
    return place.removeprefix("zones/")


def _type_row(found: compute_v1.MachineType, zone: str) -> Row:
    device = found.accelerators[0] if found.accelerators else None
    return {
        "type": found.name,
        "zone": zone,
        "vcpu": found.guest_cpus,
        "memory": f"{found.memory_mb}Mi",
        "architecture": _ARCHITECTURES.get(found.architecture, "amd64"),
        "device": device.guest_accelerator_type if device is not None else "",
        "count": device.guest_accelerator_count if device is not None else 0,
        "nvme": found.bundled_local_ssds.partition_count * _LOCAL_SSD_GB or None,
    }


def _listed(rows: Sequence[Row]) -> ListedType:
    first = rows[0]
    vendor = "NVIDIA" if first["device"].startswith("nvidia") else "Google"
    device = ListedAccelerator(vendor, first["device"], Fraction(first["count"])) if first["device"] else None
    return ListedType(
        name=first["type"],
        architecture=first["architecture"],
        vcpu=first["vcpu"],
        memory=Quantity.parse(first["memory"]),
        accelerator=device,
        capacity_types=(),
        zones=tuple(row["zone"] for row in rows),
        local_nvme_gb=first["nvme"],
    )


def _given(rows: Rows) -> Iterator[ListedPrice]:
    for row in rows.get(PRICES, ()):
        yield ListedPrice(row["type"], row["place"], CapacityType(row["kind"]), Decimal(row["usd"]))


def _is_hourly(sku: billing_v1.Sku) -> bool:
    return any(info.pricing_expression.usage_unit in ("h", "GiBy.h") for info in sku.pricing_info)


def _hourly(sku: billing_v1.Sku) -> Decimal:
    """The current price, from its last tier: the first tier is sometimes free."""
    rate = sku.pricing_info[-1].pricing_expression.tiered_rates[-1].unit_price
    return Decimal(rate.units) + Decimal(rate.nanos) / _NANO
