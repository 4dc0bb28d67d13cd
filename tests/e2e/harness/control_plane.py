"""etcd, kube-apiserver, kube-controller-manager and kube-scheduler as child processes on loopback, and a JSON client.

Lessons that cost time: `--endpoint-reconciler-type=none`, because with a loopback advertise address the API server
refuses to start otherwise; the requestheader flags, because without them the other two fill their logs; a Node must be
*created* with Ready=False, or the node lifecycle controller takes its not-ready taint off at once.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from cryptography.hazmat.primitives.asymmetric import ec

from tests.e2e.harness import audit
from tests.e2e.harness.authority import Authority, key_pem, now, public_pem
from tests.e2e.harness.binary import control_plane_binary

Json: TypeAlias = dict[str, Any]
SERVING = ("apiserver", "controller-manager", "scheduler")
PORTS = range(20_000, 30_000)
PATIENCE = 180.0  # seconds; what is waited for takes 3 on an idle machine, and a busy one proves nothing


class ApiError(Exception):
    """An answer of 400 or above: its code and the API server's message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class ControlPlane:
    """Context manager. `call` speaks JSON to the API server as a cluster administrator."""

    def __init__(
        self,
        *,
        gates: Mapping[str, bool] | None = None,
        served: Mapping[str, bool] | None = None,
        audited: bool = False,
        refused: Mapping[str, str] | None = None,
    ) -> None:
        """`refused`: labels of nodes that the scheduler is configured to keep pods off, and nobody else is told."""
        self._audited = audited
        self._refused = dict(refused or {})
        self._gates = dict(gates or {})
        self._served = dict(served or {})
        self._children: dict[str, subprocess.Popen[bytes]] = {}

    def __enter__(self) -> ControlPlane:
        self._binary = control_plane_binary()
        self._root = Path(tempfile.mkdtemp(prefix="foreslice-e2e-"))
        try:
            self._write_files()
            self._launch("etcd", self._etcd_flags())
            self._launch("apiserver", self._apiserver_flags())
            self._wait_for("apiserver", "/readyz")
            self._launch("controller-manager", self._controller_manager_flags())
            self._launch("scheduler", [*self._component_flags("scheduler"), f"--config={self._root}/scheduler.json"])
            self._wait_for("controller-manager", "/healthz")
            self._wait_for("scheduler", "/readyz")
            self.wait_until(self._pods_can_be_created, "the default service account")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for child in reversed(self._children.values()):
            child.send_signal(signal.SIGKILL)
            child.wait()
            if child.stdin is not None:
                child.stdin.close()
        shutil.rmtree(self._root, ignore_errors=True)

    def call(self, method: str, path: str, body: Json | None = None, *, kind: str = "application/json") -> Json:
        """One request; raises ApiError for an answer of 400 or above."""
        request = urllib.request.Request(
            self._url("apiserver") + path,
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": kind, "Accept": "application/json"},
        )
        try:
            with self._opener.open(request, timeout=30) as answer:
                found: Json = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            with error:
                raise ApiError(error.code, _message(error.read())) from None

    def wait_until(
        self,
        done: Callable[[], bool],
        what: str,
        *,
        seconds: float = PATIENCE,
        found: Callable[[], object] = lambda: "",
    ) -> None:
        """Poll real processes until something holds; fails with what was `found` instead and the components' logs."""
        deadline = time.monotonic() + seconds
        while not done():
            dead = [name for name, child in self._children.items() if child.poll() is not None]
            if dead or time.monotonic() > deadline:
                logs = "\n".join(f"--- {name}\n{self._log(name)[-1500:]}" for name in (dead or self._children))
                raise AssertionError(f"{what}: {f'{dead} exited' if dead else f'not in time, {found()}'}\n{logs}")
            time.sleep(0.05)

    # -- files and flags

    def _write_files(self) -> None:
        self._ports = dict(zip(("etcd", "peer", *SERVING), free_ports(5), strict=True))
        self._authority = Authority(now())
        account = ec.generate_private_key(ec.SECP256R1())
        certificate, key = self._authority.server()
        self._file("ca.crt", self._authority.pem)
        self._file("tls.crt", certificate)
        self._file("tls.key", key)
        self._file("sa.key", key_pem(account))
        self._file("sa.pub", public_pem(account))
        for name in ("controller-manager", "scheduler"):
            self._file(f"{name}.kubeconfig", self._kubeconfig(f"system:kube-{name}"))
        scheduler = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "leaderElection": {"leaderElect": False},
            "clientConnection": {"kubeconfig": f"{self._root}/scheduler.kubeconfig", "qps": 500, "burst": 1000},
            "profiles": [{"pluginConfig": self._plugin_config()}],
        }
        self._file("scheduler.json", json.dumps(scheduler).encode())
        self._file("admin.pem", b"".join(self._authority.client("admin", ["system:masters"])))
        tls = ssl.create_default_context(cafile=str(self._root / "ca.crt"))
        tls.load_cert_chain(self._root / "admin.pem")
        # Loopback must be reached directly, whatever the environment says of proxies.
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=tls)
        )

    def _plugin_config(self) -> list[Json]:
        if not self._refused:
            return []
        unlike = [{"key": key, "operator": "NotIn", "values": [value]} for key, value in self._refused.items()]
        required = {"nodeSelectorTerms": [{"matchExpressions": unlike}]}
        added = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
        return [{"name": "NodeAffinity", "args": added}]

    def _file(self, name: str, content: bytes) -> None:
        # A process that starts may be reading the file of before: it gets that or this, and never a part.
        path, fresh = self._root / name, self._root / f".{name}"
        fresh.touch(mode=0o600)
        fresh.write_bytes(content)
        fresh.replace(path)

    @property
    def url(self) -> str:
        """Where the API server listens."""
        return self._url("apiserver")

    def identity(self, user: str, *groups: str) -> Path:
        """A kubeconfig of any user; RBAC decides what it may do."""
        name = f"{user.replace(':', '-')}.kubeconfig"  # a colon would separate two files
        self._file(name, self._kubeconfig(user, groups))
        return self._root / name

    def service_account(self, namespace: str, name: str) -> Path:
        """A kubeconfig with a token of a service account, as its pods have one."""
        path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"
        answer = self.call("POST", path, {"spec": {"expirationSeconds": 3600}})
        file = f"{namespace}-{name}.kubeconfig"
        self._file(file, self._configuration({"token": answer["status"]["token"]}))
        return self._root / file

    def asked(self, user: str) -> list[tuple[audit.Right, int]]:
        """What a user has asked so far, with the answers' codes. Needs `audited`."""
        return list(audit.asked(self._root, user))

    def kill_api_server(self) -> None:
        """End it without warning and start it again on the same data."""
        self._kill("apiserver")
        self._launch("apiserver", self._apiserver_flags())
        self._wait_for("apiserver", "/readyz")

    def kill_etcd(self) -> None:
        """The same for the API server's store."""
        self._kill("etcd")
        self._launch("etcd", self._etcd_flags())
        self._wait_for("apiserver", "/readyz")

    def _kill(self, name: str) -> None:
        child = self._children[name]
        child.send_signal(signal.SIGKILL)
        child.wait()
        if child.stdin is not None:
            child.stdin.close()

    def _kubeconfig(self, user: str, groups: Sequence[str] = ()) -> bytes:
        certificate, key = self._authority.client(user, groups)
        self._file(f"{user}.crt", certificate)
        self._file(f"{user}.key", key)
        keys = {"client-certificate": f"{self._root}/{user}.crt", "client-key": f"{self._root}/{user}.key"}
        return self._configuration(keys)

    def _configuration(self, user: Mapping[str, str]) -> bytes:
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "e2e",
            "clusters": [
                {
                    "name": "e2e",
                    "cluster": {
                        "server": self._url("apiserver"),
                        "certificate-authority": f"{self._root}/ca.crt",
                    },
                }
            ],
            "users": [{"name": "e2e", "user": dict(user)}],
            "contexts": [{"name": "e2e", "context": {"cluster": "e2e", "user": "e2e"}}],
        }
        return json.dumps(config).encode()

    def _etcd_flags(self) -> list[str]:
        client, peer = f"http://127.0.0.1:{self._ports['etcd']}", f"http://127.0.0.1:{self._ports['peer']}"
        return [
            f"--data-dir={self._root}/etcd",
            f"--listen-client-urls={client}",
            f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}",
            f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
            "--unsafe-no-fsync",  # the data need not survive the machine
            "--log-level=warn",
        ]

    def _serving_flags(self, name: str) -> list[str]:
        gates = ",".join(f"{gate}={str(on).lower()}" for gate, on in self._gates.items())
        return [
            "--bind-address=127.0.0.1",
            f"--secure-port={self._ports[name]}",
            f"--tls-cert-file={self._root}/tls.crt",
            f"--tls-private-key-file={self._root}/tls.key",
            *([f"--feature-gates={gates}"] if gates else []),
        ]

    def _apiserver_flags(self) -> list[str]:
        served = ",".join(f"{group}={str(on).lower()}" for group, on in self._served.items())
        return [
            *self._serving_flags("apiserver"),
            f"--etcd-servers=http://127.0.0.1:{self._ports['etcd']}",
            f"--client-ca-file={self._root}/ca.crt",
            "--authorization-mode=Node,RBAC",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={self._root}/sa.pub",
            f"--service-account-signing-key-file={self._root}/sa.key",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--requestheader-client-ca-file={self._root}/ca.crt",
            "--requestheader-allowed-names=front-proxy",
            "--requestheader-username-headers=X-Remote-User",
            "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            *([f"--runtime-config={served}"] if served else []),
            *(audit.flags(self._root) if self._audited else []),
        ]

    def _component_flags(self, name: str) -> list[str]:
        own = f"{self._root}/{name}.kubeconfig"
        return [
            *self._serving_flags(name),
            f"--authentication-kubeconfig={own}",
            f"--authorization-kubeconfig={own}",
        ]

    def _controller_manager_flags(self) -> list[str]:
        return [
            *self._component_flags("controller-manager"),
            f"--kubeconfig={self._root}/controller-manager.kubeconfig",
            "--leader-elect=false",
            "--use-service-account-credentials=true",
            f"--service-account-private-key-file={self._root}/sa.key",
            f"--root-ca-file={self._root}/ca.crt",
            "--node-monitor-grace-period=1h",  # nodes of these tests have no kubelet that renews a Lease
            "--kube-api-qps=200",
            "--kube-api-burst=400",
        ]

    # -- processes

    def _launch(self, name: str, flags: list[str]) -> None:
        with (self._root / f"{name}.log").open("ab") as log:
            self._children[name] = subprocess.Popen(
                [str(self._binary), name, *flags],
                cwd=self._root,
                env=dict(os.environ),
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait_for(self, name: str, path: str) -> None:
        def answers() -> bool:
            try:
                with self._opener.open(self._url(name) + path, timeout=5) as answer:
                    return bool(answer.status == 200)
            except (urllib.error.URLError, OSError):
                return False

        self.wait_until(answers, name)

    def _pods_can_be_created(self) -> bool:
        with contextlib.suppress(ApiError):
            return bool(self.call("GET", "/api/v1/namespaces/default/serviceaccounts/default"))
        return False

    def _log(self, name: str) -> str:
        return (self._root / f"{name}.log").read_text(errors="replace")

    def _url(self, name: str) -> str:
        return f"https://127.0.0.1:{self._ports[name]}"


def _message(body: bytes) -> str:
    try:
        return str(json.loads(body).get("message", ""))
    except ValueError:
        return body.decode(errors="replace")


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on just now. They are below those that Linux gives to whoever asks for any
    (net.ipv4.ip_local_port_range), so that no other process gets one of them before it is used here."""
    found: list[int] = []
    for port in random.sample(PORTS, len(PORTS)):
        with contextlib.suppress(OSError), socket.socket() as asking:
            asking.bind(("127.0.0.1", port))
            found.append(port)
            if len(found) == count:
                break
    return found
