"""Over a real socket with grpcio's own client: the calls of Cluster Autoscaler's loop, certificates, broken callers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from autoscaler.cluster.api import list_all
from autoscaler.cluster.resources import LAUNCH_BATCHES
from autoscaler.errors import ConfigurationError
from autoscaler.externalgrpc.kubernetes_types import NODE
from autoscaler.externalgrpc.messages import METHODS, PROVIDER
from autoscaler.externalgrpc.server import Certificates, GrpcServer, credentials_of
from autoscaler.externalgrpc.wire import Json, decode, encode
from tests.unit.externalgrpc.cluster import Cluster

TIMEOUT = 20.0  # of a call; a loaded machine is slow


class Client:
    """Cluster Autoscaler's side of the connection."""

    def __init__(self, port: int, credentials: Any = None) -> None:
        address = f"localhost:{port}"
        self.channel = (
            grpc.insecure_channel(address) if credentials is None else grpc.secure_channel(address, credentials)
        )

    def call(self, method: str, **asked: Any) -> Json:
        question, answer = METHODS[method]
        return decode(answer, self.raw(method, encode(question, asked)))

    def raw(self, method: str, content: bytes) -> bytes:
        found: bytes = self.channel.unary_unary(f"/{PROVIDER}/{method}")(content, timeout=TIMEOUT)
        return found


@pytest.fixture
def counted() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def client(cluster: Cluster, counted: list[tuple[str, str]]) -> Iterator[Client]:
    def count(method: str, status: str) -> None:
        counted.append((method, status))

    server = GrpcServer.of_provider(
        lambda method, asked: cluster.provider.call(method, asked), "127.0.0.1:0", None, count
    )
    server.start()
    made = Client(server.port)
    yield made
    made.channel.close()
    server.stop()


def loop_of(client: Client) -> list[Json]:
    """The calls of one loop, as static_autoscaler.go and clusterstate.go make them (2026-08-22)."""
    client.call("Refresh")
    groups: list[Json] = client.call("NodeGroups").get("nodeGroups", [])
    for group in groups:
        group["size"] = client.call("NodeGroupTargetSize", id=group["id"])["targetSize"]
        group["template"] = client.call("NodeGroupTemplateNodeInfo", id=group["id"])
        group["nodes"] = client.call("NodeGroupNodes", id=group["id"]).get("instances", [])
        group["options"] = client.call("NodeGroupGetOptions", id=group["id"], defaults=b"\x09\x00")
    return groups


def test_a_whole_loop(client: Client, cluster: Cluster) -> None:
    assert client.call("GPULabel")["label"]
    first, *_ = loop_of(client)
    assert first["size"] == 0
    assert first["options"] == {}
    node = decode(NODE, first["template"]["nodeBytes"])
    assert node["metadata"]["labels"]["node.kubernetes.io/instance-type"] == "g6.xlarge"
    assert first["template"]["resourceSliceBytes"]
    client.call("NodeGroupIncreaseSize", id=first["id"], delta=1)
    assert client.call("NodeGroupTargetSize", id=first["id"]) == {"targetSize": 1}
    cluster.run(minutes=10)
    second, *_ = loop_of(client)
    assert second["id"] == first["id"]
    assert [instance["status"] for instance in second["nodes"]] == [{"instanceState": 1}]
    client.call("NodeGroupDeleteNodes", id=first["id"], nodes=[{"providerID": second["nodes"][0]["id"]}])
    assert client.call("NodeGroupTargetSize", id=first["id"]) == {"targetSize": 0}
    client.call("Cleanup")


def test_slices_are_sent_only_if_the_setting_says_so(client: Client, cluster: Cluster) -> None:
    cluster.slices = False
    cluster.restart_service()
    first, *_ = loop_of(client)
    assert list(first["template"]) == ["nodeBytes"]


def test_a_caller_that_goes_away_in_the_middle_has_ordered_once(client: Client, cluster: Cluster) -> None:
    first, *_ = loop_of(client)
    entered, gone, done = threading.Event(), threading.Event(), threading.Event()
    ordinary = cluster.provider.call

    def slow(method: str, asked: Json) -> Json:
        if method != "NodeGroupIncreaseSize":
            return ordinary(method, asked)
        entered.set()
        assert gone.wait(TIMEOUT)
        found = ordinary(method, asked)
        done.set()
        return found

    cluster.provider.call = slow  # type: ignore[method-assign]
    question = encode(METHODS["NodeGroupIncreaseSize"][0], {"id": first["id"], "delta": 1})
    call = client.channel.unary_unary(f"/{PROVIDER}/NodeGroupIncreaseSize").future(question)
    assert entered.wait(TIMEOUT)
    call.cancel()
    assert loop_of(client)[0]["size"] == 0
    gone.set()
    assert done.wait(TIMEOUT)
    assert loop_of(client)[0]["size"] == 1  # the next loop sees it, and does not order it again
    cluster.run(minutes=10)
    assert cluster.machines == 1
    assert len(list_all(cluster.simulation.api, LAUNCH_BATCHES)[0]) == 1


def test_errors_have_a_status_and_a_reason(client: Client, counted: list[tuple[str, str]]) -> None:
    loop_of(client)
    with pytest.raises(grpc.RpcError) as error:
        client.call("NodeGroupTargetSize", id="no-such")
    assert error.value.code() is grpc.StatusCode.NOT_FOUND
    assert "no-such" in error.value.details()
    assert counted[-1] == ("NodeGroupTargetSize", "NOT_FOUND")
    with pytest.raises(grpc.RpcError) as error:
        client.raw("NodeGroupTargetSize", b"\xff\xff")
    assert error.value.code() is grpc.StatusCode.INVALID_ARGUMENT


