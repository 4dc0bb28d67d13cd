"""The status page with real tokens and roles, in a real browser.

What it shows comes from the demo's simulated cluster at its busiest; who may see it is decided by a real API server.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Final

import httpx
import pytest

from autoscaler.clock import EPOCH, SystemClock
from autoscaler.cluster.client.client import KubernetesClient
from autoscaler.cluster.client.transport import connect
from autoscaler.errors import ForesliceError
from autoscaler.loop.loop import Tick
from autoscaler.serve.access import RequestAuthorizer
from autoscaler.serve.listener import Listener
from autoscaler.serve.site import LatestTick, page_app
from autoscaler.simulation.scenario import load_scenario, parse_scenario
from autoscaler.simulation.simulation import Simulation
from instance_catalog.files.loader import load_catalog
from tests.e2e.harness.control_plane import PATIENCE, ApiError, ControlPlane

RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
SERVER: Final = "status-page"
READERS: Final = "/api/v1/namespaces/readers"
BROWSER_SECONDS: Final = 120.0
HOPELESS: Final = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: hopeless}
spec: {spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu.nvidia.com, count: 30}}]}}}
---
apiVersion: v1
kind: Pod
metadata: {name: hopeless}
spec:
  resourceClaims: [{name: gpu, resourceClaimTemplateName: hopeless}]
  containers: [{name: main, image: pause, resources: {claims: [{name: gpu}], requests: {cpu: "1"}}}]
"""


@pytest.fixture(scope="module")
def tick() -> Tick:
    """The round of the demo that has most to tell."""
    simulation = Simulation(catalog=load_catalog(), start=EPOCH)
    simulation.add(load_scenario("demo"))
    simulation.add(parse_scenario(HOPELESS))
    ticks: list[Tick] = []
    simulation.run(EPOCH + timedelta(minutes=1), ticks.append)
    return max(
        ticks, key=lambda tick: (len(tick.plan.left_out), len(tick.plan.placements), len(tick.snapshot.provisioned))
    )


@pytest.fixture(scope="module")
def readers(control_plane: ControlPlane) -> Iterator[dict[str, str]]:
    """Tokens of service accounts that may read pods everywhere, in namespace default, and nowhere."""
    made = [("/api/v1/namespaces", {"metadata": {"name": "readers"}})]
    made += [(f"{READERS}/serviceaccounts", {"metadata": {"name": name}}) for name in ("all", "some", "none")]
    made += [
        (f"{RBAC}/clusterrolebindings", binding("status-page-delegator", "system:auth-delegator", user=SERVER)),
        (f"{RBAC}/clusterrolebindings", binding("status-page-all", "view", account="all")),
        (f"{RBAC}/namespaces/default/rolebindings", binding("status-page-some", "view", account="some")),
    ]
    for path, manifest in made:
        control_plane.call("POST", path, manifest)
    tokens = {}
    for name in ("all", "some", "none"):
        answer = control_plane.call("POST", f"{READERS}/serviceaccounts/{name}/token", {"spec": {}})
        tokens[name] = answer["status"]["token"]
    control_plane.wait_until(lambda: allowed(control_plane, tokens["all"]), "the roles to count")
    yield tokens
    for path, manifest in reversed(made):
        with suppress(ApiError):
            control_plane.call("DELETE", f"{path}/{manifest['metadata']['name']}")


def binding(name: str, role: str, *, user: str = "", account: str = "") -> dict[str, object]:
    """A role for a user or for a service account of the namespace readers."""
    person = {"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}
    robot = {"kind": "ServiceAccount", "name": account, "namespace": "readers"}
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [person if user else robot],
    }


def door(control_plane: ControlPlane) -> RequestAuthorizer:
    clock = SystemClock()
    return RequestAuthorizer(KubernetesClient(connect(clock, kubeconfig=str(control_plane.identity(SERVER))), clock))


def allowed(control_plane: ControlPlane, token: str) -> bool:
    """Whether authorizers have taken the bindings over, which follows their creation by a moment."""
    asking = door(control_plane)
    with suppress(ForesliceError):
        asking.require(asking.user(f"Bearer {token}"), "list")
        return True
    return False


