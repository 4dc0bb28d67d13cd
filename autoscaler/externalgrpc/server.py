"""gRPC servers on addresses, through grpcio (extra foreslice[grpc]). Imported only if an address is set.

An address whose calls change anything requires a client certificate, unless it is a loopback address or a setting
allows it. It is bound when this replica begins to lead: a client whose connection is refused tries the next one behind
a Service, but would stay after an answer "not the leader".
"""

from __future__ import annotations

import ipaddress
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc
import structlog

from autoscaler.errors import ConfigurationError
from autoscaler.externalgrpc.messages import BEST_OPTIONS, EXPANDER, METHODS, PROVIDER
from autoscaler.externalgrpc.refusal import CallRefusedError, Status
from autoscaler.externalgrpc.wire import Json, Message, WireError, decode, encode
from instance_catalog.dataclass import dataclass

_LOG: Final = structlog.get_logger("foreslice.externalgrpc")
_MIB: Final = 1024 * 1024
_THREADS: Final = 8
_GRACE: Final = 5.0  # seconds


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits of grpcio, which refuses more as RESOURCE_EXHAUSTED before it decodes: bytes of a message, by the
    length in front of it, and calls at a time."""

    message: int
    calls: int


# The largest question of the provider names the nodes that go.
OF_PROVIDER: Final = Bounds(4 * _MIB, 64)
# Whoever reaches the expander may ask it, without a certificate. Each option has its whole pods, of some KiB.
OF_EXPANDER: Final = Bounds(32 * _MIB, 4)

Call = Callable[[str, Json], Json]
Counted = Callable[[str, str], None]


@dataclass(frozen=True, slots=True)
class Certificates:
    """Paths of PEM files; "" if there is none."""

    certificate: str = ""
    key: str = ""
    client_ca: str = ""


def credentials_of(address: str, files: Certificates, *, insecure: bool, mutual: bool) -> Any:
    """The server's credentials; None for a connection in clear. `mutual`: clients need a certificate, too.

    Raises ConfigurationError for an address that others may reach without them.
    """
    wanted = [("certificate", files.certificate), ("key", files.key), ("clientCa", files.client_ca)][: 2 + mutual]
    missing = [f"grpc.{name}" for name, path in wanted if not path]
    if len(missing) == len(wanted) and (insecure or is_loopback(address)):
        return None
    if missing:
        raise ConfigurationError(
            f"{address} needs {', '.join(missing)}: calls there would be open to everybody who reaches it",
            next_step="give the certificates (docs/cluster-autoscaler.md), or listen on a loopback address",
        )
    _read(files, mutual=mutual)  # a path that is wrong ends the process at its start, with a reason
    last = [_configuration(files, mutual=mutual)]

    def fetch() -> Any:
        """cert-manager replaces files while the process runs. What cannot be read leaves the last ones in force."""
        try:
            last[0] = _configuration(files, mutual=mutual)
        except ConfigurationError as error:
            _LOG.warning("certificates_not_read", error=str(error))
        return last[0]

    return grpc.dynamic_ssl_server_credentials(last[0], fetch, require_client_authentication=mutual)


def _configuration(files: Certificates, *, mutual: bool) -> Any:
    certificate, key, client_ca = _read(files, mutual=mutual)
    return grpc.ssl_server_certificate_configuration([(key, certificate)], root_certificates=client_ca)


def _read(files: Certificates, *, mutual: bool) -> tuple[bytes, bytes, bytes | None]:
    paths = [files.certificate, files.key, *([files.client_ca] if mutual else [])]
    found: list[bytes | None] = []
    for path in paths:
        try:
            found.append(Path(path).read_bytes())
        except OSError as error:
            raise ConfigurationError(
                f"{path} cannot be read: {error.strerror or error}",
                next_step="mount the Secret of the certificate there (settings grpc.certificate, key and clientCa)",
            ) from error
    certificate, key, client_ca = (*found, None)[:3]
    assert certificate is not None
    assert key is not None
    return certificate, key, client_ca


def is_loopback(address: str) -> bool:
    """True if only processes of this machine, or pod, reach an address."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class GrpcServer:
    """One service at an address, from `start` to `stop`. `counted` receives each method and its status."""

    def __init__(
        self,
        name: str,
        methods: Mapping[str, tuple[Message, Message]],
        call: Call,
        address: str,
        credentials: Any,
        counted: Counted,
        bounds: Bounds,
    ) -> None:
        self._bounds = bounds
        self._name, self._methods, self._call = name, methods, call
        self._address, self._credentials, self._counted = address, credentials, counted
        self._lock = threading.Lock()
        self._server: Any = None
        self.port = 0

    @staticmethod
    def of_provider(call: Call, address: str, credentials: Any, counted: Counted) -> GrpcServer:
        """Cluster Autoscaler's cloud provider."""
        return GrpcServer(PROVIDER, METHODS, call, address, credentials, counted, OF_PROVIDER)

    @staticmethod
    def of_expander(call: Call, address: str, credentials: Any, counted: Counted) -> GrpcServer:
        """Cluster Autoscaler's expander."""
        methods = {"BestOptions": BEST_OPTIONS}
        return GrpcServer(EXPANDER, methods, call, address, credentials, counted, OF_EXPANDER)

    def start(self) -> None:
        """Bind and answer, unless that was done. Raises ConfigurationError."""
        with self._lock:
            if self._server is not None:
                return
            server = grpc.server(
                ThreadPoolExecutor(_THREADS, thread_name_prefix="grpc"),
                options=[("grpc.max_receive_message_length", self._bounds.message), ("grpc.so_reuseport", 0)],
                maximum_concurrent_rpcs=self._bounds.calls,
            )
            handlers = {name: self._handler(name, *types) for name, types in self._methods.items()}
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(self._name, handlers),))
            address = f"[::]{self._address}" if self._address.startswith(":") else self._address
            try:
                self.port = self._bind(server, address)
            except RuntimeError as error:
                raise ConfigurationError(
                    f"{self._address} cannot be listened on",
                    next_step="end the process that uses it, or set another address (docs/settings.md, section serve)",
                ) from error
            server.start()
            self._server = server
            _LOG.info("listening", serves=self._name, address=self._address, port=self.port)

    def _bind(self, server: Any, address: str) -> int:
        if self._credentials is None:
            return int(server.add_insecure_port(address))
        return int(server.add_secure_port(address, self._credentials))

    def stop(self) -> None:
        """Finishes the running calls and closes."""
        with self._lock:
            if self._server is not None:
                self._server.stop(_GRACE).wait()

    def _handler(self, method: str, asked: Message, answered: Message) -> Any:
        # Decoded in the call, so that bytes that are no message are answered with a reason.
        return grpc.unary_unary_rpc_method_handler(partial(self._answer, method, asked, answered))

    def _answer(self, method: str, asked: Message, answered: Message, content: bytes, context: Any) -> bytes:
        status, message = Status.INVALID_ARGUMENT, ""
        try:
            answer = encode(answered, self._call(method, decode(asked, content)))
        except CallRefusedError as error:
            status, message = error.status, str(error)
        except WireError as error:
            message = str(error)
        except Exception as error:  # noqa: BLE001  # a bug must not leave the caller without an answer, nor tell it more
            _LOG.error("unexpected_error", method=method, exc_info=error)
            self._counted(method, "INTERNAL")
            context.abort(grpc.StatusCode.INTERNAL, "an error of Foreslice: its log has the traceback")
        else:
            self._counted(method, "OK")
            return answer
        _LOG.warning("call_refused", method=method, status=status.value, message=message)
        self._counted(method, status.value)
        context.abort(grpc.StatusCode[status.value], message)
        raise AssertionError("abort raises")