def test_an_older_or_newer_caller(client: Client) -> None:
    """Fields that are not known are skipped, and a method that there is not is UNIMPLEMENTED."""
    loop_of(client)
    assert client.raw("Refresh", encode(METHODS["NodeGroupTargetSize"][0], {"id": "later field"})) == b""
    with pytest.raises(grpc.RpcError) as error:
        client.raw("AtomicIncreaseSize", b"")
    assert error.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_a_bug_is_no_answer_and_tells_nothing(client: Client, cluster: Cluster) -> None:
    def breaks(asked: Json) -> Json:
        raise ArithmeticError("secret")

    cluster.provider.calls = {**cluster.provider.calls, "NodeGroups": breaks}
    with pytest.raises(grpc.RpcError) as error:
        client.call("NodeGroups")
    assert error.value.code() is grpc.StatusCode.INTERNAL
    assert "secret" not in error.value.details()


def test_an_address_in_use_is_told(client: Client) -> None:
    other = GrpcServer.of_provider(lambda method, asked: {}, "127.0.0.1:0", None, lambda method, status: None)
    other.start()
    third = GrpcServer.of_provider(
        lambda method, asked: {}, f"127.0.0.1:{other.port}", None, lambda method, status: None
    )
    try:
        with pytest.raises(ConfigurationError, match="cannot be listened on"):
            third.start()
    finally:
        other.stop()


class Authority:
    """A CA, and certificates of it."""

    def __init__(self, folder: Path, name: str) -> None:
        self.folder, self.name = folder / name, name
        self.folder.mkdir()
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.certificate = self._signed(self.key.public_key(), name, authority=True)
        self.path = self._write("ca.crt", self.certificate.public_bytes(serialization.Encoding.PEM))

    def issue(self, name: str, *, hours: int = 24) -> tuple[str, str]:
        """A certificate, valid until so many hours from now, and its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._signed(key.public_key(), name, authority=False, hours=hours)
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        return (
            self._write(f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM)),
            self._write(f"{name}.key", private),
        )

    def _write(self, name: str, content: bytes) -> str:
        (self.folder / name).write_bytes(content)
        return str(self.folder / name)

    def _signed(self, key: Any, name: str, *, authority: bool, hours: int = 24) -> x509.Certificate:
        now = datetime.now(UTC)  # noqa: TID251  # TLS knows no virtual time
        issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, self.name)])
        return (
            x509.CertificateBuilder()
            .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)]))
            .issuer_name(issuer)
            .public_key(key)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=2))
            .not_valid_after(now + timedelta(hours=hours))
            .add_extension(x509.BasicConstraints(ca=authority, path_length=None), critical=True)
            .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
            .sign(self.key, hashes.SHA256())
        )


@pytest.mark.parametrize("caller", ["known", "stranger", "expired", "nobody", "in clear"])
def test_only_who_has_a_certificate_of_the_authority_may_call(cluster: Cluster, tmp_path: Path, caller: str) -> None:
    ours, others = Authority(tmp_path, "ours"), Authority(tmp_path, "others")
    files = Certificates(*ours.issue("server"), ours.path)
    credentials = credentials_of("0.0.0.0:0", files, insecure=False, mutual=True)
    server = GrpcServer.of_provider(
        lambda method, asked: cluster.provider.call(method, asked), "127.0.0.1:0", credentials, lambda *_: None
    )
    server.start()
    root = Path(ours.path).read_bytes()
    pairs = {"known": ours.issue("caller"), "stranger": others.issue("caller"), "expired": ours.issue("late", hours=-1)}
    pair = [Path(path).read_bytes() for path in pairs[caller]] if caller in pairs else [None, None]
    client = Client(server.port, None if caller == "in clear" else grpc.ssl_channel_credentials(root, pair[1], pair[0]))
    try:
        if caller == "known":
            assert loop_of(client)
        else:
            with pytest.raises(grpc.RpcError) as error:
                client.call("Refresh")
            assert error.value.code() is grpc.StatusCode.UNAVAILABLE
    finally:
        client.channel.close()
        server.stop()


@pytest.mark.parametrize(
    ("address", "insecure", "allowed"),
    [
        (":8086", False, False),
        (":8086", True, True),
        ("127.0.0.1:0", False, True),
        ("[::1]:0", False, True),
        ("localhost:1", False, True),
        ("10.0.0.1:1", False, False),
    ],
)
def test_without_certificates_only_loopback_addresses_are_served(address: str, insecure: bool, allowed: bool) -> None:
    if allowed:
        assert credentials_of(address, Certificates(), insecure=insecure, mutual=True) is None
        return
    with pytest.raises(ConfigurationError, match="clientCa"):
        credentials_of(address, Certificates(), insecure=insecure, mutual=True)


def test_half_of_the_certificates_is_none(tmp_path: Path) -> None:
    certificate, key = Authority(tmp_path, "ours").issue("server")
    with pytest.raises(ConfigurationError, match="clientCa"):
        credentials_of(":1", Certificates(certificate, key), insecure=True, mutual=True)
    assert credentials_of(":1", Certificates(certificate, key), insecure=False, mutual=False) is not None
    with pytest.raises(ConfigurationError, match="cannot be read"):
        credentials_of(":1", Certificates(certificate, f"{key}x"), insecure=False, mutual=False)