@pytest.fixture(scope="module")
def address(control_plane: ControlPlane, readers: dict[str, str], tick: Tick) -> Iterator[str]:
    """Where the page is served."""
    latest = LatestTick()
    latest.set(tick.snapshot, tick.plan, tick.now)
    listener = Listener(page_app(latest, door(control_plane), cluster="e2e"), "127.0.0.1:0")
    listener.start()
    yield f"127.0.0.1:{listener.port}"
    listener.stop()


@pytest.mark.parametrize(
    ("path", "reader", "status"),
    [
        pytest.param("/", "all", 200, id="all pods"),
        pytest.param("/", "some", 403, id="all pods, with rights in one namespace"),
        pytest.param("/?namespace=default", "some", 200, id="the namespace of one's own"),
        pytest.param("/?namespace=kube-system", "some", 403, id="another namespace"),
        pytest.param("/explain/kube-system/x", "some", 403, id="a pod of another namespace"),
        pytest.param("/explain/default/missing", "some", 404, id="a pod that does not exist"),
        pytest.param("/explain/default/missing", "none", 403, id="a pod that nobody may know of"),
    ],
)
def test_real_roles_decide(address: str, readers: dict[str, str], path: str, reader: str, status: int) -> None:
    headers = {"Authorization": f"Bearer {readers[reader]}"}
    answer = httpx.get(f"http://{address}{path}", headers=headers, trust_env=False, timeout=PATIENCE)
    assert answer.status_code == status, answer.text


@pytest.mark.parametrize("token", ["x", "nonsense", "a.b.c"])
def test_the_api_server_knows_its_own_tokens_only(address: str, token: str) -> None:
    answer = httpx.get(
        f"http://{address}/", headers={"Authorization": f"Bearer {token}"}, trust_env=False, timeout=PATIENCE
    )
    assert answer.status_code == 401


def test_a_waiting_pod_is_explained_to_who_may_read_it(address: str, readers: dict[str, str], tick: Tick) -> None:
    pod = tick.plan.left_out[0].pod
    headers = {"Authorization": f"Bearer {readers['some']}"}
    answer = httpx.get(f"http://{address}/explain/{pod}", headers=headers, trust_env=False, timeout=PATIENCE)
    assert answer.status_code == 200
    assert f"Pod {pod}" in answer.text


# -- a browser


def browse(url: str, folder: Path, *options: str) -> tuple[str, str]:
    """What Chromium makes of a page: its document, and what it complained about."""
    chromium = shutil.which("chromium")
    assert chromium, "install a browser: apt-get install chromium"
    fixed = ["--headless", "--no-sandbox", "--disable-gpu", "--no-proxy-server", "--enable-logging=stderr"]
    done = subprocess.run(
        [chromium, *fixed, f"--user-data-dir={folder}", *options, url],
        capture_output=True,
        text=True,
        timeout=BROWSER_SECONDS,
        check=True,
    )
    return done.stdout, done.stderr


def test_a_browser_shows_the_page(address: str, readers: dict[str, str], tick: Tick, tmp_path: Path) -> None:
    document, complaints = browse(f"http://reader:{readers['all']}@{address}/", tmp_path, "--dump-dom")
    assert "<h1>Pending pods and nodes</h1>" in document
    assert "<script" not in document
    for left in tick.plan.left_out:
        assert f'href="/explain/{left.pod}"' in document
    assert "Content Security Policy" not in complaints


def test_a_browser_of_somebody_without_rights_is_told_what_to_ask_for(
    address: str, readers: dict[str, str], tmp_path: Path
) -> None:
    document, _ = browse(f"http://reader:{readers['none']}@{address}/", tmp_path, "--dump-dom")
    assert "<h1>Forbidden</h1>" in document
    assert "kubectl auth can-i list pods" in document


def test_light_and_dark_are_drawn(address: str, readers: dict[str, str], tmp_path: Path) -> None:
    url = f"http://reader:{readers['all']}@{address}/"
    drawn = []
    for name, scheme in (("dark", 0), ("light", 1)):
        picture = tmp_path / f"{name}.png"
        settings = f"--blink-settings=preferredColorScheme={scheme}"
        browse(url, tmp_path / name, f"--screenshot={picture}", "--window-size=1400,1600", settings)
        drawn.append(picture.read_bytes())
    assert all(picture.startswith(b"\x89PNG") for picture in drawn)
    assert drawn[0] != drawn[1]
