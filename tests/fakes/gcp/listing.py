"""Compute Engine's zones, accelerator types and machine types, and the billing catalogue, over loopback HTTP.

Paths and shapes as the REST transports of google-cloud-compute 1.56 and google-cloud-billing send and read them: int64
fields travel as text, aggregated lists by "zones/NAME", errors as {"error": {code, message, errors}}.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
PROJECT = "my-project"


@dataclass(frozen=True)
class Machine:
    """A machine type in one zone."""

    name: str
    zone: str
    cpus: int
    memory_mb: int
    accelerator: str = ""
    count: int = 0
    architecture: str = "X86_64"
    local_ssds: int = 0

    def as_json(self) -> Json:
        """As the API shows it."""
        devices = [{"guestAcceleratorType": self.accelerator, "guestAcceleratorCount": self.count}]
        disks = {"defaultInterface": "NVME", "partitionCount": self.local_ssds}
        return {
            "kind": "compute#machineType",
            "id": "1",
            "name": self.name,
            "zone": self.zone,
            "guestCpus": self.cpus,
            "memoryMb": self.memory_mb,
            "architecture": self.architecture,
            **({"accelerators": devices} if self.accelerator else {}),
            **({"bundledLocalSsds": disks} if self.local_ssds else {}),
        }


@dataclass(frozen=True)
class Sku:
    """A part that is billed; `usd` per `unit`."""

    description: str
    usd: str
    regions: Sequence[str] = ("us-central1",)
    unit: str = "h"

    def as_json(self) -> Json:
        """As the catalogue shows it."""
        whole, _, part = self.usd.partition(".")
        price = {"currencyCode": "USD", "units": whole, "nanos": int(part.ljust(9, "0"))}
        rates = [{"startUsageAmount": 0, "unitPrice": price}]
        expression = {"usageUnit": self.unit, "tieredRates": rates}
        return {
            "name": f"services/6F81-5844-456A/skus/{abs(hash(self.description)):X}",
            "description": self.description,
            "serviceRegions": list(self.regions),
            "pricingInfo": [{"pricingExpression": expression}],
        }


@dataclass
class FakeGcp:
    """A project. `denied` are paths' last words ("machineTypes") that are refused, `failures` answers that come first.

    Pages have `page_size` entries, whatever was asked for.
    """

    zones: dict[str, str] = field(default_factory=lambda: {"us-central1-a": "UP", "us-central1-b": "UP"})
    accelerators: list[tuple[str, str]] = field(default_factory=list)  # (type, zone)
    machines: list[Machine] = field(default_factory=list)
    skus: list[Sku] = field(default_factory=list)
    denied: set[str] = field(default_factory=set)
    failures: deque[tuple[int, str]] = field(default_factory=deque)
    page_size: int = 2
    calls: Counter[str] = field(default_factory=Counter)

    def answer(self, url: str) -> tuple[int, Json]:
        """(status, JSON)."""
        parts = urlsplit(url)
        query = {name: values[0] for name, values in parse_qs(parts.query).items()}
        kind = parts.path.rstrip("/").rpartition("/")[2]
        self.calls[kind] += 1
        if self.failures:
            return _error(*self.failures.popleft())
        if kind in self.denied:
            return _error(403, f"Required 'compute.{kind}.list' permission for 'projects/{PROJECT}'")
        if kind != "skus" and f"/projects/{PROJECT}/" not in parts.path:
            return _error(404, "The resource was not found")
        first = int(query.get("pageToken", 0) or 0)
        rows = self._rows(kind)
        after = str(first + self.page_size) if first + self.page_size < len(rows) else ""
        return 200, {**_body(kind, rows[first : first + self.page_size]), "nextPageToken": after}

    def _rows(self, kind: str) -> list[tuple[str, Json]]:
        """(zone, entry)."""
        match kind:
            case "zones":
                return [("", {"name": name, "status": status}) for name, status in self.zones.items()]
            case "acceleratorTypes":
                return [(zone, {"name": name, "zone": zone}) for name, zone in self.accelerators]
            case "machineTypes":
                return [(machine.zone, machine.as_json()) for machine in self.machines]
            case _:
                return [("", sku.as_json()) for sku in self.skus]


def _body(kind: str, rows: Sequence[tuple[str, Json]]) -> Json:
    if kind == "zones":
        return {"kind": "compute#zoneList", "items": [row for _, row in rows]}
    if kind == "skus":
        return {"skus": [row for _, row in rows]}
    scopes: dict[str, Json] = {"zones/empty": {"warning": {"code": "NO_RESULTS_ON_PAGE"}}}
    for zone, row in rows:
        scopes.setdefault(f"zones/{zone}", {kind: []})[kind].append(row)
    return {"kind": f"compute#{kind}AggregatedList", "items": scopes}


def _error(status: int, message: str) -> tuple[int, Json]:
    reason = {403: "forbidden", 404: "notFound", 429: "rateLimitExceeded"}.get(status, "backendError")
    errors = [{"message": message, "domain": "global", "reason": reason}]
    return status, {"error": {"code": status, "message": message, "errors": errors}}


class Server:
    """A fake on a loopback port, as a context manager."""

    def __init__(self, fake: FakeGcp) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(fake))
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})

    @property
    def url(self) -> str:
        """The endpoint for clients."""
        return f"http://127.0.0.1:{self._http.server_port}"

    def __enter__(self) -> Server:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


def _handler(fake: FakeGcp) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body leave in one write: a second small one would wait for an acknowledgement.
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            status, answer = fake.answer(self.path)
            self._send(status, answer)

        def _send(self, status: int, answer: Mapping[str, Any]) -> None:
            content = json.dumps(answer).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)
            self.wfile.flush()

        def log_message(self, *_: object) -> None:
            """Quiet."""

    return Handler
