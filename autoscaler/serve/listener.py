"""Applications on addresses: uvicorn, one thread for each address."""

from __future__ import annotations

import socket
import threading

import uvicorn
from starlette.applications import Starlette

from autoscaler.errors import ConfigurationError
from autoscaler.settings.settings import OFF


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of "host:port", ":port" (all addresses) or "[::1]:port". Raises ConfigurationError."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535 or host.count("[") != host.count("]"):
        raise ConfigurationError(
            f"{text!r} is not an address", next_step=f"write it like :8080 or 127.0.0.1:8080, or {OFF!r}"
        )
    return host.strip("[]"), int(port)


class Listener:
    """An application at an address, from `start` to `stop`. `serves` is its name in the log."""

    def __init__(self, app: Starlette, address: str, *, serves: str = "") -> None:
        self.serves = serves
        host, port = parse_address(address)
        try:
            # Bound here and not in the thread, so that an address in use ends the process with a reason.
            self._socket = _bound(host, port)
        except OSError as error:
            raise ConfigurationError(
                f"{address} cannot be listened on: {error.strerror or error}",
                next_step="end the process that uses it, or set another address (docs/settings.md, section serve)",
            ) from error
        # The log is the process's own, and a line for every scrape would bury the rest.
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", server_header=False)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=self._server.run, kwargs={"sockets": [self._socket]}, name=f"http {address}", daemon=True
        )

    @property
    def port(self) -> int:
        """The port, which the system chose if 0 was asked for."""
        return int(self._socket.getsockname()[1])

    @property
    def address(self) -> str:
        """The real address: host:port."""
        host = str(self._socket.getsockname()[0])
        return f"[{host}]:{self.port}" if ":" in host else f"{host}:{self.port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Finishes the running requests and closes."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(timeout=10)
        self._socket.close()


def _bound(host: str, port: int) -> socket.socket:
    if host:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=128)
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=128, dualstack_ipv6=True)
    return socket.create_server(("", port), backlog=128)
