"""A client of an application that is not listening anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import anyio
import httpx
from starlette.applications import Starlette


@dataclass(frozen=True, slots=True)
class Browser:
    """Requests, one after the other."""

    app: Starlette

    def get(self, path: str, *, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """The answer to a GET."""
        return self.request("GET", path, headers=headers)

    def request(self, method: str, path: str, *, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """The answer."""

        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://foreslice.test") as client:
                return await client.request(method, path, headers=dict(headers or {}))

        return anyio.run(ask)
